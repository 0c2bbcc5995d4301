"""Servers of every kind behind a daemon: reached, timed, watched, and changed while they run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.contract.house import until

if TYPE_CHECKING:
    from tests.contract.house import House

REVISIONS = {
    "modern": "2026-07-28",
    "session": "2025-11-25",
    "older": "2024-11-05",
    "plain": "2024-11-05",
}


@pytest.mark.requirement("C3.1", "C3.3")
@pytest.mark.parametrize("name", REVISIONS)
def test_a_server_is_reached_whichever_way_it_speaks(node: House, name: str) -> None:
    node.connected(name)
    details = node.ask("GET", f"/api/mcp/servers/{name}").json
    assert details["protocol_version"] == REVISIONS[name]
    called = node.call(f"mcp:{name}:echo", {"text": "figs"})
    assert called.status == 200, called.body
    assert called.json["content"][0]["text"] == "figs"


@pytest.mark.requirement("C3.5", "C7.11", "C14.2")
def test_a_call_that_takes_too_long_is_cancelled_at_its_server(node: House) -> None:
    assert node.call("mcp:late:get_note").status == 200
    late = node.call("mcp:late:get_note", {"errand": "hang", "text": "slow"})
    assert (late.status, late.json["outcome"]) == (200, "error")
    heard = node.call("mcp:late:get_note", {"errand": "heard"}).json["content"][0]["text"][::-1]
    assert "notifications/cancelled" in heard
    (end,) = node.records(event="tool_invocation_end", call=late.json["call_id"])
    assert end["outcome"] == "timeout"
    words = "Request timed out: tools/call (id="
    until(lambda: [line for line in node.log() if line["message"].startswith(words)])


@pytest.mark.requirement("C3.2")
def test_a_server_is_greeted_with_who_we_are(node: House) -> None:
    heard = node.call("mcp:bound:get_note", {"errand": "heard"}).json["content"][0]["text"][::-1]
    assert '"clientInfo"' in heard
    assert "notifications/initialized" in heard
    assert '"tools/list"' in heard


@pytest.mark.requirement("C3.6", "C4.5")
def test_a_tool_that_comes_is_there_for_everybody(node: House) -> None:
    assert "mcp_fickle_grown" not in node.wire_names()
    node.call("mcp:fickle:grow", {"text": "A new one."})
    until(lambda: "mcp_fickle_grown" in node.wire_names())
    assert node.tools()["mcp:fickle:grown"]["description"] == "[MCP:fickle] A new one."
    assert node.call("mcp:fickle:grown", {"text": "figs"}).json["content"][0]["text"] == "figs"


@pytest.mark.requirement("C3.7", "C3.8")
def test_a_server_that_dies_fails_its_call_at_once_and_comes_back(node: House) -> None:
    before = node.call("mcp:fickle:pid").json["content"][0]["text"]
    died = node.call("mcp:fickle:die")
    assert (died.json["outcome"], died.status) == ("error", 200)
    assert node.health()["demo"] == "healthy"
    until(lambda: node.health()["fickle"] == "healthy")
    until(lambda: node.call("mcp:fickle:pid").json.get("outcome") == "ok")
    assert node.call("mcp:fickle:pid").json["content"][0]["text"] != before
    with pytest.raises(ProcessLookupError):
        os.kill(int(before), 0)


@pytest.mark.requirement("C7.3", "C7.6", "C2.1")
def test_what_a_server_may_show_and_may_do_is_the_operators_word(node: House) -> None:
    assert {id_ for id_ in node.tools() if id_.startswith("mcp:bound:")} == {
        "mcp:bound:get_note",
        "mcp:bound:write_note",
    }
    hidden = node.call("mcp:bound:put_note")
    assert (hidden.status, hidden.rule) == (404, "unknown_tool")
    refused = node.call("mcp:bound:write_note")
    assert refused.json["detail"] == "Policy violation: Side effect fs.write is blacklisted"


@pytest.mark.requirement("C2.2", "C16.1", "C16.2")
@pytest.mark.needs("bwrap")
def test_a_file_of_agentos_is_read_in_place(node: House) -> None:
    """Its paths count from its folder, and what it starts is in the default sandbox."""
    node.connected("notes")
    assert node.call("mcp:notes:get_note", {"text": "figs"}).json["content"][0]["text"] == "figs"
    listed = node.ask("GET", "/api/mcp/servers").json
    servers = {one["name"]: one for one in listed["configured"]}
    assert (servers["notes"]["timeout_secs"], servers["notes"]["env"]) == (5, ["COLOUR"])
    assert "asleep" not in {one["name"] for one in listed["connected"]}
    colour = node.call("mcp:notes:get_note", {"errand": "variable", "text": "COLOUR"}).json
    assert colour["content"][0]["text"][::-1] == "red"
    outside = {"errand": "read", "text": str(node.daemon.home.path / "key")}
    hidden = node.call("mcp:notes:get_note", outside).json["content"][0]["text"]
    assert hidden in {"FileNotFoundError", "PermissionError"}
