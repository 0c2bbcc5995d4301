"""The path of a call, step by step, seen by who calls over HTTP and over MCP."""

from __future__ import annotations

import json
from contextlib import closing
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.house import house, server, traced, until

if TYPE_CHECKING:
    from collections.abc import Generator
    from http.client import HTTPConnection

    from tests.contract.house import Guest, House


GATE = """
import time

from openfang.core.decisions import ALLOW, Deny


class Weekday:
    name = "weekday"

    def check(self, tool, call):
        word = call.arguments.get("text", "")
        if word == "raise":
            raise RuntimeError("of no concern to the caller")
        if word == "sleep":
            time.sleep(0.3)
        return Deny("Not on a Friday", "friday") if word == "friday" else ALLOW
"""
GATED = '[plugins]\ngates = ["python:gates.py:Weekday"]\n'


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """A node with a gate of the operator's own."""
    entry = server("demo", "get_note", "write_note")
    with house(tmp_path_factory.mktemp("gated"), GATED, entry, files={"gates.py": GATE}) as running:
        running.connected("demo")
        yield running


def verdicts(problem: Any) -> dict[str, str]:
    return {gate["gate"]: gate["verdict"] for gate in problem["gates"]}


def said(answer: Any) -> str:
    assert answer["result"]["isError"]
    return answer["result"]["content"][0]["text"]


@pytest.mark.requirement("C7.8")
@pytest.mark.parametrize(
    ("text", "rule", "why"),
    [
        ("friday", "friday", "Not on a Friday"),
        ("raise", "gate_error", "raised an error"),
        ("sleep", "gate_timeout", "took over 100 ms"),
    ],
)
def test_a_gate_of_the_operators_own_is_asked_after_the_six(
    gated: House, text: str, rule: str, why: str
) -> None:
    assert gated.call("mcp:demo:get_note", {"text": "monday"}).json["outcome"] == "ok"
    refused = gated.call("mcp:demo:get_note", {"text": text})
    assert (refused.status, refused.rule) == (403, rule)
    assert list(verdicts(refused.json).values())[-1] == "deny"
    assert why in refused.json["detail"]
    over_mcp = said(gated.use("mcp_demo_get_note", {"text": text}))
    assert over_mcp.startswith("Policy violation: ")
    assert why in over_mcp


@pytest.mark.requirement("C7.15")
def test_an_adapter_raises_a_risk_and_lowers_one_where_trust_is_high(node: House) -> None:
    risks = {id_: tool["risk"] for id_, tool in node.tools().items()}
    assert (risks["mcp:demo:get_item"], risks["mcp:demo:get_odd_item"]) == ("HIGH", "HIGH")
    assert risks["mcp:demo:delete_calm_item"] == risks["mcp:demo:delete_item"] != "LOW"
    assert risks["mcp:kind:delete_calm_item"] == "LOW"


@pytest.mark.requirement("C7.15")
def test_audit_handlers_hear_everything_in_order_and_delay_no_call(node: House) -> None:
    home = node.daemon.home.path
    (home / "wait").touch()
    calls = [node.call("mcp:demo:get_note").json for _ in range(5)]
    last = calls[-1]["audit"]["end"]

    def numbers() -> list[int]:
        heard = home / "heard"
        return [int(line) for line in heard.read_text().splitlines()] if heard.exists() else []

    assert last not in numbers()
    (home / "wait").unlink()
    until(lambda: last in numbers())
    assert numbers() == list(range(1, numbers()[-1] + 1))


GATES: list[tuple[str, dict[str, Any], str, str]] = [
    ("mcp:demo:write_note", {"mode": "planning"}, "mode", "Planning mode cannot use tools with side effects"),  # noqa: E501 - the seed's words
    ("mcp:demo:write_note", {"blacklist": ["fs.write"]}, "policy", "Side effect fs.write is blacklisted"),  # noqa: E501 - the seed's words
    ("mcp:demo:wipe_disk", {}, "admin_token", "Tool requires admin_token"),
]  # fmt: skip


@pytest.mark.requirement("C7.6", "C7.7", "C7.13")
@pytest.mark.parametrize(("tool", "context", "gate", "words"), GATES)
def test_a_gate_says_no_in_the_seeds_words_over_both_edges_and_on_record(
    node: House, tool: str, context: dict[str, Any], gate: str, words: str
) -> None:
    refused = node.call(tool, **context)
    assert (refused.status, refused.json["detail"]) == (403, f"Policy violation: {words}")
    after = list(verdicts(refused.json)).index(gate) + 1
    assert set(list(verdicts(refused.json).values())[after:]) <= {"not_reached"}
    wire = tool.replace("mcp:", "mcp_").replace(":", "_")
    answer = node.use(wire, **({"openfang/context": context} if context else {}))
    assert said(answer).startswith(f"Policy violation: {words}")
    one, another = node.records(event="policy_violation", tool=tool)[-2:]
    assert (one["step"], one["gate"], one["rule"]) == ("gate", gate, refused.rule)
    assert (another["gate"], another["rule"]) == (gate, refused.rule)
    assert node.records(event="policy_decision", tool=tool)[-1]["decision"] == "deny"


@pytest.mark.requirement("C7.6", "C7.7")
def test_a_frozen_spec_and_a_project_are_asked_for_and_looked_up(node: House) -> None:
    nobody = node.guest("nobody", tools=["*"], projects=[])
    refused = nobody.call("mcp:demo:write_note")
    detail = refused.json["detail"]
    assert (refused.status, detail) == (403, "Policy violation: Tool requires project_id")
    parked = node.call("mcp:demo:write_note")
    assert (parked.status, parked.rule) == (202, "spec_not_frozen")
    assert "Execution mode requires spec_frozen=True" in parked.json["detail"]
    made_up = node.call("mcp:demo:write_note", spec_hash="0" * 64)
    assert (made_up.status, made_up.rule) == (403, "spec_not_frozen")
    frozen = node.ask("POST", "/api/specs", {"name": "plan", "content": "write"}).json["hash"]
    done = node.call("mcp:demo:write_note", spec_hash=frozen)
    assert (done.status, done.json["outcome"]) == (200, "ok")


@pytest.mark.requirement("C8.3", "C7.4", "C10.4")
def test_a_run_has_a_budget_of_plain_tools(node: House) -> None:
    answers = [
        node.call("mcp:demo:get_note", {"text": str(n)}, headers=traced(1)) for n in range(21)
    ]
    assert [answer.status for answer in answers] == [200] * 20 + [429]
    assert answers[-1].rule == "run_budget"
    assert "answer by yourself" in answers[-1].json["detail"]
    assert node.call("mcp:demo:get_note", headers=traced(2)).status == 200


@pytest.mark.requirement("C8.3", "C8.5")
@pytest.mark.needs("bwrap")
def test_a_chain_has_a_budget_of_calls_to_agents_and_who_trips_often_is_kept_out(
    node: House,
) -> None:
    done = node.call("agent:busy", {"message": "x"}).json
    said = done["structured"]["response"].split("; ")
    assert said[:3] == ["0", "1", "2"]
    assert all("used its calls to agents and peers (4 here)" in word for word in said[3:])
    tripped = node.records(event="policy_violation", tool="agent:echo", caller="agent:busy")
    rules = [one["rule"] for one in tripped]
    assert rules == ["chain_budget"] * 3 + ["recursion_breaker"]
    assert node.call("agent:echo", {"message": "x"}).json["outcome"] == "ok"


@pytest.mark.requirement("C7.9")
def test_taint_comes_after_the_gates_and_before_the_question(gated: House) -> None:
    asked = gated.explain("mcp:demo:write_note")
    order = [gate["gate"] for gate in asked["gates"]]
    assert order.index("admin_token") < order.index("weekday") < order.index("flow")
    assert order[-1] == "approval"


@pytest.mark.requirement("C7.14")
def test_an_explanation_asks_every_gate_and_changes_nothing(node: House) -> None:
    before = node.records()
    explained = node.explain("mcp:demo:wipe_disk")
    assert "not_reached" not in verdicts(explained).values()
    ways = {gate.get("way_out") for gate in explained["gates"] if gate["verdict"] != "allow"}
    assert any("openfang keys create" in way for way in ways if way)
    assert node.records() == before


@pytest.mark.requirement("C7.3", "C4.6")
def test_what_is_unknown_and_what_is_hidden_give_the_same_bytes(node: House) -> None:
    reader = node.guest("narrow", tools=["system_time"])

    def asked(guest: Guest, name: str) -> str:
        return json.dumps(guest.use(name)["error"]).replace(name, "NAME")

    assert asked(reader, "mcp_demo_get_note") == asked(reader, "mcp_demo_no_note")
    hidden, unknown = node.records(event="policy_violation", caller="key:narrow")[-2:]
    assert hidden != unknown


@pytest.mark.requirement("C4.6")
def test_what_is_unknown_and_what_is_hidden_take_the_same_time(gated: House) -> None:
    """Of 2,000 each in turn; a busy machine gets three tries, a difference shows in all of them."""
    guest = gated.guest("guessing", tools=["system_time"])
    names = ("mcp_demo_get_note", "mcp_demo_get_nope")
    with closing(gated.daemon.connect()) as connection:
        ratios = (_ratio(connection, guest, *names) for _ in range(3))
        assert any(0.95 <= ratio <= 1.05 for ratio in ratios)


def _ratio(connection: HTTPConnection, guest: Guest, *names: str) -> float:
    """How the median time of one name is to that of the other."""
    took: dict[str, list[int]] = {name: [] for name in names}
    for turn in range(2_000):
        for name in names if turn % 2 else reversed(names):
            took[name].append(_time(connection, guest, name))
    one, other = (median(took[name]) for name in names)
    return one / other


def _time(connection: HTTPConnection, guest: Guest, name: str) -> int:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    headers = guest.daemon.headers({"Authorization": f"Bearer {guest.key}"})
    began = perf_counter_ns()
    connection.request("POST", "/mcp", json.dumps(asked), headers)
    answer = connection.getresponse().read()
    took = perf_counter_ns() - began
    assert b"Unknown tool" in answer
    return took
