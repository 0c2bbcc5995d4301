"""Risk and side effects of tools that others serve, as callers meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.house import server, until
from tests.faults.daemon import make_home

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.house import House

READS = {"fs.read", "database.read", "network.dns", "cloud.key_read"}


def seen(node: House, server: str, tool: str) -> tuple[str, list[str]]:
    found = node.tools()[f"mcp:{server}:{tool}"]
    return found["risk"], found["side_effects"]


@pytest.mark.requirement("C11.1")
def test_whole_words_of_the_name_say_how_risky_a_tool_is(node: House) -> None:
    assert seen(node, "demo", "get_created_items")[0] == "LOW"
    assert "system.exec" not in seen(node, "demo", "prune")[1]
    assert seen(node, "demo", "wipe_disk") == ("CRITICAL", ["fs.delete"])
    assert seen(node, "demo", "send_email")[0] == "HIGH"


@pytest.mark.requirement("C11.1", "C11.4")
def test_annotations_raise_and_lower_only_where_trust_is_high(node: House) -> None:
    assert seen(node, "demo", "get_item")[0] == "HIGH"
    assert seen(node, "demo", "delete_item")[0] in {"HIGH", "CRITICAL"}
    assert seen(node, "kind", "delete_item")[0] == "LOW"


@pytest.mark.requirement("C11.1")
def test_the_operators_word_is_the_strongest(node: House) -> None:
    assert seen(node, "kind", "send_email")[0] == "LOW"
    assert node.call("mcp:kind:send_email").status == 200
    assert node.tools()["mcp:demo:frobnicate"]["effect"] == "money"


@pytest.mark.requirement("C11.2")
def test_what_no_rule_knows_is_medium_and_unknown_and_words_can_be_added(node: House) -> None:
    assert seen(node, "demo", "frobnicate") == ("MEDIUM", ["unknown"])
    assert seen(node, "demo", "prune") == ("HIGH", ["unknown"])
    assert seen(node, "demo", "zap_it") == ("HIGH", ["system.exec"])


@pytest.mark.requirement("C11.2", "C7.6")
def test_planning_minds_effects_only_and_a_blacklist_minds_reads_too(node: House) -> None:
    reads = [tool for tool in node.tools().values() if set(tool["side_effects"]) & READS]
    assert reads
    name, tag = reads[0]["id"], next(iter(set(reads[0]["side_effects"]) & READS))
    planned = node.ask("POST", f"/api/tools/{name}/explain", planning())
    assert verdict(planned.json, "mode") == "allow"
    refused = node.call(name, blacklist=[tag])
    assert refused.status in {403, 422}
    explained = node.ask("POST", f"/api/tools/{name}/explain", planning(blacklist=[tag])).json
    assert verdict(explained, "policy") == "deny"


def planning(**more: Any) -> dict[str, Any]:
    return {"arguments": {}, "context": {"mode": "planning", **more}}


def verdict(explained: Any, gate: str) -> str:
    return next(one["verdict"] for one in explained["gates"] if one["gate"] == gate)


@pytest.mark.requirement("C11.2", "C2.6")
def test_an_unknown_tag_in_the_configuration_is_an_error(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    entry = server("bound", keys='deny_side_effect_tags = ["fs.wriet"]')
    (home.path / "config.toml").write_text(entry)
    checked = home.run("config", "check")
    assert checked.returncode == 1
    assert "config.toml:4: mcp_servers.bound.deny_side_effect_tags" in checked.stdout
    assert "fs.wriet" in checked.stdout


@pytest.mark.requirement("C11.4")
def test_of_a_server_of_low_trust_every_effect_is_asked_about(node: House) -> None:
    assert node.call("mcp:strange:get_note").status == 200
    parked = node.call("mcp:strange:create_note")
    assert parked.status == 202
    assert "low_trust" in parked.rule
    question = f"/api/approvals/{parked.json['approval']}"
    assert node.ask("POST", question, {"answer": "approve"}).status == 200
    assert node.call("mcp:strange:create_note").json["outcome"] == "ok"
    assert node.call("mcp:strange:create_note").status == 202


@pytest.mark.requirement("C11.4", "C7.13")
def test_effects_of_medium_trust_leave_more_evidence(node: House) -> None:
    call = node.call("mcp:demo:frobnicate", {"text": "x"}).json["call_id"]
    reading = node.call("mcp:demo:get_note").json["call_id"]
    (end,) = node.records(event="tool_invocation_end", call=call)
    (plain,) = node.records(event="tool_invocation_end", call=reading)
    assert end["evidence"]["trust"] == "medium"
    assert {"arguments_sha256", "result_sha256"} <= end["evidence"].keys()
    assert "evidence" not in plain


@pytest.mark.requirement("C11.3", "C3.6")
def test_a_tool_that_changes_is_held_back_until_it_is_accepted(node: House) -> None:
    assert node.call("mcp:fickle:echo", {"text": "x"}).json["outcome"] == "ok"
    node.call("mcp:fickle:alter", {"text": "altered"})
    until(lambda: "mcp:fickle:echo" not in node.tools())
    refused = node.call("mcp:fickle:echo", {"text": "x"})
    assert (refused.status, refused.rule) == (403, "tool_held")
    shown = node.daemon.home.run("tools", "show", "mcp:fickle:echo").stdout
    assert "altered" in shown
    accepted = node.daemon.home.run("tools", "accept", "mcp:fickle:echo")
    assert accepted.returncode == 0, accepted.stderr
    again = node.call("mcp:fickle:echo", {"text": "x"})
    assert again.status == 200, again.body
    assert node.records(event="tool_held")
    assert node.records(event="tool_accepted")
