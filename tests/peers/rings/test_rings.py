"""Rings of calls over three nodes of ours and a foreign peer, MCP and A2A mixed: each is cut."""

from __future__ import annotations

import sys
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.peers.rings.houses import AGENT_TOOL, town

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.peers.rings.houses import House, Town

pytestmark = pytest.mark.requirement("C8.2", "C8.4")
WAYS = ("mcp", "a2a")
WAITING = "agent:assistant is already waiting further up in this chain"
ALONE = "answer by yourself"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Generator[Town]:
    with town(tmp_path_factory.mktemp("rings")) as found:
        yield found


def cut(house: House, message: str) -> str:
    """Send a message into a ring, and tell how long it took to come back."""
    began = time.monotonic()
    answer = house.tell(message)
    took = time.monotonic() - began
    sys.stderr.write(f"\n{message!r} was cut after {took * 1000:.0f} ms\n")
    assert took < 30, answer
    return answer


def of_agent(house: House, kind: str) -> list[dict[str, Any]]:
    """What is on record of calls of its agent."""
    return [one for one in house.events(kind) if one["context"]["tool"] == "agent:assistant"]


def starts(house: House) -> list[dict[str, Any]]:
    return of_agent(house, "tool_invocation_start")


@pytest.mark.requirement("C8.1", "C8.5", "C9.4")
@pytest.mark.parametrize(("first", "second"), list(product(WAYS, WAYS)))
def test_a_chain_goes_over_three_nodes_signed(nodes: Town, first: str, second: str) -> None:
    answer = nodes["a"].tell(f"{first}:b {second}:c hello")
    assert answer == f"{first}:b > {second}:c > I say hello"
    last = starts(nodes["c"])[-1]
    assert last["context"]["depth"] == 5
    path = last["context"]["ancestors"]
    assert [name.partition("@")[0] for name in path] == [
        "agent:assistant",
        f"mcp:b:{AGENT_TOOL}" if first == "mcp" else "a2a:b",
        "agent:assistant",
        f"mcp:c:{AGENT_TOOL}" if second == "mcp" else "a2a:c",
    ]
    assert len({name.partition("@")[2] for name in path}) == 2
    assert last["labels"] == ["user_input"]
    event = of_agent(nodes["c"], "event_published")[-1]
    assert event["event"] == "EXEC:TOOL_CALL"
    assert (event["payload"]["peer"], event["payload"]["depth"]) == ("b", 5)
    assert event["payload"]["tool"] == "agent:assistant"
    assert of_agent(nodes["b"], "tool_invocation_end")[-1]["labels"] == ["user_input"]


def test_a_tool_is_not_listed_again_by_the_node_that_it_came_from(nodes: Town) -> None:
    for house in [*nodes.houses.values()] * 3:
        assert house.node.ask("POST", "/api/mcp/servers/refresh").status == 200
    for name, house in nodes.houses.items():
        listed = [one["id"] for one in house.node.ask("GET", "/api/tools").json["tools"]]
        first, second = [other for other in nodes.houses if other != name]
        assert f"mcp:{first}:mcp_{second}_{AGENT_TOOL}" in listed
        assert not [one for one in listed if f"mcp_{name}_" in one or one.count("mcp_") > 1]


@pytest.mark.parametrize(("there", "back"), list(product(WAYS, WAYS)))
def test_a_ring_of_two_nodes_is_cut_where_it_closes(nodes: Town, there: str, back: str) -> None:
    before = len(nodes["a"].events("policy_violation"))
    answer = cut(nodes["a"], f"{there}:b {back}:a hello")
    assert WAITING in answer
    assert ALONE in answer
    assert "I say hello" not in answer
    refused = nodes["a"].events("policy_violation")[before:]
    assert [one["rule"] for one in refused] == ["reentry"]


@pytest.mark.parametrize("ways", list(product(WAYS, WAYS, WAYS)))
def test_a_ring_of_three_nodes_is_cut_before_it_closes(nodes: Town, ways: tuple[str, ...]) -> None:
    before = len(nodes["c"].events("policy_violation"))
    first, second, third = ways
    answer = cut(nodes["a"], f"{first}:b {second}:c {third}:a hello")
    assert "would be call 6 in a row" in answer
    assert "I say hello" not in answer
    refused = nodes["c"].events("policy_violation")[before:]
    assert [one["rule"] for one in refused] == ["recursion_limit"]


def answers(
    town: Town, metadata: dict[str, Any], headers: dict[str, str]
) -> Callable[[dict[str, Any]], str]:
    address = town["a"].node.address
    return lambda _: town.foreign.asks(address, town.keys["a"], metadata, headers)


def lowered(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    del town
    return {"openfang/chain": {"depth": 1, "ancestors": [], "calls": 1000}}, {}


def dropped(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    del town
    return {}, {}


def forged(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    return {"openfang/chain": town.token("b", "a", by=Ed25519PrivateKey.generate())}, {}


def for_another(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    return {"openfang/chain": town.token("b", "c")}, {}


def expired(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    now = time.time_ns() // 1_000_000
    return {"openfang/chain": town.token("b", "a", iat=now - 90_000, exp=now - 30_000)}, {}


def replayed(town: Town) -> tuple[dict[str, Any], dict[str, str]]:
    token = town.token("b", "a")
    used = {"message": "once", "session": "once"}
    sent = {"OpenFang-Chain": token}
    answer = town["a"].node.ask("POST", "/api/agents/assistant/message", used, headers=sent)
    assert answer.json["response"] == "I say once"
    assert starts(town["a"])[-1]["labels"] == ["user_input"]
    return {"openfang/chain": token}, {}


@pytest.mark.requirement("C9.4")
@pytest.mark.parametrize("how", [dropped, lowered, forged, for_another, expired, replayed])
def test_a_foreign_peer_that_comes_back_is_counted_whatever_it_says(
    nodes: Town, how: Callable[[Town], Any]
) -> None:
    nodes.foreign.answer = answers(nodes, *how(nodes))
    before = len(nodes["a"].events("policy_violation"))
    answer = cut(nodes["a"], "a2a:f hello")
    assert WAITING in answer, answer
    assert "I say hello" not in answer
    refused = nodes["a"].events("policy_violation")[before:]
    assert [one["rule"] for one in refused] == ["reentry"]
    context = refused[0]["context"]
    assert context["caller"] == "key:stranger"
    assert (context["depth"], context["ancestors"]) == (3, ["agent:assistant", "a2a:f"])


def test_a_foreign_peer_between_two_nodes_cannot_hide_the_chain(nodes: Town) -> None:
    """It passes on what it was told; what it was told says who waits."""
    b = nodes["b"]
    nodes.foreign.answer = lambda told: nodes.foreign.asks(
        b.node.address, nodes.keys["b"], {"openfang/chain": told["openfang/chain"]}, {}
    )
    answer = nodes["a"].tell("a2a:f hello")
    assert "I say hello" in answer
    last = starts(b)[-1]
    assert last["context"]["depth"] == 3
    assert last["labels"] == ["untrusted_agent", "user_input"]


@pytest.mark.requirement("C9.4")
@pytest.mark.parametrize("how", [lowered, forged, for_another, expired, replayed])
def test_who_says_to_act_in_a_chain_and_cannot_prove_it_is_not_trusted(
    nodes: Town, how: Callable[[Town], Any]
) -> None:
    metadata, headers = how(nodes)
    told = nodes.foreign.asks(nodes["a"].node.address, nodes.keys["a"], metadata, headers)
    assert "I say hello" in told
    first = how is lowered  # it says that it is the first, which anybody may
    expected = ["user_input"] if first else ["untrusted_agent", "user_input"]
    assert starts(nodes["a"])[-1]["labels"] == expected


@pytest.mark.requirement("C8.5")
def test_an_edge_that_trips_again_and_again_is_closed_for_a_while(nodes: Town) -> None:
    a = nodes["a"]
    file = a.home.path / "config.toml"
    file.write_text(file.read_text().replace("breaker_secs = 0.0001", "breaker_secs = 30"))
    assert a.node.ask("POST", "/api/config/reload").status == 200
    answers = [cut(a, "mcp:b mcp:a hello") for _ in range(4)]
    assert all(WAITING in answer for answer in answers)
    rules = [one["rule"] for one in a.events("policy_violation")][-4:]
    assert (rules[0], rules[-1]) == ("reentry", "recursion_breaker")
    assert nodes["a"].tell("mcp:b hello") == "mcp:b > I say hello"
