"""Skills over HTTP: installed, listed and read by MCP clients, as each key may."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio import fail_after, to_thread
from tests.edges.live import live
from tests.edges.mcp.talking import greet

from openfang.host.parcels import pack

if TYPE_CHECKING:
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C4.4", "C6.3")
LISTS = ("tools", "prompts")
DATA = Path(__file__).parents[2] / "data" / "skills"


async def ask(node: Live, method: str, key: str = "", **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await node.post("/mcp", body, key=key)).json


async def upload(node: Live, name: str, **more: Any) -> Any:
    parcel = await to_thread.run_sync(pack, DATA / name)
    body = {"archive_base64": b64encode(parcel).decode(), "origin": name, **more}
    return await node.post("/api/skills", body)


async def enabled(node: Live, name: str) -> None:
    made = await upload(node, name)
    assert made.status == 201, made.body
    shown = {"digest": made.json["review"]["digest"]}
    assert (await node.post(f"/api/skills/{name}/enable", shown)).status == 200


async def names(node: Live, key: str = "") -> set[str]:
    found = (await ask(node, "tools/list", key))["result"]["tools"]
    return {one["name"] for one in found if one["name"].startswith("skill_")}


@pytest.mark.requirement("C2.1")
async def test_a_skill_comes_in_over_http_and_is_off_until_it_is_accepted(tmp_path: Path) -> None:
    async with live(tmp_path) as node:
        seen = await upload(node, "release-notes", preview=True)
        assert (seen.status, seen.json["state"]) == (200, "preview")
        made = await upload(node, "release-notes")
        assert (made.status, made.json["state"]) == (201, "off")
        assert await names(node) == set()
        listed = (await node.get("/api/skills")).json
        assert [one["id"] for one in listed["skills"]] == ["release-notes"]
        other = {"digest": "0" * 64}
        refused = await node.post("/api/skills/release-notes/enable", other)
        assert refused.status == 409
        digest = made.json["review"]["digest"]
        on = await node.post("/api/skills/release-notes/enable", {"digest": digest})
        assert on.json["state"] == "on"
        assert await names(node) == {"skill_release_notes", "skill_release_notes_run"}
        guest = await node.key("guest", tools=["*"])
        assert (await upload(node, "weather-desk")).status == 201
        turned_away = await node.post("/api/skills/weather-desk/enable", other, key=guest)
        assert turned_away.status == 403
        off = await node.post("/api/skills/release-notes/disable", {})
        assert (off.json["state"], await names(node)) == ("off", set())
        gone = await node.ask("DELETE", "/api/skills/release-notes")
        assert gone.json["state"] == "removed"
        assert (await node.get("/api/skills/release-notes")).status == 404


async def test_a_client_reads_a_skill_as_a_tool_and_as_a_prompt(tmp_path: Path) -> None:
    async with live(tmp_path) as node:
        await enabled(node, "release-notes")
        called = await ask(node, "tools/call", name="skill_release_notes", arguments={})
        assert "Write for the person who upgrades." in called["result"]["content"][0]["text"]
        (listed,) = (await ask(node, "prompts/list"))["result"]["prompts"]
        assert listed["name"] == "skill_release_notes"
        assert listed["description"].startswith("Turns a list of merged changes")
        got = await ask(node, "prompts/get", name="skill_release_notes")
        (message,) = got["result"]["messages"]
        assert message["role"] == "user"
        assert "Write for the person who upgrades." in message["content"]["text"]
        started = [one for one in await node.events() if one.event_type == "tool_invocation_start"]
        assert [one.context["tool"] for one in started] == ["ext:release-notes:read"] * 2


async def test_who_is_not_granted_a_skill_gets_it_in_no_way(tmp_path: Path) -> None:
    async with live(tmp_path) as node:
        await enabled(node, "release-notes")
        await enabled(node, "weather-desk")
        key = await node.key("narrow", tools=["ext:weather-desk:*"])
        assert await names(node, key) == {"skill_weather_desk"}
        prompts = (await ask(node, "prompts/list", key))["result"]["prompts"]
        assert [one["name"] for one in prompts] == ["skill_weather_desk"]
        for method in ("tools/call", "prompts/get"):
            refused = await ask(node, method, key, name="skill_release_notes", arguments={})
            assert "error" in refused


async def test_a_client_hears_of_a_skill_that_is_added_and_removed(tmp_path: Path) -> None:
    async with live(tmp_path) as node:
        talk = await greet(node)
        async with talk.listening() as stream:
            with fail_after(30):
                await enabled(node, "release-notes")
                told = set[str]()
                while told != {f"notifications/{one}/list_changed" for one in LISTS}:
                    told.add((await stream.message())["method"])
                assert "skill_release_notes" in await names(node)
                await node.ask("DELETE", "/api/skills/release-notes")
                await stream.message()
        assert await names(node) == set()
