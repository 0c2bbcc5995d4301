"""A client that hangs up in the middle of a change: the change is made whole all the same."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.api.test_mcp import NEW, SERVERS, stdio, stored
from tests.edges.live import live
from tests.sources.mcp.hostility import until

from openfang.edges.api.watch import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C4.8", "C2.6")

CHANGES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "add": ("POST", SERVERS, NEW),
    "enable": ("POST", f"{SERVERS}/off/enable", {}),
    "remove": ("DELETE", f"{SERVERS}/off", None),
}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    config = stdio("off", more='enabled = false\nenv = { TOKEN = "${MCP_OFF_TOKEN}" }')
    async with live(tmp_path / "home", config=config) as running:
        reply = await running.ask("PUT", "/api/secrets/MCP_OFF_TOKEN", json={"value": "figs-1234"})
        assert reply.status == 200, reply.body
        yield running


@contextmanager
def held_up(home: Path) -> Generator[None]:
    """Hold the lock that every writer of the configuration takes."""
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def watching() -> list[asyncio.Task[Any]]:
    """The tasks that look whether a client is still there."""
    name = f" {Watch.__name__}."
    return [one for one in asyncio.all_tasks() if name in repr(one.get_coro())]


async def begun(node: Live, act: str) -> None:
    """Wait until it is on record, and so in the hands of whoever writes."""
    await until(watching)
    while not any(one["payload"]["act"] == act for one in await changes(node)):
        pass  # it is asked once more


async def changes(node: Live) -> list[Any]:
    return (await node.get("/api/audit?event=server_changed")).json["records"]


def in_force(node: Live) -> dict[str, bool]:
    return {one.name: one.enabled for one in node.app.parts.config.mcp_servers}


def written(node: Live) -> dict[str, bool]:
    servers = tomllib.loads(node.config_file.read_text()).get("mcp_servers", [])
    return {one["name"]: one["enabled"] for one in servers}


@pytest.mark.parametrize("act", CHANGES)
async def test_a_change_whose_client_has_gone_is_in_force_as_it_is_written(
    node: Live, act: str
) -> None:
    method, path, content = CHANGES[act]
    body = b"" if content is None else json.dumps(content).encode()
    client = await node.client()
    with held_up(node.app.parts.home.path):
        await client.send(node.request(method, path, "Content-Type: application/json", body=body))
        await begun(node, act)
        (looking,) = watching()
        client.hang_up()
        await asyncio.wait([looking])
    async with node.app.parts.changing:  # whoever changes something has it until that is done
        assert in_force(node) == written(node)
    expected = {
        "add": {"off": False, "more": False},
        "enable": {"off": True},
        "remove": {},
    }
    assert in_force(node) == expected[act]
    assert ("MCP_OFF_TOKEN" in await stored(node)) is (act != "remove")
    again = await node.ask(method, path, json=content)
    assert again.status == {"add": 409, "enable": 200, "remove": 404}[act]
