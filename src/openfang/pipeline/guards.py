"""All guards together: too deep, too often, too much, or broken on the other side."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from openfang.core.errors import RATE_LIMIT, GuardTripped, SourceFailed
from openfang.core.ids import Kind
from openfang.core.tasks import ANSWER
from openfang.core.values import dataclass
from openfang.guard.breaker import Breakers, Broken, Open
from openfang.guard.concurrency import Slots
from openfang.guard.loops import Block, Loops, Warn, call_key
from openfang.guard.rate import Charge, Granted, Limited, Limiter, Quota

if TYPE_CHECKING:
    from openfang.core.calls import Call, Caller
    from openfang.core.tools import Tool
    from openfang.guard.recursion import Chains, Trip

_SLOW_DOWN = "wait, or raise limits.cells_per_minute, or give the key its own --limit"
_MORE = "no wait helps: raise limits.burst, or make a key with a higher --limit"


@dataclass(slots=True, kw_only=True)
class Guards:
    """The state of every guard, and the order in which they are asked."""

    quota: Quota
    call_cost: int
    message_cost: int
    chains: Chains
    loops: Loops
    limiter: Limiter = field(default_factory=Limiter)
    breakers: Breakers = field(default_factory=Breakers)
    slots: Slots = field(default_factory=Slots)

    def enter(self, call: Call, tool: Tool, now: float) -> None:
        """Count the call in, or refuse it. What was let in must `leave`."""
        _raise_trip(self.chains.enter(call, tool, now))
        try:
            self._spend(call, tool, now)
        except GuardTripped:
            self.chains.leave(call)
            raise

    def _spend(self, call: Call, tool: Tool, now: float) -> None:
        if not call.task:  # the work on a task was paid for with the message that began it
            self._pay(call.caller, self._cost(tool), now)
        if _has_breaker(tool):
            _raise_broken(self.breakers.admit(breaker_of(tool), now), tool)

    def take_message(self, caller: Caller, now: float) -> None:
        """Take what a message to an agent costs, before there is a task for it."""
        self._pay(caller, self.message_cost, now)

    def _pay(self, caller: Caller, cells: int, now: float) -> None:
        self.charge(caller, cells, now)
        _raise_often(self._often(caller, now), caller.id)

    def _cost(self, tool: Tool) -> int:
        """Cells that a call takes; one of an agent is a message, and so is an answer (C12.3)."""
        answers = tool.operation and tool.id.endswith(f":{ANSWER}")
        is_message = tool.kind is Kind.AGENT and (answers or not tool.operation)
        return self.message_cost if is_message else self.call_cost

    def leave(self, call: Call) -> None:
        """Count the call out."""
        self.chains.leave(call)

    def repeat(self, call: Call, tool: Tool, canonical: bytes) -> tuple[bytes | None, str]:
        """Ask the loop guard: returns the call's key, and a warning for its result."""
        run = call.run_id
        if run is None:
            return None, ""
        key = call_key(tool.id, canonical)
        verdict = self.loops.before(run, tool, key)
        if isinstance(verdict, Block):
            raise _blocked(verdict)
        return key, verdict.text if isinstance(verdict, Warn) else ""

    def succeeded(self, tool: Tool) -> None:
        """Tell the breaker of the tool's source that it works."""
        if _has_breaker(tool):
            self.breakers.succeeded(breaker_of(tool))

    def failed(self, tool: Tool, error: str, now: float) -> None:
        """Tell the breaker of the tool's source that it broke, and how."""
        if _has_breaker(tool):
            self.breakers.failed(breaker_of(tool), error, now)

    def abandoned(self, tool: Tool, now: float) -> None:
        """Tell the breaker of the tool's source that nobody waited for the answer."""
        if _has_breaker(tool):
            self.breakers.abandoned(breaker_of(tool), now)

    def still(self, tool: Tool, now: float) -> None:
        """Fail a call that waited for its turn while the source of its tool was found broken."""
        state = self.breakers.state(breaker_of(tool))
        if _has_breaker(tool) and isinstance(state, Open) and now < state.until:
            raise SourceFailed(
                f"{tool.source} keeps failing: {state.error}",
                way_out=f"it is tried again in {state.until - now:.0f} s",
            )

    def look(self, call: Call, tool: Tool, now: float, canonical: bytes) -> None:
        """Raise what `enter` and `repeat` would raise, and change nothing."""
        _raise_trip(self.chains.look(call, tool, now))
        caller = call.caller
        self.allowance(caller, self._cost(tool), now)
        _raise_often(self._often(caller, now, look=True), caller.id)
        if _has_breaker(tool):
            _raise_broken(self.breakers.look(breaker_of(tool), now), tool)
        verdict = self.loops.look(call.run_id, tool, call_key(tool.id, canonical))
        if isinstance(verdict, Block):
            raise _blocked(verdict)

    def charge(self, caller: Caller, cells: int, now: float) -> Granted:
        """Take the cells of a request that is no call from its caller's rate, or refuse it."""
        return granted(self.limiter.charge(caller.id, cells, self._quota(caller), now), caller.id)

    def allowance(self, caller: Caller, cells: int, now: float) -> Granted:
        """Say what `charge` would leave, and take nothing."""
        return granted(self.limiter.look(caller.id, cells, self._quota(caller), now), caller.id)

    def _often(self, caller: Caller, now: float, *, look: bool = False) -> Charge | None:
        """Count a call against its caller's own number of calls, if it has one."""
        most = caller.bounds.calls_per_minute
        if most is None:
            return None
        count = self.limiter.look if look else self.limiter.charge
        return count(f"calls of {caller.id}", 1, Quota(cells_per_minute=most, burst=most), now)

    def _quota(self, caller: Caller) -> Quota:
        own = caller.cells_per_minute
        return self.quota if own is None else Quota(cells_per_minute=own, burst=own)


def breaker_of(tool: Tool) -> str:
    """Whose breaker it is: a server and an extension may have the same name."""
    return f"{tool.kind.value}:{tool.source}"


def _has_breaker(tool: Tool) -> bool:
    """Whether a call of it says how its source is: of an agent, what is done with its tasks not."""
    return tool.kind is not Kind.BUILTIN and not (tool.kind is Kind.AGENT and tool.operation)


def _raise_trip(trip: Trip | None) -> None:
    if trip is not None:
        raise GuardTripped(
            trip.text,
            rule=trip.rule,
            way_out="answer without this call",
            retry_after=trip.retry_after,
            depth=trip.depth,
            path=trip.path,
        )


def granted(charge: Charge, caller: str) -> Granted:
    """Return what was granted, or say how long to wait."""
    if isinstance(charge, Limited):
        wait = charge.retry_after
        when = "it costs more than a whole burst" if wait is None else f"free in {wait:.1f} s"
        raise GuardTripped(
            f"Rate limit of {caller} reached: {when}.",
            rule=RATE_LIMIT,
            way_out=_MORE if wait is None else _SLOW_DOWN,
            retry_after=wait,
        )
    return charge


def _raise_often(charge: Charge | None, caller: str) -> None:
    if isinstance(charge, Limited):
        wait = charge.retry_after or 0.0
        raise GuardTripped(
            f"{caller} has made all its calls of this minute: free in {wait:.1f} s.",
            rule=RATE_LIMIT,
            way_out="wait, or raise resources.max_tool_calls_per_minute in its manifest",
            retry_after=wait,
        )


def _raise_broken(broken: Broken | None, tool: Tool) -> None:
    if broken is not None:
        raise GuardTripped(
            f"{tool.source} keeps failing: {broken.error}",
            rule="breaker_open",
            way_out=f"it is tried again in {broken.retry_after:.0f} s",
            retry_after=broken.retry_after,
        )


def _blocked(block: Block) -> GuardTripped:
    return GuardTripped(block.text, rule=block.rule, way_out="do something else in this run")
