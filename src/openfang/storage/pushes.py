"""Who is told of what happens to a task, as sealed rows, and what they are still to be told."""

from __future__ import annotations

import secrets
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from openfang.core.errors import HomeError
from openfang.core.tasks import Push
from openfang.core.values import dataclass
from openfang.storage import timers
from openfang.storage.timers import NEVER, Timer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
KIND: Final = "push"
MOST_PUSHES: Final = 10
"""So many can be told of one task."""
_NONCE_BYTES: Final = 12
_LAST: Final = 9_999_999_999
_BEHIND: Final = "kind = 'push' AND subject = ? AND id > ? AND id <= ?"


class Unreadable(HomeError):  # noqa: N818 - it reads as what it is
    """Who is told was sealed by another key, or changed."""


_TOLD: Final = (
    "SELECT task, pushes.id, caller, pushes.body FROM pushes JOIN tasks ON tasks.id = task WHERE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Somebody who is told of a task: on whose behalf, and at which place."""

    task: str
    push: str
    party: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class PushStore:
    """Reads and seals; each row is bound to its task and its id (AES-256-GCM)."""

    database: Reader
    key: bytes

    async def get(self, task: str, push: str) -> Push | None:
        """Find one."""
        rows = await self.database.read(
            "SELECT id, body FROM pushes WHERE task = ? AND id = ?", (task, push)
        )
        return self._open(task, *rows[0]) if rows else None

    async def of(self, task: str) -> list[Push]:
        """List those of a task, oldest first."""
        sql = "SELECT id, body FROM pushes WHERE task = ? ORDER BY created_at, id"
        return [self._open(task, *row) for row in await self.database.read(sql, (task,))]

    async def of_unfinished(self) -> list[Told]:
        """Name all of tasks to which something may still happen."""
        return [self._told(*row) for row in await self.database.read(f"{_TOLD} final = 0")]

    async def told_of(self, task: str) -> list[Told]:
        """Name all of one task."""
        return [self._told(*row) for row in await self.database.read(f"{_TOLD} task = ?", (task,))]

    def _told(self, task: str, push: str, caller: str, sealed: bytes) -> Told:
        try:
            place = self.place(self._open(task, push, sealed))
        except Unreadable:
            place = ""
        return Told(task=task, push=push, party=caller, place=place)

    def place(self, push: Push) -> str:
        """Name the host that it goes to, for nobody to read."""
        host = urlsplit(push.url).hostname or ""
        return blake2b(host.encode(), key=self.key, digest_size=16, person=b"place").hexdigest()

    def put(self, push: Push, now: int) -> tuple[Statement, ...]:
        """Keep one in the place of another of its id. The unit fails if the task has too many."""
        full = (
            "INSERT INTO pushes SELECT ?, ?, NULL, 0 "
            "WHERE (SELECT COUNT(*) FROM pushes WHERE task = ? AND id <> ?) >= ?"
        )
        sql = (
            "INSERT INTO pushes VALUES (?, ?, ?, ?) "
            "ON CONFLICT (task, id) DO UPDATE SET body = excluded.body"
        )
        named = (push.task, push.id)
        return (full, (*named, *named, MOST_PUSHES)), (sql, (*named, self._seal(push), now))

    def _seal(self, push: Push) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - start-up time

        nonce, body = secrets.token_bytes(_NONCE_BYTES), orjson.dumps(_body(push))
        return nonce + AESGCM(self.key).encrypt(nonce, body, _bound(push.task, push.id))

    def _open(self, task: str, push: str, sealed: bytes) -> Push:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - start-up time
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            body = AESGCM(self.key).decrypt(nonce, rest, _bound(task, push))
        except (InvalidTag, ValueError) as error:
            raise Unreadable(
                f"Who is told of the task {task} cannot be read: it was sealed by another key, or "
                "changed.",
                way_out="restore the home's master key, or set the push notification again",
            ) from error
        return Push(id=push, task=task, **orjson.loads(body))


def _body(push: Push) -> Mapping[str, str]:
    return {
        "url": push.url,
        "token": push.token,
        "scheme": push.scheme,
        "credentials": push.credentials,
        "dialect": push.dialect,
    }


def _bound(task: str, push: str) -> bytes:
    return orjson.dumps([task, push])


def delete(task: str, push: str) -> tuple[Statement, ...]:
    """Tell somebody no longer, nor what they were still to be told."""
    return (
        ("DELETE FROM pushes WHERE task = ? AND id = ?", (task, push)),
        (f"DELETE FROM timers WHERE {_BEHIND}", (task, *_all_of(task, push))),  # noqa: S608 - constants
    )


def notify(told: Told, n: int, now: int, body: Mapping[str, Any]) -> Statement:
    """Have somebody told of what happened as the `n`th: now, or once they know what was before."""
    task, push = told.task, told.push
    timer = Timer(
        id=_notice(task, push, n),
        kind=KIND,
        subject=task,
        due=now,
        body={**body, "push": push, "n": n},
        party=told.party,
        place=told.place,
    )
    sql, (name, kind, subject, *rest) = timers.add(timer)
    columns = sql.partition(" VALUES")[0]
    before = f"SELECT 1 FROM timers WHERE {_BEHIND}"  # noqa: S608 - constants
    chosen = f"SELECT ?, ?, ?, CASE WHEN EXISTS ({before}) THEN {NEVER} ELSE ? END, ?, ?, ?, ?"
    behind = (task, _all_of(task, push)[0], name)
    return f"{columns} {chosen}", (name, kind, subject, *behind, *rest)


def told(notice: Timer, now: int) -> tuple[Statement, ...]:
    """Forget what somebody was told, and have them told what is next."""
    task, push = notice.subject, str(notice.body["push"])
    following = f"SELECT MIN(id) FROM timers WHERE {_BEHIND}"  # noqa: S608 - constants
    behind = (task, notice.id, _all_of(task, push)[1])
    wake = f"UPDATE timers SET due = ? WHERE due = {NEVER} AND id = ({following})"  # noqa: S608 - constants
    return ("DELETE FROM timers WHERE id = ?", (notice.id,)), (wake, (now, *behind))


def _notice(task: str, push: str, n: int) -> str:
    """An id that sorts by `n`. What a peer calls its push may be anything: its digest is not."""
    digest = sha256(push.encode()).hexdigest()[:32]
    return f"{KIND}/{task}/{digest}/{n:010}"


def _all_of(task: str, push: str) -> tuple[str, str]:
    """Between these lie the ids of all that somebody is to be told of a task."""
    return _notice(task, push, 0), _notice(task, push, _LAST)
