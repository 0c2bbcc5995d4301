"""The servers that people use, from their registries: in the default sandbox, on the one path."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.peers import servers
from tests.peers.conftest import Node, running

from openfang.core.errors import CallRefused, OpenFangError
from openfang.core.progress import Progress
from openfang.sources.mcp.stdio import StdioTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.core.tools import Tool
    from openfang.sources.mcp.source import McpSource

pytestmark = [
    pytest.mark.requirement("C3.1", "C3.3", "C3.4", "C16.2"),
    pytest.mark.needs("bwrap", "git"),
]
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-C")
LONG = "everything:trigger-long-running-operation"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that the servers are given, and one that none of them is."""
    folder = tmp_path_factory.mktemp("ground")
    for name in ("files", "notes", "data", "repository", "elsewhere"):
        (folder / name).mkdir()
    for name in ("repository", "elsewhere"):
        repository = folder / name
        subprocess.run([*GIT, repository, "init", "--quiet", "--initial-branch=main"], check=True)
        (repository / "poem").write_text("roses are red\n")
        subprocess.run([*GIT, repository, "add", "poem"], check=True)
        subprocess.run([*GIT, repository, "commit", "--quiet", "-m", "A first verse"], check=True)
    (folder / "repository" / "poem").write_text("violets are blue\n")
    return folder


@pytest.fixture(scope="module")
def chosen(ground: Path) -> list[servers.Server]:
    """Nothing is said of a sandbox: it is the default."""
    return [
        servers.filesystem(ground / "files"),
        servers.everything(),
        servers.memory(ground / "notes" / "memory.jsonl"),
        servers.thinking(),
        servers.time(),
        servers.git(ground / "repository"),
        servers.git(name="any"),
        servers.sqlite(ground / "data" / "shop.db", fs_write=[str(ground / "data")]),
    ]


@pytest.fixture(scope="module")
async def node(
    chosen: list[servers.Server], tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Node]:
    async with running(tmp_path_factory.mktemp("node"), *chosen) as opened:
        yield opened


def tools(source: McpSource) -> list[Tool]:
    """Its tools, without what else it can be asked."""
    return [tool for tool in source.tools() if not tool.operation]


async def test_each_speaks_the_revision_of_its_era_and_offers_all_of_its_tools(
    node: Node, chosen: list[servers.Server]
) -> None:
    found = {
        source.name: (source.connected, source.version, len(tools(source)), dict(source.rejected))
        for source in node.servers.running.values()
    }
    assert found == {one.name: (True, one.revision, one.tools, {}) for one in chosen}
    eras = {one.name: node.connection(one.name).era for one in chosen}
    assert {name for name, era in eras.items() if era == "modern"} == {"time", "git", "any"}
    assert node.servers.health() == {one.name: "healthy" for one in chosen}


@pytest.mark.requirement("C16.4")
async def test_each_is_in_the_sandbox_that_nobody_asked_for(node: Node) -> None:
    held = ("files", "processes", "messages", "network", "privileges")
    for name in node.servers.running:
        layers = {layer.name: layer.present for layer in node.servers.layers[name]}
        assert all(layers[layer] for layer in held), (name, layers)


async def test_nothing_of_what_a_server_says_of_a_tool_is_lost(node: Node) -> None:
    for name in node.servers.running:
        listed = {tool["name"]: tool for tool in await node.connection(name).tools()}
        for tool in tools(node.source(name)):
            said = listed[tool.name]
            assert tool.input_schema == said["inputSchema"]
            assert tool.output_schema == said.get("outputSchema")
            assert tool.title == said.get("title")
            assert tool.annotations == said.get("annotations", {})
            assert tool.description == f"[MCP:{name}] {said['description']}".rstrip()


# Files


async def test_a_file_is_written_read_and_listed_where_the_arguments_say(
    node: Node, ground: Path
) -> None:
    file = ground / "files" / "letter.txt"
    with pytest.raises(CallRefused):
        await node.call("files:write_file", path=str(file), content="too soon")
    assert not file.exists()
    await node.act("files:write_file", path=str(file), content="Dear Ada,\n")
    assert file.read_text() == "Dear Ada,\n"
    read = await node.call("files:read_text_file", path=str(file))
    assert read.text == "Dear Ada,\n"
    assert read.structured == {"content": "Dear Ada,\n"}
    listed = await node.call("files:list_directory", path=str(file.parent))
    assert listed.text == "[FILE] letter.txt"


async def test_outside_of_its_folder_the_server_itself_refuses(node: Node, ground: Path) -> None:
    for path in (ground / "elsewhere" / "poem", "/etc/passwd"):
        refused = await node.call("files:read_text_file", path=str(path))
        assert refused.is_error
        assert "Access denied" in refused.text
    refused = await node.act("files:write_file", path=str(ground / "data" / "x"), content="x")
    assert refused.is_error
    assert not (ground / "data" / "x").exists()


# Everything


async def test_every_kind_of_content_arrives_whole(node: Node) -> None:
    echo = await node.call("everything:echo", message="hello")
    assert echo.content == ({"type": "text", "text": "Echo: hello"},)
    weather = await node.call("everything:get-structured-content", location="Chicago")
    assert weather.structured == {
        "temperature": 36,
        "conditions": "Light rain / drizzle",
        "humidity": 82,
    }
    assert json.loads(weather.text) == weather.structured
    image = (await node.call("everything:get-tiny-image")).content[1]
    assert image == {"type": "image", "mimeType": "image/png", "data": _picture()}
    links = (await node.call("everything:get-resource-links", count=3)).content[1:]
    assert [link["type"] for link in links] == ["resource_link"] * 3
    assert links[1]["mimeType"] == "text/plain"
    assert {"uri", "name", "description"} <= links[1].keys()
    reference = await node.call(
        "everything:get-resource-reference", resourceType="Text", resourceId=2
    )
    embedded = next(part for part in reference.content if part["type"] == "resource")
    assert embedded["resource"].keys() == {"uri", "mimeType", "text"}


def _picture() -> str:
    """The picture as it stands in the server's own source."""
    source = (servers.PACKAGES / "server-everything/dist/tools/get-tiny-image.js").read_text()
    (found,) = re.findall(r'"(iVBOR[^"]+)"', source)
    return found


async def test_the_annotations_of_parts_are_kept(node: Node) -> None:
    told = await node.call(
        "everything:get-annotated-message", messageType="error", includeImage=True
    )
    assert [part["annotations"] for part in told.content] == [
        {"priority": 1, "audience": ["user", "assistant"]},
        {"priority": 0.5, "audience": ["user"]},
    ]


async def test_what_the_server_calls_an_error_is_one(node: Node) -> None:
    refused = await node.call(
        "everything:get-resource-reference", resourceType="Text", resourceId=-1
    )
    assert refused.is_error
    assert refused.outcome.value == "error"
    assert "-1" in refused.text


@pytest.mark.requirement("C3.8")
async def test_a_server_knows_no_variables_but_its_own(node: Node) -> None:
    seen: dict[str, str] = json.loads((await node.call("everything:get-env")).text)
    proxied = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
    known = {"PATH", "HOME", "TMPDIR", "NODE_USE_ENV_PROXY", "OPENFANG_RUN", "PWD"}
    assert seen.keys() <= known | proxied | {name.lower() for name in proxied}
    assert seen["HOME"].startswith(str(node.app.parts.home.path / "servers" / "everything"))


@pytest.mark.requirement("C3.5")
async def test_a_long_operation_tells_how_far_it_is(node: Node) -> None:
    told = list[Progress]()
    arguments = {"duration": 1, "steps": 4}
    call = node.made(LONG, arguments, progress=told.append)
    with anyio.fail_after(60):
        result = await node.app.invoke(call)
    assert "1 seconds, Steps: 4" in result.text
    assert [(one.progress, one.total) for one in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.requirement("C3.5")
async def test_a_call_that_is_given_up_holds_up_nobody(node: Node) -> None:
    call = await node.given_up(LONG, {"duration": 50, "steps": 100})
    assert (await node.call("everything:echo", message="on")).text == "Echo: on"
    endings = [event for event in await node.app.events() if event.call_id == call.id]
    assert endings[-1].payload["outcome"] == "cancelled"


# Memory and thought


async def test_what_was_remembered_is_known_after_a_restart(node: Node, ground: Path) -> None:
    ada: dict[str, Any] = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    created = await node.act("memory:create_entities", entities=[ada])
    assert created.structured == {"entities": [ada]}
    assert '"Ada"' in (ground / "notes" / "memory.jsonl").read_text()
    await node.restarted("memory")
    graph = await node.call("memory:read_graph")
    assert graph.structured == {"entities": [ada], "relations": []}


async def test_a_thought_is_taken(node: Node) -> None:
    thought = await node.call(
        "thinking:sequentialthinking",
        thought="Start where it is known.",
        nextThoughtNeeded=False,
        thoughtNumber=1,
        totalThoughts=1,
    )
    assert json.loads(thought.text)["thoughtHistoryLength"] == 1
    assert thought.structured["totalThoughts"] == 1


# Time


async def test_a_time_is_converted(node: Node) -> None:
    converted = await node.call(
        "time:convert_time",
        source_timezone="Asia/Tokyo",
        time="16:30",
        target_timezone="Asia/Kolkata",
    )
    assert converted.structured["time_difference"] == "-3.5h"
    assert converted.structured["target"]["datetime"].endswith("T13:00:00+05:30")
    assert converted.meta["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-time"


async def test_a_time_zone_that_is_none_is_the_servers_error(node: Node) -> None:
    refused = await node.call("time:get_current_time", timezone="Moon/Crater")
    assert refused.is_error
    assert "Moon/Crater" in refused.text


# Git


async def test_a_repository_that_nobody_named_cannot_be_seen(node: Node, ground: Path) -> None:
    """The server would take any: it is the sandbox that refuses."""
    hidden = await node.call("any:git_status", repo_path=str(ground / "elsewhere"))
    assert hidden.is_error
    assert "elsewhere" in hidden.text


async def test_a_named_repository_is_looked_at_and_worked_on(node: Node, ground: Path) -> None:
    place = {"repo_path": str(ground / "repository")}
    status = await node.call("git:git_status", **place)
    assert "modified:   poem" in status.text
    log = await node.call("git:git_log", **place, max_count=3)
    assert "A first verse" in log.text
    diff = await node.call("git:git_diff_unstaged", **place)
    assert "-roses are red\n+violets are blue" in diff.text
    with pytest.raises(CallRefused):
        await node.call("git:git_commit", **place, message="Too soon")
    await node.act("git:git_add", **place, files=["poem"])
    await node.act("git:git_commit", **place, message="A second verse")
    said = await to_thread.run_sync(_log, ground / "repository")
    assert said == ["A second verse", "A first verse"]


def _log(repository: Path) -> list[str]:
    command = [*GIT, repository, "log", "--format=%s"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


# SQLite


async def test_a_table_is_made_filled_and_read(node: Node, ground: Path) -> None:
    await node.act("sqlite:create_table", query="CREATE TABLE fruit (name TEXT, price REAL)")
    row = "INSERT INTO fruit VALUES ('fig', 0.5)"
    with pytest.raises(CallRefused):
        await node.call("sqlite:write_query", query=row)
    await node.act("sqlite:write_query", query=row)
    read = await node.call("sqlite:read_query", query="SELECT * FROM fruit")
    assert read.text == "[{'name': 'fig', 'price': 0.5}]"
    assert (ground / "data" / "shop.db").stat().st_size > 0
    refused = await node.call("sqlite:read_query", query="DELETE FROM fruit")
    assert "Only SELECT queries" in refused.text


async def test_a_server_that_is_killed_is_back_with_all_of_its_tools(node: Node) -> None:
    before = node.connection("thinking")
    assert isinstance(before.transport, StdioTransport)
    assert before.transport.child
    before.transport.child.process.kill()
    await node.back("thinking", before)
    assert len(node.source("thinking").tools()) == 1
    with pytest.raises(OpenFangError):
        await node.call("thinking:no-such-tool")
