"""Keys that are bound to toolsets and agents: where they come in, and what is there for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from tests.app.offering.shop import entry, names, refusals, shop, table
from tests.app.offering.test_agents import opened_by, put
from tests.edges.live import live

from openfang.app.auth.identify import identify
from openfang.core.errors import NotFound
from openfang.core.keys import opened
from openfang.core.wire import key_body, read_key
from openfang.edges.mcp.ports import Place

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C18.1")
CONFIG = """
[toolsets.small]
servers = ["fs"]
agents = ["echo"]
[toolsets.other]
tools = ["mcp:git:*"]
"""
CODER = """
name = "coder"
[capabilities]
tools = ["mcp:*"]
[mcp]
expose_tools = ["git:status"]
"""


def tables() -> list[Any]:
    return [table("fs", "read"), table("git", "status", "push")]


async def ask(node: Live, path: str, key: str, method: str = "tools/list", **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await node.post(path, body, key=key)


async def listed(node: Live, path: str, key: str) -> list[str] | int:
    """The names of the tools that are there; where nothing is, the status."""
    reply = await ask(node, path, key)
    if reply.status != 200:
        return reply.status
    return [tool["name"] for tool in reply.json["result"]["tools"]]


async def seen_over_the_api(node: Live, key: str) -> list[str]:
    found = (await node.get("/api/tools", key=key)).json["tools"]
    return [tool["name"] for tool in found]


@pytest.mark.requirement("C4.4", "C17.1")
async def test_a_key_bound_to_a_toolset_has_that_one_everywhere_and_no_other(
    tmp_path: Path,
) -> None:
    small = ["mcp_fs_read", "openfang_agent_echo"]
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        await opened_by(node.app)
        key = await node.key("bound", toolsets=["small"])
        places = ("/mcp/small", "/mcp", "/mcp/other", "/mcp/none", "/mcp/agents/coder")
        seen = {place: await listed(node, place, key) for place in places}
        other, none = [await ask(node, f"/mcp/{name}", key) for name in ("other", "none")]
        over_api = await seen_over_the_api(node, key)
        called = await ask(node, "/mcp", key, "tools/call", name="mcp_git_push")
        by_api = await node.post("/api/tools/mcp:git:push/call", {"arguments": {}}, key=key)

    assert seen == {**dict.fromkeys(places, 404), "/mcp/small": small, "/mcp": small}
    assert other.body.replace(b"other", b"none") == none.body
    assert over_api == small
    assert called.json["error"]["code"] == -32602
    assert by_api.status == 404


@pytest.mark.requirement("C4.10")
async def test_a_key_bound_to_an_agent_has_it_and_what_it_shows(tmp_path: Path) -> None:
    put(tmp_path, CODER)
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        await opened_by(node.app)
        key = await node.key("bound", agents=["coder"])
        places = ("/mcp/agents/coder", "/mcp", "/mcp/small", "/mcp/agents/echo")
        seen = {place: await listed(node, place, key) for place in places}
        shown = await ask(node, "/mcp/agents/coder", key, "tools/call", name="mcp_git_status")
        past_it = await ask(node, "/mcp", key, "tools/call", name="mcp_git_status")

    assert seen == {
        "/mcp/agents/coder": ["mcp_git_status"],
        "/mcp": ["openfang_agent_coder"],
        "/mcp/small": 404,
        "/mcp/agents/echo": 404,
    }
    assert shown.json["result"]["content"] == [{"type": "text", "text": "status {}"}]
    assert past_it.json["error"]["code"] == -32602


async def test_a_key_may_be_bound_to_both_and_is_held_to_its_grants_besides(
    tmp_path: Path,
) -> None:
    put(tmp_path, CODER)
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        await opened_by(node.app)
        both = await node.key("both", toolsets=["other"], agents=["coder"])
        less = await node.key("less", toolsets=["other"], tools=["mcp:git:push", "mcp:fs:*"])
        any_set = await node.key("any", toolsets=["*"], agents=["echo"], tools=["mcp:*", "agent:*"])
        seen = [await listed(node, "/mcp", key) for key in (both, less, any_set)]
        at_place = await listed(node, "/mcp/agents/coder", both)

    assert seen == [
        ["mcp_git_push", "mcp_git_status", "openfang_agent_coder"],
        ["mcp_git_push"],
        ["mcp_fs_read", "mcp_git_push", "mcp_git_status", "openfang_agent_echo"],
    ]
    assert at_place == ["mcp_git_status"]


async def test_a_toolset_that_is_gone_holds_nothing_and_one_that_changed_holds_that(
    tmp_path: Path,
) -> None:
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        gone = await node.key("gone", toolsets=["never"])
        key = await node.key("bound", toolsets=["other"])
        before = [await listed(node, "/mcp", one) for one in (gone, key)]
        text = await to_thread.run_sync(node.config_file.read_text)
        changed = text.replace("mcp:git:*", "mcp:fs:*")
        await to_thread.run_sync(node.config_file.write_text, changed)
        await node.served.reloader.reload()
        after = await listed(node, "/mcp", key)

    assert before == [[], ["mcp_git_push", "mcp_git_status"]]
    assert after == ["mcp_fs_read"]


async def test_a_key_from_before_there_were_bounds_has_none(tmp_path: Path) -> None:
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        key = await node.key("old", tools=["mcp:*"])
        [[body]] = node.app.file.read_now("SELECT body FROM keys WHERE name = 'old'")
        old = {k: v for k, v in json.loads(body).items() if k not in {"toolsets", "agents"}}
        assert len(old) == len(json.loads(body)) - 2
        sql = "UPDATE keys SET body = ? WHERE name = 'old'"
        await node.app.parts.broker.append([], ((sql, (json.dumps(old),)),))
        caller = await identify(node.app.parts, key, "mcp")

        assert caller.within is None
        assert await listed(node, "/mcp/small", key) == ["mcp_fs_read"]


async def test_bounds_are_told_by_the_api_as_they_were_given(tmp_path: Path) -> None:
    async with live(tmp_path) as node:
        made = await node.post("/api/keys", {"name": "one", "agents": ["echo"]})
        keys = (await node.get("/api/keys")).json["keys"]
        odd = [{"toolsets": "small"}, {"agents": [""]}, {"kind": "admin_token", "agents": ["x"]}]
        refused = [(await node.post("/api/keys", {"name": "odd", **one})).status for one in odd]

    [one] = [key for key in keys if key["name"] == "one"]
    for body in (made.json, one):
        assert (body["toolsets"], body["agents"]) == ([], ["echo"])
    assert key_body(read_key(one), 0)["agents"] == ["echo"]
    assert refused == [422, 422, 422]


def test_who_names_nothing_is_bound_to_nothing() -> None:
    assert opened(None, None) == (("*",), ("*",))
    assert opened(["a"], None) == (("a",), ())
    assert opened(None, ["b"]) == ((), ("b",))
    assert opened([], []) == ((), ())


@pytest.mark.requirement("C4.7")
async def test_a_toolset_of_which_a_key_sees_nothing_is_as_unknown_as_none_and_on_record(
    tmp_path: Path,
) -> None:
    async with live(tmp_path, config=CONFIG + entry("fs"), sources=tables()) as node:
        key = await node.key("some", tools=["mcp:git:*"])
        hidden, unknown = [await ask(node, f"/mcp/{name}", key) for name in ("small", "never")]
        nobody = await ask(node, "/mcp/agents/nobody", key)
        assert await listed(node, "/mcp/other", key) == ["mcp_git_push", "mcp_git_status"]
        events = await refusals(node.app)

    assert (hidden.status, nobody.status) == (404, 404)
    assert hidden.body.replace(b"small", b"never") == unknown.body
    told = [(event.payload["rule"], event.context["caller"]) for event in events]
    assert told == [
        ("unknown_toolset", "key:some"),
        ("unknown_toolset", "key:some"),
        ("unknown_agent", "key:some"),
    ]


@pytest.mark.requirement("C4.7")
async def test_a_toolset_is_there_for_who_may_see_it_before_its_server_has_answered(
    tmp_path: Path,
) -> None:
    silent = entry("fs").replace("enabled = false", "lazy = true")
    globs = '[toolsets.globs]\ntools = ["mcp_fs_r*"]\n'
    async with shop(tmp_path, CONFIG + globs + silent, [table("git", "status")]) as here:
        some, other = here.holder("mcp:fs:read"), here.holder("mcp:fsx:*", "mcp:git:*")
        for name in ("small", "globs"):
            place = Place(toolset=name)
            assert names(here.at(place, some)) == []
            with pytest.raises(NotFound):
                here.at(place, other)
