"""Conversations as rows: sessions, and what was said in each, as it was said."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.agents import Image, Message, Speaker, Wish
from openfang.core.labels import Labels
from openfang.core.sessions import SessionSummary, SessionTurn
from openfang.core.values import dataclass
from openfang.storage.marks import outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_COLUMNS: Final = "id, agent, caller, name, title, messages, labels, created_at, updated_at"
_LONGEST_TITLE: Final = 80
_READ_FOR_TITLE: Final = 1000
_DELETED_AT_ONCE: Final = 500
_AT_ONCE: Final = 500
_CHARACTERS_AT_ONCE: Final = 1_000_000
_MOST_OF_IMAGES: Final = 4_000_000
"""Bytes of pictures that are kept with a turn; of larger ones only the mention is kept."""


@dataclass(frozen=True, slots=True)
class SessionStore:
    """Reads conversations; the statements below change them."""

    database: Reader

    async def get(self, session: str) -> SessionSummary | None:
        """Find one by its id."""
        found = await self._select("id = ?", (session,))
        return found[0] if found else None

    async def find(self, agent: str, caller: str, name: str) -> SessionSummary | None:
        """Find the one of this name, of this caller with this agent."""
        found = await self._select("agent = ? AND caller = ? AND name = ?", (agent, caller, name))
        return found[0] if found else None

    async def page(
        self, *, caller: str | None, agent: str = "", after: str = "", limit: int
    ) -> list[SessionSummary]:
        """List the newest: everybody's or one caller's, of one agent, behind a cursor."""
        conditions, parameters = _whose(caller, agent)
        if after:
            moment, _, session = after.partition("-")
            conditions.append("(updated_at, id) < (?, ?)")
            parameters += [int(moment, 16), session]
        where = f"{' AND '.join(conditions)} ORDER BY updated_at DESC, id DESC LIMIT ?"
        return await self._select(where, (*parameters, limit))

    async def count(self, *, caller: str | None, agent: str = "") -> int:
        """Count them: everybody's or one caller's, of one agent."""
        conditions, parameters = _whose(caller, agent)
        sql = f"SELECT COUNT(*) FROM sessions WHERE {' AND '.join(conditions)}"  # noqa: S608 - constants and marks
        return (await self.database.read(sql, parameters))[0][0]

    async def _select(self, where: str, parameters: Sequence[Any]) -> list[SessionSummary]:
        sql = f"SELECT {_COLUMNS} FROM sessions WHERE {where}"  # noqa: S608 - constants and marks
        return [_summary(row) for row in await self.database.read(sql, parameters)]

    async def last(
        self, session: str, until: int, most: int, *, characters: int | None = None
    ) -> tuple[list[Message], bool]:
        """Read the end of a session: the last messages up to `until`, from a user's on.

        That is more than `most` only if nobody spoke among those. Whether it is all of it comes
        along: it stops after so many characters.
        """
        first = await self._spoken("MIN", session, until - most + 1, until)
        if first is None:
            first = await self._spoken("MAX", session, 1, until) or until - most + 1
        sql = (
            "SELECT speaker, body, seq FROM turns "
            "WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC"
        )
        found = await self.database.read(sql, (session, first, until), most=characters)
        whole = not found or found[-1][2] <= max(first, 1)
        return [_message(speaker, body) for speaker, body, _ in reversed(found)], whole

    async def _spoken(self, which: str, session: str, first: int, last: int) -> int | None:
        """Find the first or the last turn of a user among these."""
        sql = (
            f"SELECT {which}(seq) FROM turns "  # noqa: S608 - constants
            "WHERE session = ? AND seq BETWEEN ? AND ? AND speaker = ?"
        )
        return (await self.database.read(sql, (session, first, last, Speaker.USER.value)))[0][0]

    async def turns(self, session: str, after: int = 0) -> list[SessionTurn]:
        """Read the next turns in order: so many at once, or fewer if they are long."""
        sql = (
            "SELECT seq, run, created_at, speaker, body FROM turns "
            "WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
        )
        found = await self.database.read(sql, (session, after, _AT_ONCE), most=_CHARACTERS_AT_ONCE)
        return [
            SessionTurn(seq=seq, run=run, at=at, message=_message(speaker, body))
            for seq, run, at, speaker, body in found
        ]

    async def turns_of(self, session: str, run: str) -> list[SessionTurn]:
        """Read what was said in one run."""
        sql = (
            "SELECT seq, created_at, speaker, body FROM turns "
            "WHERE session = ? AND run = ? ORDER BY seq"
        )
        return [
            SessionTurn(seq=seq, run=run, at=at, message=_message(speaker, body))
            for seq, at, speaker, body in await self.database.read(sql, (session, run))
        ]


def _whose(caller: str | None, agent: str) -> tuple[list[str], list[Any]]:
    """Conditions, and what stands for their marks."""
    wanted = {"caller = ?": caller, "agent = ?": agent or None}
    kept = {condition: value for condition, value in wanted.items() if value is not None}
    return ["1 = 1", *kept], list(kept.values())


def insert(session: SessionSummary) -> Statement:
    """Begin a session, unless there is one of that name."""
    sql, parameters = begin(session)
    return f"{sql} ON CONFLICT DO NOTHING", parameters


def begin(session: SessionSummary) -> Statement:
    """Begin a session. The unit fails if there is one of that name."""
    marks = ", ".join("?" * 9)
    return f"INSERT INTO sessions ({_COLUMNS}) VALUES ({marks})", (  # noqa: S608 - constants
        session.id,
        session.agent,
        session.caller,
        session.name,
        session.title,
        session.messages,
        int(session.labels),
        session.created_at,
        session.updated_at,
    )


def say(session: str, run: str, message: Message, now: int) -> tuple[Statement, ...]:
    """Add a turn."""
    count = "UPDATE sessions SET messages = messages + 1 WHERE id = ?"
    return (count, (session,)), _turn(session, run, message, now)


def ask(session: str, run: str, message: Message, now: int) -> tuple[Statement, ...]:
    """Add the first turn of a run: with it a session goes to the top of lists."""
    count = (
        "UPDATE sessions SET messages = messages + 1, updated_at = ?, "
        "title = CASE WHEN messages = 0 THEN ? ELSE title END WHERE id = ?"
    )
    return (count, (now, title(message.text), session)), _turn(session, run, message, now)


def _turn(session: str, run: str, message: Message, now: int) -> Statement:
    """Number it as the last. If the session is gone that turns NULL, and the unit fails."""
    sql = (
        "INSERT INTO turns (session, seq, run, created_at, speaker, body) "
        "VALUES (?, (SELECT messages FROM sessions WHERE id = ?), ?, ?, ?, ?)"
    )
    return sql, (session, session, run, now, message.speaker.value, written(message))


def carry(session: str, labels: Labels, now: int) -> Statement:
    """Add labels to a session at the end of a run; they never go away."""
    sql = "UPDATE sessions SET updated_at = ?, labels = labels | ? WHERE id = ?"
    return sql, (now, int(labels), session)


def delete(session: SessionSummary, gone: Iterable[str]) -> Iterator[tuple[Statement, ...]]:
    """Delete a session, the oldest turns first: step by step if they are many.

    Each step fails if the session is no more, or if a run is under way in it that is none of those
    whose processes are `gone`.
    """
    still = _still(session.id, tuple(gone))
    some = "DELETE FROM turns WHERE session = ? AND seq <= ?"
    for last in range(_DELETED_AT_ONCE, session.messages, _DELETED_AT_ONCE):
        yield still, (some, (session.id, last))
    yield still, *((sql, (session.id,)) for sql in _DELETE)


_DELETE: Final = (
    "DELETE FROM begun WHERE run IN (SELECT id FROM agent_runs WHERE session = ?)",
    "DELETE FROM agent_runs WHERE session = ?",
    "DELETE FROM turns WHERE session = ?",
    "DELETE FROM sessions WHERE id = ?",
)


def _still(session: str, gone: tuple[str, ...]) -> Statement:
    sql = (
        "INSERT INTO begun SELECT NULL, '' WHERE NOT EXISTS ("  # noqa: S608 - constants and marks
        "SELECT 1 FROM sessions WHERE id = ? AND NOT EXISTS ("
        "SELECT 1 FROM agent_runs WHERE session = sessions.id AND state = 'running' "
        f"AND {outside('process', gone)}))"
    )
    return sql, (session, *gone)


def title(text: str) -> str:
    """The first words of a message."""
    start = _readable(text[:_READ_FOR_TITLE]).replace("\0", " ")
    short = shorten(start, _LONGEST_TITLE, placeholder="…")
    return short if short != "…" else f"{start.strip()[: _LONGEST_TITLE - 1]}…"


def written(message: Message) -> str:
    """Write a message as JSON; what JSON has no word for is replaced, never left out."""
    try:
        return orjson.dumps(_body(message)).decode()
    except TypeError:
        return orjson.dumps(_body(_mended(message))).decode()


def _body(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"text": message.text}
    if message.wishes:
        body["wishes"] = [_wish(wish) for wish in message.wishes]
    if message.answers:
        body["answers"] = message.answers
    if message.is_error:
        body["is_error"] = True
    if message.images and sum(len(one.data) for one in message.images) <= _MOST_OF_IMAGES:
        body["images"] = [
            {"type": one.media_type, "data": b64encode(one.data).decode()} for one in message.images
        ]
    return body


def _wish(wish: Wish) -> dict[str, Any]:
    body = {"id": wish.id, "tool": wish.tool, "arguments": dict(wish.arguments)}
    return {**body, "unread": wish.unread} if wish.unread else body


def _mended(message: Message) -> Message:
    wishes = (
        Wish(
            id=_readable(one.id),
            tool=_readable(one.tool),
            arguments=_writable(one.arguments),
            unread=_readable(one.unread),
        )
        for one in message.wishes
    )
    return replace(
        message,
        text=_readable(message.text),
        wishes=tuple(wishes),
        answers=_readable(message.answers),
    )


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _writable(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        orjson.dumps(dict(arguments))
    except TypeError as error:
        return {"unreadable": str(error)}  # no call is made with such arguments either
    return arguments


def _message(speaker: str, body: str) -> Message:
    said = orjson.loads(body)
    wishes = (
        Wish(
            id=one["id"],
            tool=one["tool"],
            arguments=one["arguments"],
            unread=one.get("unread", ""),
        )
        for one in said.get("wishes", ())
    )
    return Message(
        speaker=Speaker(speaker),
        text=said["text"],
        wishes=tuple(wishes),
        answers=said.get("answers", ""),
        is_error=said.get("is_error", False),
        images=tuple(
            Image(media_type=one["type"], data=b64decode(one["data"]))
            for one in said.get("images", ())
        ),
    )


def _summary(row: tuple[Any, ...]) -> SessionSummary:
    return SessionSummary(
        id=row[0],
        agent=row[1],
        caller=row[2],
        name=row[3],
        title=row[4],
        messages=row[5],
        labels=Labels(row[6]),
        created_at=row[7],
        updated_at=row[8],
    )
