"""All guards together: what a call costs, who refuses it, and what a refusal leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openfang.core.calls import Bounds, Call, Caller
from openfang.core.errors import GuardTripped, SourceFailed
from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.core.trace import new_chain
from openfang.guard.loops import Loops
from openfang.guard.rate import Quota
from openfang.guard.recursion import ChainLimits, Chains
from openfang.pipeline.guards import Guards, breaker_of

pytestmark = pytest.mark.requirement("C12.3", "C3.7")
SERVER = Tool(id="mcp:demo:act", kind=Kind.MCP, source="demo", name="act")
BUILTIN = Tool(id="builtin:act", kind=Kind.BUILTIN, source="builtin", name="act")
AGENT = Tool(id="agent:bob", kind=Kind.AGENT, source="bob", name="bob")
ANSWERS = replace(AGENT, id="agent:bob:tasks/answer", name="tasks/answer", operation=True)
READS = replace(AGENT, id="agent:bob:tasks/get", name="tasks/get", operation=True)
ME = Caller(id="key:me")


def guards() -> Guards:
    return Guards(
        quota=Quota(cells_per_minute=100, burst=100),
        call_cost=5,
        message_cost=30,
        chains=Chains(ChainLimits(at_once=1)),
        loops=Loops(),
    )


def call_of(tool: Tool, caller: Caller = ME, **fields: Any) -> Call:
    return Call(tool=tool.id, caller=caller, **fields)


def tripped(guards: Guards, call: Call, tool: Tool, now: float = 0.0) -> GuardTripped:
    with pytest.raises(GuardTripped) as looked:
        guards.look(call, tool, now, b"{}")
    with pytest.raises(GuardTripped) as entered:
        guards.enter(call, tool, now)
    assert (looked.value.rule, looked.value.message) == (entered.value.rule, entered.value.message)
    return entered.value


@pytest.mark.parametrize(
    ("tool", "left"), [(SERVER, 95), (BUILTIN, 95), (AGENT, 70), (ANSWERS, 70), (READS, 95)]
)
def test_a_message_to_an_agent_costs_more_than_a_call(tool: Tool, left: int) -> None:
    all_of_them = guards()
    all_of_them.enter(call_of(tool), tool, 0.0)
    assert all_of_them.allowance(ME, 1, 0.0).remaining == left - 1


def test_the_work_on_a_task_is_paid_for_already() -> None:
    all_of_them = guards()
    all_of_them.take_message(ME, 0.0)
    all_of_them.enter(call_of(AGENT, task="a task"), AGENT, 0.0)
    assert all_of_them.charge(ME, 1, 0.0).remaining == 69


def test_who_has_a_rate_of_their_own_is_held_to_that() -> None:
    all_of_them, slow = guards(), Caller(id="key:slow", cells_per_minute=10)
    for _ in range(2):
        call = call_of(SERVER, slow)
        all_of_them.enter(call, SERVER, 0.0)
        all_of_them.leave(call)
    refused = tripped(all_of_them, call_of(SERVER, slow), SERVER)
    assert (refused.rule, refused.retry_after) == ("rate_limit", 30.0)
    assert "--limit" in refused.way_out


def test_what_costs_more_than_a_burst_says_that_no_wait_helps() -> None:
    all_of_them = guards()
    refused = tripped(all_of_them, call_of(AGENT, Caller(id="a", cells_per_minute=10)), AGENT)
    assert refused.retry_after is None
    assert "no wait helps" in refused.way_out


def test_who_may_make_so_many_calls_a_minute_makes_no_more() -> None:
    all_of_them = guards()
    agent = Caller(id="agent:bob", bounds=Bounds(calls_per_minute=2))
    for _ in range(2):
        call = call_of(BUILTIN, agent)
        all_of_them.look(call, BUILTIN, 0.0, b"{}")
        all_of_them.enter(call, BUILTIN, 0.0)
        all_of_them.leave(call)
    refused = tripped(all_of_them, call_of(BUILTIN, agent), BUILTIN)
    assert (refused.rule, refused.retry_after) == ("rate_limit", 30.0)
    assert "max_tool_calls_per_minute" in refused.way_out


def test_a_call_that_is_refused_for_its_rate_is_not_under_way() -> None:
    all_of_them, chain = guards(), new_chain()
    poor = replace(call_of(SERVER, Caller(id="key:poor", cells_per_minute=1)), chain=chain)
    tripped(all_of_them, poor, SERVER)
    all_of_them.enter(replace(call_of(SERVER), chain=chain), SERVER, 0.0)
    assert tripped(all_of_them, replace(call_of(SERVER), chain=chain), SERVER).rule == (
        "chain_concurrency"
    )


def break_down(all_of_them: Guards, tool: Tool) -> None:
    for _ in range(5):
        all_of_them.failed(tool, "it fell over", 0.0)


@pytest.mark.parametrize("tool", [SERVER, AGENT])
def test_a_source_that_keeps_failing_is_left_alone(tool: Tool) -> None:
    all_of_them = guards()
    break_down(all_of_them, tool)
    refused = tripped(all_of_them, call_of(tool), tool, 10.0)
    assert (refused.rule, refused.retry_after) == ("breaker_open", 20.0)
    assert "it fell over" in refused.message
    with pytest.raises(SourceFailed, match="it fell over"):
        all_of_them.still(tool, 29.0)
    all_of_them.still(tool, 30.0)
    all_of_them.enter(call_of(tool), tool, 30.0)
    all_of_them.succeeded(tool)
    all_of_them.enter(call_of(tool), tool, 30.0)


@pytest.mark.parametrize("tool", [BUILTIN, READS])
def test_what_says_nothing_about_a_source_breaks_none(tool: Tool) -> None:
    all_of_them = guards()
    break_down(all_of_them, tool)
    all_of_them.abandoned(tool, 0.0)
    all_of_them.succeeded(tool)
    all_of_them.still(tool, 0.0)
    all_of_them.enter(call_of(tool), tool, 0.0)
    assert all_of_them.breakers.size == 0


def test_a_probe_that_nobody_waited_for_leaves_its_turn_to_the_next() -> None:
    all_of_them = guards()
    break_down(all_of_them, SERVER)
    all_of_them.enter(call_of(SERVER), SERVER, 30.0)
    assert tripped(all_of_them, call_of(SERVER), SERVER, 31.0).rule == "breaker_open"
    all_of_them.abandoned(SERVER, 31.0)
    all_of_them.enter(call_of(SERVER), SERVER, 31.0)


def test_a_server_and_an_extension_of_one_name_break_apart() -> None:
    assert breaker_of(SERVER) != breaker_of(replace(SERVER, kind=Kind.EXTENSION))


@pytest.mark.requirement("C10.2", "C10.4")
def test_a_run_that_repeats_itself_is_warned_and_then_blocked() -> None:
    all_of_them, call = guards(), call_of(BUILTIN, run="a run")
    heard = [all_of_them.repeat(call, BUILTIN, b"{}") for _ in range(4)]
    assert [bool(warning) for _, warning in heard] == [False, False, True, True]
    assert len({key for key, _ in heard}) == 1
    for refuse in (
        lambda: all_of_them.look(call, BUILTIN, 0.0, b"{}"),
        lambda: all_of_them.repeat(call, BUILTIN, b"{}"),
    ):
        with pytest.raises(GuardTripped) as blocked:
            refuse()
        assert blocked.value.rule == "identical_calls"
    assert all_of_them.repeat(call_of(BUILTIN), BUILTIN, b"{}") == (None, "")
