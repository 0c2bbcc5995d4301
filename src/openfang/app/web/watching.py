"""What the page shows of calls, read aside: the log may be long, and others want the loop."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from openfang.app.auth.identify import require
from openfang.app.web.figures import Tallies
from openfang.app.web.folding import flat, fold
from openfang.app.web.policy import replay, rules_body
from openfang.core.calls import Role
from openfang.core.errors import NotFound
from openfang.core.events import AuditEvent
from openfang.core.watching import CallFilter, CallPage, CallStory
from openfang.storage.calls import (
    call_records,
    chain_records,
    newest_record,
    records_after,
    records_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.watching import Figures, SeenCall
    from openfang.storage.ports import Look, Reader

T = TypeVar("T")
_WATCHERS: Final = (Role.AUDITOR, Role.ADMIN)
_AT_ONCE: Final = 2_000


class HomeWatch:
    """The calls of one home."""

    def __init__(self, parts: Parts, environ: Mapping[str, str]) -> None:
        self._parts = parts
        self._environ = environ
        self._tallies = Tallies()
        self._counting = anyio.Lock()

    async def calls(self, caller: Caller, wanted: CallFilter) -> CallPage:
        """Find calls, the newest first."""
        records, older = await self._aside(
            partial(call_records, wanted=wanted, caller=_whose(caller))
        )
        # A call stands on the page of its newest record, and on no later one.
        last = wanted.before or sys.maxsize
        found = [one for one in fold(records) if one.audit < last]
        shown = [one for one in found if wanted.verdict in {"", one.verdict}]
        return CallPage(calls=shown, older=older)

    async def call(self, caller: Caller, call_id: str) -> CallStory:
        """Tell all of one call; another's does not exist."""
        whose = _whose(caller)
        events = await self._aside(partial(_events_of, call_id=call_id))
        found = fold(map(flat, events))
        if not found or (whose is not None and found[0].caller != whose):
            raise NotFound(f"No call {call_id[:100]} is in the log.", way_out="look in Calls")
        near = (events[0].audit_id, events[-1].audit_id)
        chain = await self._aside(partial(_chain_of, trace=found[0].trace, near=near))
        mine = [one for one in chain if whose is None or one.caller == whose]
        return CallStory(call=found[0], records=events, chain=mine)

    async def newer(self, caller: Caller, after: int) -> tuple[Sequence[SeenCall], int]:
        """Find the calls of which something was written since, and say up to which record."""
        newest = await self._aside(newest_record)
        if newest <= after:
            return (), newest
        first = max(after, newest - _AT_ONCE)
        records = await self._aside(partial(records_after, after=first, limit=_AT_ONCE))
        whose = _whose(caller)
        calls = [one for one in fold(records) if whose is None or one.caller == whose]
        return calls, max(newest, records[-1]["audit_id"] if records else newest)

    async def figures(self, caller: Caller, minutes: int, source: str = "") -> Figures:
        """Add up what happened in the last minutes."""
        async with self._counting:
            with anyio.CancelScope(shield=True):  # it counts what it has read
                await self._aside(self._tallies.read_on)
        now = self._parts.clock.time_ns()
        return self._tallies.figures(_whose(caller), minutes, now, source)

    async def rules(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Show the operator's rules that are in force."""
        await require(self._parts, caller, Role.AUDITOR)
        return rules_body(self._parts)

    async def replay(self, caller: Caller, draft: str) -> Mapping[str, Any]:
        """Hold the newest calls against a draft of rules."""
        await require(self._parts, caller, Role.AUDITOR)
        return await replay(self._parts, draft, self._environ)

    async def _aside(self, look: Look[T]) -> T:
        return await self._parts.database.aside(look)


def _whose(caller: Caller) -> str | None:
    """Whose calls somebody may see: everybody's, or their own."""
    return None if caller.role in _WATCHERS else caller.id


async def _events_of(reader: Reader, call_id: str) -> list[AuditEvent]:
    return [AuditEvent.of(row) for row in await records_of(reader, call_id)]


async def _chain_of(reader: Reader, trace: str, near: tuple[int, int]) -> list[SeenCall]:
    if not trace:
        return []
    events = [AuditEvent.of(row) for row in await chain_records(reader, trace, near)]
    found = fold(flat(one) for one in events if one.context.get("trace") == trace)
    return sorted(found, key=lambda one: one.at)
