"""Two callers of one node: what one of them does is nothing to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.mcp.talking import META, modern_headers, request

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live

ECHO = "mcp:demo:echo"


@pytest.mark.requirement("C10.1", "C9.1")
async def test_a_run_of_the_same_name_is_each_callers_own(node: Live, demo: Demo) -> None:
    one, other = await node.key("one"), await node.key("other")
    run = {"run": "work"}
    sent = {"text": "again"}
    statuses = [(await node.call(ECHO, sent, key=one, context=run)).status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert (await node.call(ECHO, sent, key=other, context=run)).status == 200
    assert demo.source.reached == 4


@pytest.mark.requirement("C15.1")
async def test_a_yes_for_the_rest_of_a_run_is_for_the_run_of_who_asked(
    node: Live, demo: Demo
) -> None:
    one = await node.key("one", projects=["default"])
    other = await node.key("other", projects=["default"])
    run = {"run": "work"}
    asked = await node.call("mcp:demo:deploy", key=one, context=run)
    yes = {"answer": "approve", "scope": "session"}
    assert (await node.post(f"/api/approvals/{asked.json['approval']}", yes)).status == 200
    assert (await node.call("mcp:demo:deploy", key=one, context=run)).status == 200
    assert (await node.call("mcp:demo:deploy", key=other, context=run)).status == 202
    assert (await node.call("mcp:demo:deploy", key=one, context={"run": "more"})).status == 202
    assert demo.source.reached == 1


@pytest.mark.requirement("C4.4", "C4.7")
async def test_what_one_may_see_is_kept_by_no_cache_for_the_other(node: Live) -> None:
    narrow = await node.key("narrow", tools=[ECHO])
    listed: list[list[str]] = []
    for key in (narrow, ""):
        headers = modern_headers("tools/list", {})
        asked = request("tools/list", {"_meta": META})
        result = (await node.post("/mcp", asked, key=key, headers=headers)).json["result"]
        assert result["cacheScope"] == "private"
        listed.append([tool["name"] for tool in result["tools"]])
    assert listed[0] == ["mcp_demo_echo"]
    assert len(listed[1]) > 1
