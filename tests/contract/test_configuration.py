"""What is switched while the node runs, what its log says, and what that outlives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.contract.house import until

if TYPE_CHECKING:
    from tests.contract.house import House

CARDS = ("/.well-known/agent.json", "/.well-known/agent-card.json")


@pytest.mark.requirement("C2.5", "C2.9", "C5.7")
@pytest.mark.needs("bwrap")
def test_what_is_switched_off_is_gone_and_what_runs_goes_on(node: House) -> None:
    assert [node.ask("GET", card).status for card in CARDS] == [200, 200]
    begun = node.ask("POST", "/api/a2a/tasks", {"agent": "slow", "message": "x"})
    assert begun.status == 202, begun.body
    before = node.configuration
    node.configure(before.replace("[a2a]\nenabled = true", "[a2a]\nenabled = false"))
    try:
        gone = [node.ask("GET", path) for path in (*CARDS, "/a2a/agents")]
        assert {(one.status, one.rule) for one in gone} == {(404, "a2a_disabled")}
        assert all("a2a.enabled" in one.json["detail"] for one in gone)
        refused = node.call("a2a_discover", {"url": "http://127.0.0.1:9"})
        assert refused.json["detail"] == "Policy violation: Tool is disabled"
        assert "builtin:a2a_discover" not in node.tools()
        path = f"/api/a2a/tasks/{begun.json['id']}"
        until(lambda: node.ask("GET", path).json.get("state") == "completed")
    finally:
        node.configure(before)
    until(lambda: node.ask("GET", CARDS[0]).status == 200)


@pytest.mark.requirement("C7.6", "C7.3")
def test_a_disabled_tool_leaves_the_list_and_is_answered_by_the_first_gate(node: House) -> None:
    assert "mcp:kind:zap_it" not in node.tools()
    refused = node.call("mcp:kind:zap_it")
    assert (refused.status, refused.rule) == (403, "tool_disabled")
    assert refused.json["gates"][0]["verdict"] == "deny"


@pytest.mark.requirement("C7.6", "C2.9")
def test_any_kind_of_tool_is_switched_off_by_its_id_while_the_node_runs(node: House) -> None:
    ids = {"mcp:demo:get_note": {}, "agent:echo": {"message": "x"}, "builtin:system_time": {}}
    before = node.configuration
    off = ", ".join(f'"{id_}"' for id_ in ids)
    node.configure(before.replace('disabled = ["mcp:kind:zap_it"]', f"disabled = [{off}]"))
    try:
        assert {node.call(id_, asked).rule for id_, asked in ids.items()} == {"tool_disabled"}
        assert not {*ids} & node.tools().keys()
    finally:
        node.configure(before)
    assert node.tools().keys() > {*ids}
    assert node.call("mcp:demo:get_note").status == 200


WORDS = (
    r"Connected to MCP server: demo",
    r"Total MCP tools: [1-9][0-9]*",
    r"Tool invoked: mcp:demo:get_note, result: True",
    r"Policy violation: Tool requires admin_token",
    r"Discovered external A2A agent: Next-Door .*url: http://127\.0\.0\.1:[0-9]+, skills: 1",
)


@pytest.mark.requirement("C14.2")
def test_the_log_has_the_seeds_words_and_the_trace(node: House) -> None:
    trace = f"{0xABC:032x}"
    headers = {"traceparent": f"00-{trace}-{1:016x}-01"}
    assert node.call("mcp:demo:get_note", headers=headers).status == 200
    assert node.call("mcp:demo:wipe_disk", headers=headers).status == 403

    def missing() -> list[str]:
        lines = [line["message"] for line in node.log()]
        return [words for words in WORDS if not any(re.match(words, line) for line in lines)]

    until(lambda: not missing())
    traced = [line["message"] for line in node.log() if line.get("trace") == trace]
    assert [
        re.match(words, line) is not None for words, line in zip(WORDS[2:4], traced, strict=True)
    ]


@pytest.mark.requirement("C13.4", "C18.3", "C13.2")
def test_the_log_outlives_what_it_speaks_of_and_keeps_digests_of_secrets(node: House) -> None:
    secret = "AKIA" + "IOSFODNN7" + "EXAMPLE"
    leaver = node.guest("leaver", tools=["mcp:demo:*"])
    calls = [leaver.call("mcp:demo:get_note", {"text": f"{secret} {n}"}).json for n in range(2)]
    assert node.ask("DELETE", "/api/keys/leaver").status in {200, 204}
    starts = node.records(event="tool_invocation_start", caller="key:leaver")
    assert [one["call"] for one in starts] == [one["call_id"] for one in calls]
    kept = [one["arguments"]["text"].split()[0] for one in starts]
    assert re.fullmatch(r"\[redacted:[a-z_-]+:[0-9a-f]+\]", kept[0])
    assert kept[0] == kept[1]
    assert secret not in (node.daemon.home.log.read_text() + str(node.records()))
    assert node.ask("GET", "/api/audit/verify").json["intact"]
