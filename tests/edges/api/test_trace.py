"""The chain that a call belongs to comes in over HTTP, and can only get deeper there (C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C8.1", "C7.2")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


async def chain_of(node: Live, headers: dict[str, str]) -> dict[str, Any]:
    """What the log says of the chain of a call that is sent with these headers."""
    reply = await node.call("mcp:demo:echo", headers=headers)
    assert reply.status == 200, reply.body
    events = [event for event in await node.events() if event.call_id == reply.json["call_id"]]
    assert len(events) == (4 if events[0].context["depth"] > 1 else 3)
    assert all(event.context == events[0].context for event in events)
    return dict(events[0].context)


async def test_a_trace_is_kept_and_a_missing_one_begins_anew(node: Live) -> None:
    assert (await chain_of(node, {"traceparent": PARENT}))["trace"] == TRACE
    assert (await chain_of(node, {"traceparent": PARENT.upper()}))["trace"] == TRACE
    new = [(await chain_of(node, {}))["trace"] for _ in range(2)]
    assert len({TRACE, *new}) == 3


MALFORMED = [
    "",
    "nonsense",
    TRACE,
    PARENT[:-1],
    f"ff-{TRACE}-00f067aa0ba902b7-01",
    f"00-{'0' * 32}-00f067aa0ba902b7-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE[:-1]}x-00f067aa0ba902b7-01",
    PARENT * 50,
]


async def test_a_malformed_trace_begins_anew(node: Live) -> None:
    for malformed in MALFORMED:
        context = await chain_of(node, {"traceparent": malformed})
        assert context["trace"] != TRACE
        assert (len(context["trace"]), context["depth"]) == (32, 1)


async def test_the_trace_of_another_system_is_kept_as_received(node: Live) -> None:
    for starry in ("run-7/Step#2", "!" * 128, "~"):
        context = await chain_of(node, {"X-OpenStarry-Trace-ID": starry})
        assert context["x-openstarry-trace-id"] == starry
    for odd in ("", "two words", "x" * 129, "\xfcmlaut"):
        context = await chain_of(node, {"X-OpenStarry-Trace-ID": odd})
        assert "x-openstarry-trace-id" not in context


async def test_ancestors_make_a_call_deeper(node: Live) -> None:
    context = await chain_of(node, {"OpenFang-Chain": "agent:a,agent:b"})
    assert (context["depth"], context["ancestors"]) == (3, ["agent:a", "agent:b"])
    # As a list comes out of another program: with spaces.
    context = await chain_of(node, {"OpenFang-Chain": "agent:a, agent:b , agent:c"})
    assert (context["depth"], context["ancestors"]) == (4, ["agent:a", "agent:b", "agent:c"])


@pytest.mark.requirement("C8.2")
async def test_depth_5_runs_and_depth_6_is_refused(node: Live, demo: Demo) -> None:
    four = ",".join(f"agent:{number}" for number in range(4))
    assert (await chain_of(node, {"OpenFang-Chain": four}))["depth"] == 5
    for deeper in (f"{four},agent:4", ",".join(["agent:x"] * 500)):
        reply = await node.call("mcp:demo:echo", headers={"OpenFang-Chain": deeper})
        assert reply.told == (429, "recursion_limit")
        assert "Retry-After" not in reply.headers
    assert demo.source.reached == 1


@pytest.mark.requirement("C8.4")
async def test_nothing_makes_a_call_shallower_than_the_first(node: Live) -> None:
    for chain, depth in {"": 1, ",": 1, ",,,,": 1, "\xff": 1, " ": 1, "-1": 2, "0": 2}.items():
        assert (await chain_of(node, {"OpenFang-Chain": chain}))["depth"] == depth


async def test_what_a_peer_writes_into_its_chain_is_redacted_in_the_log(node: Live) -> None:
    secret = "sk-proj-" + "a1B2" * 10
    context = await chain_of(node, {"OpenFang-Chain": secret, "X-OpenStarry-Trace-ID": secret})
    assert secret not in str(context)


@pytest.mark.requirement("C10.1")
async def test_calls_of_one_trace_are_a_run_and_others_are_none(node: Live) -> None:
    alone = [await node.call("mcp:demo:echo") for _ in range(6)]
    assert {reply.status for reply in alone} == {200}
    shared = [await node.call("mcp:demo:echo", headers={"traceparent": PARENT}) for _ in range(6)]
    assert 429 in {reply.status for reply in shared}
