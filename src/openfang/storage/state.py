"""Small state: settings, blobs, and the labels that entered a run."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.storage.marks import outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
MOST_KEPT = 256 * 1024 * 1024
"""Bytes of blobs that are kept for one caller."""
DAY_NS = 86_400_000_000_000
RUNS_KEPT_NS = 7 * DAY_NS
"""How long a run is known that nobody goes on with. That somebody does is noted once a day."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Named values of the home itself: its node, the cursors of its sinks."""

    database: Reader

    async def get(self, name: str) -> str | None:
        """Read one value."""
        rows = await self.database.read("SELECT value FROM settings WHERE name = ?", (name,))
        return rows[0][0] if rows else None


def cursor(name: str, node: str) -> str:
    """Name the setting that says how far somebody has got in the chain of a node.

    In a file, which has one chain under no name, it is the name alone.
    """
    return f"{name}@{node}" if node else name


def advance(name: str, first: int, last: int) -> Statement:
    """Move such a place on. One that comes too late fails as a unit."""
    sql = (
        "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        "SET value = CASE WHEN settings.value = ? THEN excluded.value END"
    )
    return sql, (name, str(last), str(first))


def put_setting(name: str, value: str) -> Statement:
    """Keep a value."""
    sql = (
        "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    return sql, (name, value)


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Results that were too long to show, readable by the same caller for a while."""

    database: Reader

    async def get(self, blob_id: str, caller: str, now: int) -> tuple[bytes, Labels] | None:
        """Read a blob of this caller's that has not expired."""
        sql = "SELECT body, labels FROM blobs WHERE id = ? AND caller = ? AND expires_at > ?"
        rows = await self.database.read(sql, (blob_id, caller, now))
        return (rows[0][0], Labels(rows[0][1])) if rows else None


def put_blob(blob_id: str, caller: str, body: bytes, labels: Labels, expires_at: int) -> Statement:
    """Keep a blob until it expires."""
    return "INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", (
        blob_id,
        caller,
        body,
        int(labels),
        expires_at,
    )


def drop_oldest_blobs(newest: str, caller: str, most: int) -> Statement:
    """Forget a caller's oldest blobs, all but the newest if need be, until they fit."""
    # Ids sort by time; to read what stands behind a body is to read the whole of it.
    sql = (
        "DELETE FROM blobs WHERE id <> ? AND id IN (SELECT id FROM ("
        "SELECT id, SUM(LENGTH(body)) OVER (ORDER BY id DESC) AS total "
        "FROM blobs WHERE caller = ?) AS kept WHERE total > ?)"
    )
    return sql, (newest, caller, most)


def drop_expired_blobs(now: int) -> Statement:
    """Forget blobs whose time is over."""
    return "DELETE FROM blobs WHERE expires_at <= ?", (now,)


@dataclass(frozen=True, slots=True)
class RunStore:
    """The labels that entered a run, for whoever carries it on.

    A run is kept by its digest: its name is the caller's, who may have named it after a secret.
    """

    database: Reader

    async def labels(self, run: str) -> Labels:
        """Read what a run is known to hold."""
        return (await self.kept(run))[0]

    async def kept(self, run: str) -> tuple[Labels, int]:
        """Read that, and when it was noted last."""
        sql = "SELECT labels, changed_at FROM runs WHERE id = ?"
        rows = await self.database.read(sql, (_digest(run),))
        return (Labels(rows[0][0]), rows[0][1]) if rows else (Labels.NONE, 0)


def _digest(run: str) -> str:
    return sha256(run.encode(errors="surrogatepass")).hexdigest()


def grow_run(run: str, labels: Labels, now: int) -> Statement:
    """Add labels to a run; they do not go away while it is gone on with."""
    sql = (
        "INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
        "SET labels = runs.labels | excluded.labels, changed_at = excluded.changed_at"
    )
    return sql, (_digest(run), int(labels), now)


def drop_old_runs(before: int, needed: Iterable[str]) -> Statement:
    """Forget runs that nobody has gone on with since then, but for those that are needed."""
    kept = tuple(map(_digest, needed))
    sql = f"DELETE FROM runs WHERE changed_at <= ? AND {outside('id', kept)}"  # noqa: S608 - marks
    return sql, (before, *kept)
