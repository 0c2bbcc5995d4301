"""Depth, re-entry, budgets and deadline of a chain; the breaker of an edge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openfang.core.calls import Call, Caller
from openfang.core.ids import Kind
from openfang.core.purse import Purse, Share
from openfang.core.tools import Tool
from openfang.core.trace import Chain, new_chain, read_chain
from openfang.guard.breaker import BreakerLimits
from openfang.guard.recursion import RUN_RESTS, ChainLimits, Chains, ChainState, Trip, check

LIMITS = ChainLimits()


def agent(name: str) -> Tool:
    return Tool(id=f"agent:{name}", kind=Kind.AGENT, source=name, name=name)


def plain(name: str = "echo") -> Tool:
    return Tool(id=f"builtin:{name}", kind=Kind.BUILTIN, source="builtin", name=name)


def at_depth(depth: int) -> Chain:
    return replace(
        new_chain(), depth=depth, ancestors=tuple(f"agent:{n}" for n in range(depth - 1))
    )


def call_of(tool: Tool, *, run: str | None = None, chain: Chain | None = None) -> Call:
    return Call(tool=tool.id, caller=Caller(id="key:a"), run=run, chain=chain or new_chain())


def rule(trip: Trip | None) -> str | None:
    return trip.rule if trip else None


@pytest.mark.requirement("C8.2")
@pytest.mark.parametrize("tool", [plain(), agent("z")])
def test_depth_five_runs_and_six_is_refused(tool: Tool) -> None:
    for depth in range(1, 6):
        assert check(at_depth(depth), tool, ChainState(), LIMITS, 0.0) is None
    trip = check(at_depth(6), tool, ChainState(), LIMITS, 0.0)
    assert trip is not None
    assert trip.rule == "recursion_limit"
    path = f"agent:0 -> agent:1 -> agent:2 -> agent:3 -> agent:4 -> {tool.id}"
    assert f"call 6 in a row ({path})" in trip.text
    assert "answer by yourself" in trip.text


@pytest.mark.requirement("C8.2")
def test_an_agent_that_waits_in_the_chain_is_not_entered_again() -> None:
    chain = new_chain().deeper("agent:a").deeper("agent:b")
    assert rule(check(chain, agent("a"), ChainState(), LIMITS, 0.0)) == "reentry"
    assert check(chain, agent("c"), ChainState(), LIMITS, 0.0) is None


@pytest.mark.requirement("C8.2")
def test_an_agent_that_allows_it_may_be_entered_again() -> None:
    chain = new_chain().deeper("agent:a").deeper("agent:b")
    limits = ChainLimits(allow_reentry=frozenset({"agent:a"}))
    assert check(chain, agent("a"), ChainState(), limits, 0.0) is None
    assert rule(check(chain, agent("b"), ChainState(), limits, 0.0)) == "reentry"


@pytest.mark.requirement("C8.3")
def test_after_the_deadline_nothing_more_is_called() -> None:
    chain = replace(new_chain(), deadline=10.0)
    assert check(chain, plain(), ChainState(), LIMITS, 9.99) is None
    assert rule(check(chain, plain(), ChainState(), LIMITS, 10.0)) == "chain_deadline"


@pytest.mark.requirement("C8.3")
def test_a_chain_has_so_many_calls_at_once() -> None:
    chains, tool = Chains(ChainLimits(at_once=3)), plain()
    chain = new_chain()
    calls = [call_of(tool, chain=chain) for _ in range(4)]
    assert [rule(chains.enter(call, tool, 0.0)) for call in calls] == [
        None,
        None,
        None,
        "chain_concurrency",
    ]
    chains.leave(calls[0])
    assert chains.enter(calls[3], tool, 0.0) is None


@pytest.mark.requirement("C8.3")
@pytest.mark.parametrize("run", [None, "run"])
def test_the_first_call_of_a_chain_finds_nothing_used(run: str | None) -> None:
    chains, tool = Chains(ChainLimits(at_once=1, agent_calls=1, tool_calls=1)), plain()
    assert chains.enter(call_of(tool, run=run), tool, 0.0) is None


@pytest.mark.requirement("C8.3")
def test_thirty_two_calls_of_a_chain_are_under_way_at_once_unless_configured() -> None:
    chains, tool, chain = Chains(), plain(), new_chain()
    trips = [rule(chains.enter(call_of(tool, chain=chain), tool, 0.0)) for _ in range(33)]
    assert trips == [None] * 32 + ["chain_concurrency"]


class Fanned:
    """Agents that each call ten others, as deep as they are let."""

    def __init__(self, chains: Chains, width: int) -> None:
        self.chains = chains
        self.width = width
        self.ran = 0
        self.rules: set[str] = set()

    def run(self, call: Call, tool: Tool) -> None:
        trip = self.chains.enter(call, tool, 0.0)
        if trip is not None:
            self.rules.add(trip.rule)
            return
        self.ran += 1
        for number in range(self.width):
            child = agent(f"{tool.name}-{number}")
            self.run(call.child(child.id, {}, ancestor=tool.id), child)
        self.chains.leave(call)


@pytest.mark.requirement("C8.3")
def test_a_fan_out_of_ten_is_cut_exactly_at_the_budget() -> None:
    fanned = Fanned(Chains(), 10)
    root = agent("a")
    fanned.run(call_of(root), root)
    assert fanned.ran == 64
    assert fanned.rules == {"recursion_limit", "chain_budget"}
    assert fanned.chains.size == 0


@pytest.mark.requirement("C8.3")
def test_without_the_budget_depth_alone_would_let_all_of_them_run() -> None:
    fanned = Fanned(Chains(ChainLimits(agent_calls=10**9)), 4)
    root = agent("a")
    fanned.run(call_of(root), root)
    assert fanned.ran == sum(4**depth for depth in range(5))


@pytest.mark.requirement("C8.3")
def test_a_run_has_five_hundred_plain_calls_and_other_runs_their_own() -> None:
    chains, tool = Chains(), plain()
    for _ in range(500):
        call = call_of(tool, run="run 1")
        assert chains.enter(call, tool, 0.0) is None
        chains.leave(call)
    assert rule(chains.enter(call_of(tool, run="run 1"), tool, 0.0)) == "run_budget"
    assert chains.enter(call_of(tool, run="run 2"), tool, 0.0) is None
    chains.end_run(call_of(tool, run="run 1").run_id or "")
    assert chains.enter(call_of(tool, run="run 1"), tool, 0.0) is None


@pytest.mark.requirement("C8.3")
def test_direct_calls_have_no_run_and_no_run_budget() -> None:
    chains, tool = Chains(ChainLimits(tool_calls=1)), plain()
    for _ in range(10):
        call = call_of(tool)
        assert chains.enter(call, tool, 0.0) is None
        chains.leave(call)


@pytest.mark.requirement("C8.3")
def test_hops_that_keep_only_the_seeds_trace_id_share_one_budget() -> None:
    chains, tool = Chains(ChainLimits(agent_calls=2)), agent("a")
    answers = [
        rule(chains.enter(call_of(tool, chain=read_chain(starry_id="trace-1")), tool, 0.0))
        for _ in range(3)
    ]
    assert answers == [None, None, "chain_budget"]


@pytest.mark.requirement("C8.3")
def test_a_chain_is_forgotten_with_its_last_call_and_runs_are_bounded() -> None:
    chains, tool = Chains(capacity=5), plain()
    for number in range(50):
        call = call_of(tool, run=f"run {number}")
        chains.enter(call, tool, 0.0)
        chains.leave(call)
    assert chains.size == 0
    assert len(chains._runs) == 5


@pytest.mark.requirement("C8.3")
def test_the_run_that_rested_longest_is_forgotten_first() -> None:
    chains, tool = Chains(ChainLimits(tool_calls=2), capacity=2), plain()
    trips = [rule(chains.enter(call_of(tool, run=run), tool, 0.0)) for run in "abacab"]
    assert trips == [None, None, None, None, "run_budget", None]


@pytest.mark.requirement("C8.5")
def test_three_trips_open_the_edge_for_thirty_seconds() -> None:
    chains, tool = Chains(), agent("a")
    looping = call_of(tool, chain=new_chain().deeper("agent:a"))
    first = [rule(chains.enter(looping, tool, 0.0)) for _ in range(3)]
    assert first == ["reentry", "reentry", "reentry"]
    trip = chains.enter(looping, tool, 1.0)
    assert trip is not None
    assert (trip.rule, trip.retry_after) == ("recursion_breaker", 29.0)
    assert "already waiting" in trip.text
    assert rule(chains.enter(looping, tool, 30.0)) == "reentry"
    assert rule(chains.enter(looping, tool, 31.0)) == "recursion_breaker"


@pytest.mark.requirement("C8.5")
def test_an_open_edge_stops_no_other_edge_and_closes_after_a_good_call() -> None:
    chains, tool = Chains(), agent("b")
    deep = replace(new_chain(), depth=6, ancestors=("agent:x",))
    for _ in range(3):
        chains.enter(call_of(tool, chain=deep), tool, 0.0)
    shallow = replace(new_chain(), depth=2, ancestors=("agent:x",))
    assert rule(chains.enter(call_of(tool, chain=shallow), tool, 5.0)) == "recursion_breaker"
    assert chains.enter(call_of(tool), tool, 5.0) is None
    assert chains.enter(call_of(tool, chain=shallow), tool, 30.0) is None
    assert chains.enter(call_of(tool, chain=shallow), tool, 30.0) is None


@pytest.mark.requirement("C8.5")
def test_who_lies_of_where_it_comes_from_opens_no_edge_of_others() -> None:
    chains, lies = Chains(), replace(at_depth(9), ancestors=("agent:honest",))
    for now in range(4):
        forged = replace(call_of(agent("z"), chain=lies), caller=Caller(id="key:liar"))
        assert chains.enter(forged, agent("z"), float(now)) is not None
    honest = replace(at_depth(2), ancestors=("agent:honest",))
    made = replace(call_of(agent("z"), chain=honest), caller=Caller(id="agent:honest"))
    assert chains.enter(made, agent("z"), 5.0) is None


@pytest.mark.requirement("C8.5")
def test_a_run_that_is_over_does_not_open_the_edge_for_others() -> None:
    chains, tool = Chains(ChainLimits(tool_calls=1)), plain()
    for _ in range(10):
        chains.enter(call_of(tool, run="spent"), tool, 0.0)
    assert chains.enter(call_of(tool, run="fresh"), tool, 0.0) is None


@pytest.mark.requirement("C8.5")
def test_a_call_past_its_deadline_does_not_use_up_the_probe_of_an_open_edge() -> None:
    chains, tool = Chains(), agent("b")
    deep = replace(new_chain(), depth=6, ancestors=("agent:x",))
    for _ in range(3):
        chains.enter(call_of(tool, chain=deep), tool, 0.0)
    good = replace(new_chain(), depth=2, ancestors=("agent:x",))
    late = call_of(tool, chain=replace(good, deadline=1.0))
    assert rule(chains.enter(late, tool, 30.0)) == "chain_deadline"
    assert chains.enter(call_of(tool, chain=good), tool, 30.0) is None


@pytest.mark.requirement("C8.2")
def test_looking_counts_nothing() -> None:
    chains, tool = Chains(ChainLimits(agent_calls=1)), agent("a")
    for _ in range(10):
        assert chains.look(call_of(tool), tool, 0.0) is None
    looping = call_of(tool, chain=new_chain().deeper("agent:a"))
    for _ in range(10):
        assert rule(chains.look(looping, tool, 0.0)) == "reentry"
    assert chains.size == 0


@pytest.mark.requirement("C8.3", "C10.1")
def test_a_run_that_has_rested_begins_to_count_anew() -> None:
    chains = Chains(ChainLimits(tool_calls=2))
    times = (0.0, 1.0, 2.0, 0.5 + RUN_RESTS, 1.5 + RUN_RESTS)
    trips: list[str | None] = []
    for now in times:
        call = call_of(plain(), run="session")
        trip = chains.enter(call, plain(), now)
        trips.append(rule(trip))
        if trip is None:
            chains.leave(call)
    assert trips == [None, None, "run_budget", "run_budget", None]


@pytest.mark.requirement("C2.9", "C8.3")
def test_other_limits_count_at_once_and_what_was_counted_stays() -> None:
    chains, tool = Chains(), plain()
    for _ in range(2):
        assert chains.enter(call_of(tool, run="run"), tool, 0.0) is None
    chains.reenter(frozenset({"agent:a"}))
    chains.configure(ChainLimits(tool_calls=2, edge=BreakerLimits(failures=1, rest=5.0)))
    assert rule(chains.enter(call_of(tool, run="run"), tool, 0.0)) == "run_budget"
    again = call_of(agent("a"), chain=new_chain().deeper("agent:a"))
    assert chains.enter(again, agent("a"), 0.0) is None
    deep = call_of(agent("b"), chain=at_depth(6))
    assert rule(chains.enter(deep, agent("b"), 0.0)) == "recursion_limit"
    opened = chains.look(deep, agent("b"), 1.0)
    assert opened is not None
    assert (opened.rule, opened.retry_after) == ("recursion_breaker", 4.0)
    assert (opened.depth, opened.path) == (0, ())


def spending(usd: float = 1.0, calls: int = 9, chain: Chain | None = None) -> tuple[Chains, Chain]:
    """A chain with a live call to an agent, which is one of its calls, and what it may spend."""
    chains, call = Chains(ChainLimits(agent_calls=calls, usd=usd)), call_of(agent("a"), chain=chain)
    assert chains.enter(call, agent("a"), 0.0) is None
    return chains, call.chain


@pytest.mark.requirement("C8.3")
def test_money_is_no_bound_unless_it_is_said() -> None:
    assert Chains().left(new_chain()) == (64, None)
    chains, chain = spending(usd=0.0)
    assert chains.left(chain) == (8, None)
    chains.pay(chain, 1000.0)
    assert chains.left(chain) == (8, None)
    assert chains.enter(call_of(agent("b"), chain=chain), agent("b"), 0.0) is None


@pytest.mark.requirement("C8.3")
def test_a_chain_that_has_spent_its_money_calls_no_more_agents() -> None:
    chains, chain = spending()
    assert chains.left(chain) == (8, 1.0)
    chains.pay(chain, 0.75)
    assert chains.left(chain) == (8, 0.25)
    assert chains.look(call_of(agent("b"), chain=chain), agent("b"), 0.0) is None
    chains.pay(chain, 0.25)
    trip = chains.look(call_of(agent("b"), chain=chain), agent("b"), 0.0)
    assert rule(trip) == "chain_cost"
    assert chains.look(call_of(plain(), chain=chain), plain(), 0.0) is None
    assert chains.left(new_chain()) == (9, 1.0)


@pytest.mark.requirement("C8.3")
def test_a_refusal_says_whose_budget_is_used_up() -> None:
    chains, chain = spending(calls=1)
    trip = chains.look(call_of(agent("b"), chain=chain), agent("b"), 0.0)
    assert trip is not None
    assert (trip.rule, "(1 here)" in trip.text) == ("chain_budget", True)


@pytest.mark.requirement("C8.3")
@pytest.mark.parametrize("run", [None, "run"])
def test_a_chain_that_is_not_known_has_used_nothing(run: str | None) -> None:
    chains, _ = spending()
    assert chains.state(call_of(plain(), run=run)) == ChainState()


@pytest.mark.requirement("C8.3", "C8.4")
def test_half_of_what_is_left_is_lent_and_what_was_not_used_comes_back() -> None:
    chains, chain = spending(calls=10)
    share = chains.lend(chain)
    assert (share, chains.left(chain)) == (Share(calls=4, usd=0.5), (5, 0.5))
    chains.settle(chain, share, calls=1, usd=0.25)
    assert chains.left(chain) == (8, 0.75)
    another = chains.lend(chain)
    chains.settle(chain, another, calls=9, usd=9.0)
    assert chains.left(chain) == (4, 0.375)


@pytest.mark.requirement("C8.3", "C8.4")
def test_what_was_spent_elsewhere_without_a_bound_is_counted_too() -> None:
    chains, chain = spending(usd=0.0, calls=10)
    share = chains.lend(chain)
    assert share == Share(calls=4, usd=None)
    chains.settle(chain, share, calls=4, usd=0.5)
    assert chains.state(call_of(plain(), chain=chain)).usd == 0.5


@pytest.mark.requirement("C8.3", "C8.4")
def test_what_came_with_a_chain_bounds_it_and_is_used_up_with_it() -> None:
    purse = Purse(calls=5, usd=0.5)
    chains, chain = spending(chain=replace(new_chain(), purse=purse))
    assert (purse.used_calls, chains.left(chain)) == (1, (4, 0.5))
    chains.pay(chain, 0.25)
    assert chains.lend(chain) == Share(calls=2, usd=0.125)
    assert (purse.used_calls, purse.used_usd) == (3, 0.375)
    purse.take(2)
    trip = chains.look(call_of(agent("b"), chain=chain), agent("b"), 0.0)
    assert trip is not None
    assert (trip.rule, "what its caller left of them" in trip.text) == ("chain_budget", True)
