"""The MCP servers over HTTP: what is shown to whom, and what a change does."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C4.8", "C14.1", "C2.1")

PEER = Path(__file__).parents[2] / "sources/mcp/peers/echo.py"
SERVERS = "/api/mcp/servers"
NEW: dict[str, Any] = {
    "name": "more",
    "transport": {"type": "stdio", "command": sys.executable, "args": [str(PEER), "show=TOKEN"]},
    "env": {"TOKEN": "sk-not-to-be-seen-1234", "LOG": "debug"},
}


def stdio(name: str, *options: str, more: str = "") -> str:
    args = json.dumps([str(PEER), *options])
    return (
        f'\n[[mcp_servers]]\nname = "{name}"\n{more}\n'
        f'[mcp_servers.transport]\ntype = "stdio"\ncommand = "{sys.executable}"\nargs = {args}\n'
    )


CONFIG = (
    "# the operator's own words\n"
    + stdio("files", "say=hello from files", "broken", more='env = ["HOME"]')
    + stdio("dead", "refuse", more="timeout_secs = 5")
    + stdio("asleep", more="lazy = true")
    + stdio("off", more="enabled = false")
    + '[[mcp_servers]]\nname = "far"\nenabled = false\n[mcp_servers.transport]\ntype = "sse"\n'
    'url = "https://u:hidden@tools.example/mcp?api_key=hidden"\n'
    'headers = { Authorization = "Bearer hidden" }\n'
)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", config=CONFIG) as running:
        await settled(running, "files", "dead")
        yield running


async def server(node: Live, name: str) -> Any:
    reply = await node.get(f"{SERVERS}/{name}")
    assert reply.status == 200, reply.body
    return reply.json


async def settled(node: Live, *names: str) -> None:
    """Wait until it is known how these are."""
    servers = node.app.parts.servers
    assert servers
    with anyio.fail_after(20):
        for name in names:
            await servers.reached(name)


async def stored(node: Live) -> dict[str, str]:
    """Read the secret store."""
    store = node.app.parts.secrets
    return await to_thread.run_sync(lambda: {name: store.get(name) for name in store.names()})


def named(reply: Reply, key: str = "configured") -> dict[str, Any]:
    return {one["name"]: one for one in reply.json[key]}


async def test_the_list_has_the_seeds_shape(node: Live) -> None:
    reply = await node.get(SERVERS)
    files = named(reply)["files"]
    assert {key: files[key] for key in ("name", "transport", "timeout_secs", "env")} == {
        "name": "files",
        "transport": {
            "type": "stdio",
            "command": sys.executable,
            "args": [str(PEER), "say=hello from files", "broken"],
        },
        "timeout_secs": 30,
        "env": ["HOME"],
    }
    assert reply.json["connected"] == [
        {
            "name": "files",
            "tools_count": 1,
            "tools": [{"name": "mcp_files_echo", "description": "[MCP:files] Does echo."}],
            "connected": True,
        }
    ]


async def test_health_and_last_error_stand_beside_what_is_configured(node: Live) -> None:
    found = named(await node.get(SERVERS))
    told = {name: (one["health"], one["state"]) for name, one in found.items()}
    assert told == {
        "files": ("healthy", "connected"),
        "dead": ("unhealthy", "failed"),
        "asleep": ("healthy", "sleeping"),
        "off": (None, "disabled"),
        "far": (None, "disabled"),
    }
    assert found["files"]["last_error"] is None
    assert found["dead"]["last_error"]
    health = (await node.get("/api/mcp/health")).json
    assert health == {"files": "healthy", "dead": "unhealthy", "asleep": "healthy"}


async def test_no_secret_is_shown(node: Live) -> None:
    reply = await node.get(SERVERS)
    assert b"hidden" not in reply.body
    far = named(reply)["far"]["transport"]
    assert far["headers"] == {"Authorization": "***"}
    assert far["url"] == "https://***@tools.example/mcp?api_key=***"
    assert b"hidden" not in (await node.get(f"{SERVERS}/far")).body


async def test_a_key_without_a_role_sees_name_and_health_of_what_it_can_use(node: Live) -> None:
    user, blind = await node.key("user"), await node.key("blind", tools=["builtin:*"])
    reply = await node.get(SERVERS, key=user)
    assert reply.json["configured"] == [{"name": "files", "health": "healthy"}]
    assert [one["name"] for one in reply.json["connected"]] == ["files"]
    assert (await node.get("/api/mcp/health", key=user)).json == {"files": "healthy"}
    assert (await node.get(SERVERS, key=blind)).json == {"configured": [], "connected": []}
    assert (await node.get("/api/mcp/health", key=blind)).json == {}
    assert (await node.get(f"{SERVERS}/files", key=user)).told == (403, "role")


async def test_the_details_tell_who_answered_and_what_was_left_out(node: Live) -> None:
    auditor = await node.key("auditor", role="auditor")
    found = (await node.get(f"{SERVERS}/files", key=auditor)).json
    assert found["protocol_version"] == "2025-06-18"
    assert found["server_info"] == {"name": "echo", "version": "1"}
    assert [tool["id"] for tool in found["tools"]] == ["mcp:files:echo"]
    assert [tool["name"] for tool in found["rejected_tools"]] == ["broken"]
    assert "inputSchema" in found["rejected_tools"][0]["reason"]
    assert found["origin"] == "config.toml:3"
    assert "hello from files" in found["stderr"]
    logs = (await node.get(f"{SERVERS}/files/logs", key=auditor)).json
    assert logs == {"lines": ["hello from files"], "total": 1}
    assert "I will not." in (await server(node, "dead"))["stderr"]


async def test_a_refresh_counts_those_that_answered_and_names_the_others(node: Live) -> None:
    found = (await node.post(f"{SERVERS}/refresh")).json
    assert found["refreshed"] == 1
    assert [one["name"] for one in found["failed"]] == ["dead"]
    assert "exit code" in found["failed"][0]["reason"]


async def test_what_is_added_waits_until_it_is_enabled(node: Live) -> None:
    reply = await node.post(SERVERS, NEW)
    assert (reply.status, reply.json["state"], reply.json["enabled"]) == (201, "disabled", False)
    assert reply.json["env"] == ["LOG", "TOKEN"]
    assert (await node.call("mcp:more:echo")).status == 404
    enabled = await node.post(f"{SERVERS}/more/enable")
    assert enabled.json["enabled"]
    await settled(node, "more")
    answer = (await node.call("mcp:more:echo")).json
    # The secret reached the child, and is redacted on its way back.
    assert answer["content"][0]["text"].startswith("[redacted:")
    off = await node.post(f"{SERVERS}/more/disable")
    assert (off.json["state"], off.json["connected"]) == ("disabled", False)
    assert (await node.call("mcp:more:echo")).status == 404


async def test_the_file_keeps_its_comments_and_never_gets_a_secret(node: Live) -> None:
    before = node.config_file.read_text()
    await node.post(SERVERS, NEW)
    text = node.config_file.read_text()
    assert text.startswith(before.rstrip("\n"))
    assert "sk-not-to-be-seen" not in text
    entry = tomllib.loads(text)["mcp_servers"][-1]
    assert entry["env"] == {"TOKEN": "${MCP_MORE_TOKEN}", "LOG": "debug"}
    assert await stored(node) == {"MCP_MORE_TOKEN": NEW["env"]["TOKEN"]}
    removed = await node.ask("DELETE", f"{SERVERS}/more")
    assert removed.json["name"] == "more"
    assert tomllib.loads(node.config_file.read_text()) == tomllib.loads(before)
    assert "# the operator's own words" in node.config_file.read_text()
    assert await stored(node) == {}
    assert node.config_file.with_name("config.toml.bak").read_text() == text


async def test_every_change_is_on_record(node: Live) -> None:
    await node.post(SERVERS, NEW)
    await node.post(f"{SERVERS}/more/enable")
    await node.post(f"{SERVERS}/more/enable")
    await node.post(f"{SERVERS}/files/restart")
    await node.ask("DELETE", f"{SERVERS}/more")
    found = (await node.get("/api/audit?event=server_changed")).json["records"]
    told = [(one["payload"]["server"], one["payload"]["act"]) for one in found]
    assert told == [("more", "add"), ("more", "enable"), ("files", "restart"), ("more", "remove")]
    assert {one["context"]["caller"] for one in found} == {"key:admin"}
    assert "sk-not-to-be-seen" not in json.dumps(found)


async def test_a_server_that_restarts_is_back_with_its_tools(node: Live) -> None:
    reply = await node.post(f"{SERVERS}/files/restart")
    assert (reply.json["state"], reply.json["connected"]) == ("connecting", False)
    answer = await node.call("mcp:files:echo", {"text": "again"})
    assert answer.json["content"] == [{"type": "text", "text": "again"}]
    assert (await node.post(f"{SERVERS}/off/restart")).status == 409


@pytest.mark.parametrize(
    ("change", "status", "rule"),
    [
        ({"name": "files"}, 409, "conflict"),
        ({"transport": {"type": "stdio", "command": "../x"}}, 422, "config"),
        ({"transport": {"type": "smtp", "url": "https://x"}}, 422, "body"),
        ({"transport": {"type": "stdio"}}, 422, "body"),
        ({"enabled": True}, 422, "body"),
        ({"transport": {"type": "http", "url": "https://u:hidden@x.example"}}, 422, "config"),
        ({"env": ["not a name"]}, 422, "body"),
    ],
)
async def test_what_cannot_be_added_changes_nothing(
    node: Live, change: dict[str, Any], status: int, rule: str
) -> None:
    before = node.config_file.read_text()
    assert (await node.post(SERVERS, NEW | change)).told == (status, rule)
    assert node.config_file.read_text() == before
    assert await stored(node) == {}


async def test_a_test_says_what_is_wrong_and_the_way_out(node: Live) -> None:
    good = (await node.post(f"{SERVERS}/off/test")).json
    assert (good["ok"], good["tools"], good["protocol_version"]) == (True, ["echo"], "2025-06-18")
    bad = (await node.post(f"{SERVERS}/dead/test")).json
    assert (bad["ok"], bad["tools"]) == (False, [])
    assert bad["problem"]
    assert bad["way_out"]
    assert set(bad["stderr"]) == {"I will not."}
    assert (await server(node, "off"))["state"] == "disabled"


WORLD = (
    stdio("unset", more='env = ["NOT_SET_HERE"]')
    + '[[mcp_servers]]\nname = "near"\n[mcp_servers.transport]\ntype = "http"\n'
    'url = "http://127.0.0.1:9/mcp"\n'
    '[[mcp_servers]]\nname = "missing"\n[mcp_servers.transport]\ntype = "stdio"\n'
    f'command = "PROGRAM"\nargs = ["{PEER}"]\n' + stdio("good")
)


@pytest.mark.requirement("C2.6")
async def test_what_depends_on_the_world_is_that_servers_matter_alone(tmp_path: Path) -> None:
    program = tmp_path / "program"
    async with live(tmp_path / "home", config=WORLD.replace("PROGRAM", str(program))) as node:
        await settled(node, "unset", "near", "missing", "good")
        found = named(await node.get(SERVERS))
        reasons = {"unset": "NOT_SET_HERE", "near": "127.0.0.0/8", "missing": str(program)}
        for name, reason in reasons.items():
            assert found[name]["health"] == "unhealthy"
            assert reason in found[name]["last_error"]
        assert found["good"]["health"] == "healthy"
        # It is tried again: once the program is there, the server is too.
        program.symlink_to(sys.executable)
        arrived = anyio.Event()
        node.app.parts.registry.subscribe(lambda _: arrived.set())
        with anyio.fail_after(20):
            await arrived.wait()
        assert (await node.call("mcp:missing:echo", {"text": "here"})).status == 200


@pytest.mark.requirement("C2.6", "C2.9")
async def test_a_bad_file_leaves_the_servers_as_they_are(node: Live) -> None:
    with node.config_file.open("a") as file:
        file.write(stdio("files"))
    reply = await node.post("/api/config/reload")
    assert reply.told == (422, "config")
    assert "mcp_servers.files: expected one entry of this name" in reply.problem["detail"]
    assert (await server(node, "files"))["state"] == "connected"
    assert (await node.post(SERVERS, NEW)).told == (422, "config")


@pytest.mark.requirement("C2.9")
async def test_a_change_is_not_undone_by_a_reload_that_read_the_file_before(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text(  # which takes a while to read
        "".join(stdio(f"more-{number}", more="enabled = false") for number in range(200))
    )
    config = f'include = ["{tmp_path}/more.toml"]\n' + stdio("asleep", more="lazy = true")
    done = anyio.Event()
    async with live(tmp_path / "home", config=config) as node:

        async def reload() -> None:
            while not done.is_set():
                assert (await node.post("/api/config/reload")).status == 200

        async with anyio.create_task_group() as group:
            group.start_soon(reload)
            for act in ("disable", "enable") * 2:
                reply = await node.post(f"{SERVERS}/asleep/{act}")
                assert (reply.status, reply.json["enabled"]) == (200, act == "enable")
                await node.post("/api/config/reload")  # one that began before has ended by then
            done.set()
        found = (await node.get("/api/audit?event=config_reloaded")).json["records"]
        assert found == []  # a reload never found anything else than what was in force
