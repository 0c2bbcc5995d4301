"""What the page shows of calls, read aside: the log may be long, and others want the loop."""

from __future__ import annotations

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
from openfang.core.wire import moment
from openfang.storage.calls import call_records, chain_records, records_in, records_of
from openfang.storage.chains import Part, heads, read_so_far
from openfang.storage.members import members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.parts import Parts
    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller
    from openfang.core.watching import Figures, SeenCall
    from openfang.storage.log import LogRow
    from openfang.storage.members import Member
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

    @property
    def several(self) -> bool:
        """Whether several nodes may write the log: then it is told which did."""
        return self._parts.members is not None

    async def nodes(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Show the nodes that share the database, and how each is; none where there is one."""
        if not self.several or _whose(caller) is not None:
            return ()
        own, ends = self._parts.writer.node, await heads(self._parts.database)
        return [node_body(one, own, ends) for one in await members(self._parts.database)]

    async def calls(self, caller: Caller, wanted: CallFilter) -> CallPage:
        """Find calls, the newest first."""
        records, older = await self._aside(
            partial(call_records, wanted=wanted, caller=_whose(caller))
        )
        # A call stands on the page of its newest record, and on no later one.
        last = wanted.before
        found = [one for one in fold(records) if last is None or one.audit < last.of(one.keeper)]
        shown = [one for one in found if wanted.verdict in {"", one.verdict}]
        return CallPage(calls=shown, older=older)

    async def call(self, caller: Caller, call_id: str) -> CallStory:
        """Tell all of one call; another's does not exist."""
        whose = _whose(caller)
        rows = await self._aside(partial(records_of, call_id=call_id))
        events = [AuditEvent.of(row) for row in rows]
        found = fold(map(flat, events))
        if not found or (whose is not None and found[0].caller != whose):
            raise NotFound(f"No call {call_id[:100]} is in the log.", way_out="look in Calls")
        chain = await self._aside(partial(_chain_of, trace=found[0].trace, of_one=rows))
        mine = [one for one in chain if whose is None or one.caller == whose]
        return CallStory(call=found[0], records=events, chain=mine)

    async def newer(
        self, caller: Caller, after: Bookmark | None
    ) -> tuple[Sequence[SeenCall], Bookmark]:
        """Find the calls of which something was written since, and say up to which records."""
        seen, newest = await self._aside(partial(read_so_far, mark=after))
        parts = [_newest_of(*one) for one in seen.behind(newest)]
        if not parts:
            return (), newest
        records = await self._aside(partial(records_in, parts=parts))
        whose = _whose(caller)
        return [one for one in fold(records) if whose is None or one.caller == whose], newest

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


def node_body(member: Member, own: str, ends: Bookmark) -> dict[str, Any]:
    """Show one node of several."""
    return {
        "node": member.node,
        "state": member.state,
        "version": member.version,
        "address": member.address,
        "started_at": moment(member.started_at),
        "heard": member.silent / 1e9,
        "records": ends.of(member.node),
        "here": member.node == own,
    }


def _newest_of(node: str, after: int, last: int) -> Part:
    return Part(node, max(after, last - _AT_ONCE), last)


async def _chain_of(reader: Reader, trace: str, of_one: Sequence[LogRow]) -> list[SeenCall]:
    if not trace:
        return []
    events = [AuditEvent.of(row) for row in await chain_records(reader, trace, of_one)]
    found = fold(flat(one) for one in events if one.context.get("trace") == trace)
    return sorted(found, key=lambda one: one.at)
