"""What people do with sessions: list, read, export and delete them. Another caller's do not exist.

An administrator and an auditor read everybody's; only an administrator deletes another's.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from openfang.app.auth.identify import require
from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound, Rejected
from openfang.core.events import SESSION_DELETED, Record
from openfang.core.sessions import CURSOR, FORMATS, SessionPage, SessionTurn
from openfang.core.transcript import heading, section
from openfang.core.values import dataclass
from openfang.core.wire import session_body, turn_body
from openfang.storage.agent_runs import AgentRunStore
from openfang.storage.queued import left_by
from openfang.storage.sessions import SessionStore, delete

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.sessions import SessionSummary
    from openfang.storage.ports import Reader

Write: TypeAlias = "Callable[[SessionTurn], bytes]"
_WATCHERS: Final = (Role.AUDITOR, Role.ADMIN)
_CURSOR: Final = re.compile(CURSOR.replace("$", r"\Z"))
_MOST_SHOWN: Final = 10_000_000
_WAY_OUT: Final = "openfang sessions list"


@dataclass(frozen=True, slots=True)
class Conversations:
    """The sessions that one caller may see."""

    parts: Parts
    caller: Caller

    async def page(self, *, agent: str, after: str, limit: int) -> SessionPage:
        """List the newest behind a cursor."""
        if after and not _CURSOR.match(after):
            raise Rejected(
                f"{after!r} is not where a list of sessions goes on.",
                status=400,
                rule="query",
                way_out="pass what the page before says, or leave it out",
            )
        whose = None if self.caller.role in _WATCHERS else self.caller.id
        found = await self._store.page(caller=whose, agent=agent, after=after, limit=limit + 1)
        shown = found[:limit]
        return SessionPage(
            sessions=shown,
            total=await self._store.count(caller=whose, agent=agent),
            after=shown[-1].cursor if found[limit:] else None,
        )

    async def show(self, session_id: str) -> tuple[SessionSummary, list[SessionTurn]]:
        """Read one, whole."""
        session, turns, size = await self._find(session_id), list[SessionTurn](), 0
        async for chunk, written in self._read(session, _as_lines):
            turns += chunk
            size += len(written)
            if size > _MOST_SHOWN:
                raise Rejected(
                    f"The session has more than {_MOST_SHOWN} bytes.",
                    status=422,
                    rule="session_too_long",
                    way_out=f"openfang sessions export {session_id}",
                )
        return session, turns

    async def export(self, session_id: str, form: str) -> AsyncGenerator[bytes]:
        """Write one out, however long it is; one that does not exist is told at once."""
        if form not in FORMATS:
            raise Rejected(
                f"A session is not exported as {form!r}.",
                status=400,
                rule="query",
                way_out=f"one of {', '.join(FORMATS)}",
            )
        session = await self._find(session_id)
        if form == "md":
            return self._written(session, heading(session).encode(), partial(_as_markdown, session))
        return self._written(session, _line({"session": session_body(session)}), _as_lines)

    async def delete(self, session_id: str) -> SessionSummary:
        """Delete one and all that was said in it, on record."""
        session = await self._find(session_id)
        if session.caller != self.caller.id:
            await require(self.parts, self.caller)
        steps = delete(session, await self._gone(session))
        records = [self._record(session)]
        try:
            for step in steps:
                await self.parts.broker.append(records, step)
                records = []
        except Conflict:
            await self._find(session_id)
            raise Conflict(
                f"The session {session_id} is being answered.",
                way_out=f"openfang sessions delete {session_id}, once it is",
            ) from None
        return session

    @property
    def _store(self) -> SessionStore:
        return SessionStore(self.parts.database)

    async def _find(self, session_id: str) -> SessionSummary:
        found = await self._store.get(session_id)
        own = found is not None and found.caller == self.caller.id
        if found is None or not (own or self.caller.role in _WATCHERS):
            raise NotFound(f"No session {session_id}.", way_out=_WAY_OUT)
        return found

    async def _gone(self, session: SessionSummary) -> frozenset[str]:
        """Name the processes that died while they were at it: nobody is hindered by those."""
        runs = await AgentRunStore(self.parts.database).under_way_in(session.id)
        return await left_by(self.parts.broker.process.roll, {run.process for run in runs})

    def _record(self, session: SessionSummary) -> Record:
        payload = {
            "session": session.id,
            "agent": session.agent,
            "of": session.caller,
            "messages": session.messages,
        }
        context = {"caller": self.caller.id}
        return Record(event=SESSION_DELETED, payload=payload, context=context)

    async def _written(
        self, session: SessionSummary, head: bytes, write: Write
    ) -> AsyncGenerator[bytes]:
        yield head
        async for _, written in self._read(session, write):
            yield written

    async def _read(
        self, session: SessionSummary, write: Write
    ) -> AsyncIterator[tuple[list[SessionTurn], bytes]]:
        """Read all turns and write them out, some at once and aside: a session may be long."""
        seq = 0
        while True:
            look = partial(_turns, session=session.id, write=write, after=seq)
            turns, written = await self.parts.database.aside(look)
            if not turns:
                return
            yield turns, written
            seq = turns[-1].seq


async def _turns(
    reader: Reader, session: str, write: Write, after: int
) -> tuple[list[SessionTurn], bytes]:
    found = await SessionStore(reader).turns(session, after)
    return found, b"".join(map(write, found))


def _as_lines(turn: SessionTurn) -> bytes:
    return _line({"turn": turn_body(turn)})


def _as_markdown(session: SessionSummary, turn: SessionTurn) -> bytes:
    return section(session, turn).encode()


def _line(body: object) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
