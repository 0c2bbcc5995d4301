"""Servers that change while they are called over HTTP, and what of a caller reaches them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.edges.live import live
from tests.peers.servers import Server
from tests.sources.mcp.hostility import until

if TYPE_CHECKING:
    from tests.edges.live import Live, Reply

    from openfang.app.servers.running import Servers

PEER = Path(__file__).parents[2] / "sources" / "mcp" / "peers" / "errands.py"
RAISED = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"


def server(name: str, *tools: str, **keys: object) -> str:
    args = ("-I", "-S", str(PEER), *(tools or ("get_note",)))
    keys = {"sandbox": "off", "risk": "LOW", **keys}
    return Server(name=name, command=sys.executable, args=args, keys=keys).entry


async def settled(node: Live) -> Servers:
    servers = node.app.parts.servers
    assert servers
    await servers.settled()
    return servers


async def ran(node: Live, name: str, errand: str) -> str:
    reply = await node.call(f"mcp:{name}:get_note", {"errand": errand})
    assert reply.status == 200, reply.body
    return reply.json["content"][0]["text"]


def _held(pipes: list[Path]) -> list[int]:
    """Wait until each is read from."""
    return [os.open(pipe, os.O_WRONLY) for pipe in pipes]


def _released(ends: list[int]) -> None:
    for end in ends:
        os.write(end, b"go on")
        os.close(end)


@pytest.mark.requirement("C2.9")
async def test_of_200_calls_in_flight_none_is_lost_when_servers_change(tmp_path: Path) -> None:
    names = ("changed", "same", "removed")
    pipes = [tmp_path / name for name in names]
    for pipe in pipes:
        os.mkfifo(pipe)
    before = [server(name, timeout_secs=60) for name in names]
    async with live(tmp_path / "home", config="\n".join((RAISED, *before))) as node:
        servers = await settled(node)
        first = [await ran(node, name, "pid") for name in names[:2]]
        replies: dict[int, Reply] = {}

        async def call(number: int) -> None:
            """The first of each server waits for our word, and so do all behind it."""
            held = {"errand": "read", "text": str(pipes[number % 3])}
            arguments = held if number < 3 else {"text": "go on"}
            replies[number] = await node.call(f"mcp:{names[number % 3]}:get_note", arguments)

        slots = node.app.parts.pipeline.guards.slots
        lanes = [f"mcp:{name}" for name in names]
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(call, number)
            ends = await to_thread.run_sync(_held, pipes)
            for number in range(3, 200):
                group.start_soon(call, number)
            await until(lambda: sum(slots.used(one) + slots.waiting(one) for one in lanes) == 200)
            after = [server("changed", timeout_secs=59), before[1], server("added")]
            text = "\n".join((RAISED, *after))
            await to_thread.run_sync(node.config_file.write_text, text)
            assert (await node.post("/api/config/reload")).status == 200
            assert replies == {}
            await to_thread.run_sync(_released, ends)
        assert [reply.body for reply in replies.values() if reply.status != 200] == []
        said = [reply.json["content"] for reply in replies.values()]
        assert said == [[{"type": "text", "text": "go on"}]] * 200
        await until(lambda: servers.find("added").connected)
        last = [await ran(node, name, "pid") for name in names[:2]]
        assert (last[0] != first[0], last[1] == first[1]) == (True, True)
        assert (await node.call("mcp:removed:get_note")).status == 404
        assert await ran(node, "added", "pid")
        assert (await node.get("/api/audit/verify")).json["intact"]


@pytest.mark.requirement("C3.2", "C18.4")
async def test_a_server_hears_who_we_are_and_nothing_of_a_callers_credentials(
    tmp_path: Path,
) -> None:
    config = server("it", tools={"get_note": {"requires_admin_token": True}})
    async with live(tmp_path / "home", config=RAISED + config) as node:
        await settled(node)
        user = await node.key("user")
        token = await node.key("second", kind="admin_token")
        reply = await node.call(
            "mcp:it:get_note", {"errand": "heard"}, key=user, headers={"X-Admin-Token": token}
        )
        assert reply.status == 200, reply.body
        heard = reply.json["content"][0]["text"][::-1]
    messages = [json.loads(line) for line in heard.splitlines()]
    asked = [message["method"] for message in messages]
    assert asked == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert messages[1]["params"]["clientInfo"]["name"] == "openfang"
    for secret in (user, token, node.admin):
        assert secret.partition("_")[2] not in heard
