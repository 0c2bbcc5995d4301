"""The recursion guard: how deep, how many, how many at once and until when a chain may go (C8).

Depth alone would still allow 111,110 calls at a fan-out of ten, so a chain also has a budget of
calls to agents and peers, and a run one of plain tools.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.purse import Share, least
from openfang.core.values import dataclass
from openfang.guard.breaker import BreakerLimits, Breakers

if TYPE_CHECKING:
    from openfang.core.calls import Call
    from openfang.core.tools import Tool
    from openfang.core.trace import Chain
    from openfang.guard.breaker import Broken

_EDGE = BreakerLimits(failures=3, rest=30.0)
_ALONE = "Do not call it again: answer by yourself with what you already have."
# A run that is over says nothing about the edge; a chain that turns in circles does.
_COUNTS_AGAINST_EDGE = frozenset({"recursion_limit", "reentry", "chain_budget"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLimits:
    """What one chain and one run may use; no money is no bound."""

    depth: int = 5
    agent_calls: int = 64
    tool_calls: int = 500
    at_once: int = 32
    allow_reentry: frozenset[str] = frozenset()
    edge: BreakerLimits = _EDGE
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """What a chain and its run have used: calls to agents and peers, plain calls, calls at once.

    `usd` is what its agents spent.
    """

    agent_calls: int = 0
    tool_calls: int = 0
    live: int = 0
    usd: float = 0.0


_UNUSED = ChainState()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """Refused, in words that tell a model to stop. `path` is who waits, and what was called."""

    rule: str
    text: str
    retry_after: float | None = None
    depth: int = 0
    path: tuple[str, ...] = ()


def check(  # noqa: PLR0911, PLR0913 - one line per rule, in the order of the contract
    chain: Chain,
    tool: Tool,
    state: ChainState,
    limits: ChainLimits,
    now: float,
    *,
    tool_calls: int | None = None,
) -> Trip | None:
    """Say whether this call of `tool` is one too many; `tool_calls` is its caller's own bound."""
    if chain.depth > limits.depth:
        path = " -> ".join((*chain.ancestors, tool.id))
        why = f"{tool.id} would be call {chain.depth} in a row ({path}); the limit is"
        return _trip("recursion_limit", f"{why} {limits.depth}")
    if chain.ancestors and tool.calls_on and _waits(tool.actor, chain, limits):
        why = f"{tool.actor} is already waiting further up in this chain"
        return _trip("reentry", why)
    if chain.deadline is not None and now >= chain.deadline:
        return _trip("chain_deadline", "The time for this chain of calls is over")
    if state.live >= limits.at_once:
        why = f"This chain has {state.live} calls under way at once, which is the limit"
        return _trip("chain_concurrency", why)
    if tool.bounded_by_run:
        return _spent(chain, state, limits)
    most = limits.tool_calls if tool_calls is None else min(limits.tool_calls, tool_calls)
    if state.tool_calls < most:
        return None
    why = f"This run has used its {most} tool calls"
    return _trip("run_budget", why)


def _waits(actor: str, chain: Chain, limits: ChainLimits) -> bool:
    return actor in chain.ancestors and actor not in limits.allow_reentry


def _spent(chain: Chain, state: ChainState, limits: ChainLimits) -> Trip | None:
    """Say which budget of a chain is used up: ours, or what was left of it where it came from."""
    calls, usd = left(chain, state, limits)
    if calls < 1:
        why = "This chain has used its calls to agents and peers"
        most = limits.agent_calls
        bound = f"{most} here" if state.agent_calls >= most else "what its caller left of them"
        return _trip("chain_budget", f"{why} ({bound})")
    if usd is not None and usd <= 0:
        why = "This chain has spent the money that it may spend"
        return _trip("chain_cost", f"{why} (${state.usd:.4f} here)")
    return None


def left(chain: Chain, state: ChainState, limits: ChainLimits) -> tuple[int, float | None]:
    """Say how many calls, and how much money, are left to a chain; None is no bound."""
    purse = chain.purse
    calls = max(0, limits.agent_calls - state.agent_calls)
    usd = max(0.0, limits.usd - state.usd) if limits.usd else None
    if purse is None:
        return calls, usd
    return least(calls, purse.calls) or 0, least(usd, purse.usd)


def _trip(rule: str, why: str) -> Trip:
    return Trip(rule=rule, text=f"{why}. {_ALONE}")


RUN_RESTS = 60.0
_NO_CALLS = (0, 0.0)


@dataclass(slots=True)
class _Used:
    agent_calls: int = 0
    live: int = 0
    usd: float = 0.0


_NOTHING = _Used()


class Chains:
    """What every chain with a live call, and every recent run, has used so far.

    A chain is known by its trace while any call of it is live (its first call waits for all the
    others), so there are never more chains than calls. A run is known until `capacity` others have
    been seen after it, or until it has rested: a session that lasts all day has not run away.
    """

    __slots__ = ("_capacity", "_chains", "_edges", "_limits", "_runs")

    def __init__(self, limits: ChainLimits | None = None, *, capacity: int = 10_000) -> None:
        self._limits = limits or ChainLimits()
        self._capacity = capacity
        self._chains: dict[str, _Used] = {}
        self._runs: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._edges = Breakers(self._limits.edge)

    def configure(self, limits: ChainLimits) -> None:
        """Judge by other limits from now on; what was counted stays, and who may come again."""
        self._limits = replace(limits, allow_reentry=self._limits.allow_reentry)
        self._edges.configure(limits.edge)

    def reenter(self, tools: frozenset[str]) -> None:
        """Let these be called again while they wait further up in the chain."""
        self._limits = replace(self._limits, allow_reentry=tools)

    @property
    def size(self) -> int:
        """How many chains have a live call."""
        return len(self._chains)

    def state(self, call: Call) -> ChainState:
        """Show what the chain and the run of this call have used."""
        used = self._chains.get(call.chain.key)
        run = call.run_id
        if used is None and run is None:
            return _UNUSED
        return ChainState(
            agent_calls=used.agent_calls if used else 0,
            live=used.live if used else 0,
            tool_calls=self._runs.get(run, _NO_CALLS)[0] if run is not None else 0,
            usd=used.usd if used else 0.0,
        )

    def left(self, chain: Chain) -> tuple[int, float | None]:
        """Say how many calls to agents and peers, and how much money, are left to a chain."""
        used = self._chains.get(chain.key, _NOTHING)
        state = ChainState(agent_calls=used.agent_calls, usd=used.usd)
        return left(chain, state, self._limits)

    def pay(self, chain: Chain, usd: float) -> None:
        """Count money that was spent in a chain."""
        self._take(chain, 0, usd)

    def lend(self, chain: Chain) -> Share:
        """Lend half of what is left to who goes on with a chain elsewhere: all of it is taken.

        Only so can calls side by side on several nodes not use more than there is.
        """
        calls, usd = self.left(chain)
        share = Share(calls=calls // 2, usd=None if usd is None else usd / 2)
        self._take(chain, share.calls, share.usd or 0.0)
        return share

    def settle(self, chain: Chain, share: Share, calls: int, usd: float) -> None:
        """Take back what was not used of a share."""
        kept = 0.0 if share.usd is None else max(0.0, share.usd - usd)
        self._take(chain, -max(0, share.calls - calls), usd if share.usd is None else -kept)

    def _take(self, chain: Chain, calls: int, usd: float) -> None:
        used = self._chains.get(chain.key)
        if used is not None:
            used.agent_calls += calls
            used.usd += usd
        if chain.purse is not None:
            chain.purse.take(calls, usd)

    def enter(self, call: Call, tool: Tool, now: float) -> Trip | None:
        """Count the call in, or refuse it. What was let in must `leave`."""
        edge = _edge(call, tool) if self._edges.size else ""
        broken = self._edges.admit(edge, now) if edge else None
        if broken is not None:
            return _edge_open(broken)
        trip = self._check(call, tool, now)
        if trip is None:
            if edge:
                self._edges.succeeded(edge)
            self._count(call, tool, now)
        elif trip.rule in _COUNTS_AGAINST_EDGE:
            self._edges.failed(_edge(call, tool), trip.text, now)
        elif edge:
            self._edges.abandoned(edge, now)
        return trip

    def look(self, call: Call, tool: Tool, now: float) -> Trip | None:
        """Say what `enter` would answer, and change nothing."""
        broken = self._edges.look(_edge(call, tool), now)
        if broken is not None:
            return _edge_open(broken)
        return self._check(call, tool, now)

    def _check(self, call: Call, tool: Tool, now: float) -> Trip | None:
        run = self._runs.get(call.run_id or "")
        if run is not None and now - run[1] > RUN_RESTS:
            self.end_run(call.run_id or "")
        own, chain = call.caller.bounds.tool_calls, call.chain
        trip = check(chain, tool, self.state(call), self._limits, now, tool_calls=own)
        if trip is None:
            return None
        return replace(trip, depth=chain.depth, path=(*chain.ancestors, tool.id))

    def leave(self, call: Call) -> None:
        """Count a call out that had been let in; the last one takes its chain along."""
        key = call.chain.key
        used = self._chains[key]
        used.live -= 1
        if not used.live:
            del self._chains[key]

    def end_run(self, run: str) -> None:
        """Forget a run that is over."""
        self._runs.pop(run, None)

    def _count(self, call: Call, tool: Tool, now: float) -> None:
        chain = call.chain
        used = self._chains.get(chain.key)
        if used is None:
            used = self._chains[chain.key] = _Used()
        used.live += 1
        if tool.bounded_by_run:
            used.agent_calls += 1
            if chain.purse is not None:
                chain.purse.take(1)
        elif call.run_id is not None:
            self._count_run(call.run_id, now)

    def _count_run(self, run: str, now: float) -> None:
        runs = self._runs
        runs[run] = runs.get(run, _NO_CALLS)[0] + 1, now
        runs.move_to_end(run)
        if len(runs) > self._capacity:
            runs.popitem(last=False)


def _edge(call: Call, tool: Tool) -> str:
    """Name who calls what: a caller that lies of where it comes from closes its own edges alone."""
    ancestors = call.chain.ancestors[-1:]
    return " -> ".join((call.caller.id, *ancestors, tool.id))


def _edge_open(broken: Broken) -> Trip:
    return Trip(rule="recursion_breaker", text=broken.error, retry_after=broken.retry_after)
