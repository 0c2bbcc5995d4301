"""How many sessions there are, for how long, and what they cost."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.live import live
from tests.edges.mcp.shelf import Shelf
from tests.edges.mcp.talking import BOTH, edge_of, greet, memory, new_edge, request, until

from openfang.edges.mcp.http import McpEdge
from openfang.edges.mcp.sessions import Sessions
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.live import Live

    from openfang.core.calls import Caller
    from openfang.core.session import Options
    from openfang.core.trace import Chain
    from openfang.edges.mcp.ports import Place

pytestmark = pytest.mark.requirement("C4.4", "C4.5")

GREETING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "clientInfo": {"name": "a client like any other", "version": "1.2.3", "title": "A Client"},
}


async def test_there_are_only_so_many_sessions_and_ending_one_makes_room(node: Live) -> None:
    clock = node.app.parts.clock
    new_edge(node, sessions=Sessions(clock, most=3, most_of_one=2))
    first, _ = await greet(node), await greet(node)
    body = request("initialize", {"protocolVersion": "2025-11-25"})
    refused = await node.post("/mcp", body)
    assert refused.told == (429, "too_many_sessions")
    assert "DELETE" in refused.problem["way_out"]
    await greet(node, key=await node.key("second"))
    third = await node.key("third")
    full = await node.post("/mcp", body, key=third)
    assert full.told == (503, "too_many_sessions")
    assert (await first.end()).status == 200
    await greet(node, key=third)


async def test_a_session_that_is_not_used_ends_and_one_that_is_goes_on(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        used, unused, listened = await greet(node), await greet(node), await greet(node)
        async with listened.listening():
            for _ in range(2):
                clock.advance(1000)
                assert (await used.ask("ping"))["result"] == {}
            assert (await unused.post(request("ping"))).status == 404
            assert (await listened.ask("ping"))["result"] == {}
            assert len(edge_of(node).sessions) == 3
            new = await greet(node)
        await until(lambda: not len(edge_of(node).staying))
        clock.advance(1801)
        for session in (used, listened, new):
            assert (await session.post(request("ping"))).status == 404


async def test_sessions_that_are_over_make_room(node: Live) -> None:
    clock = ManualClock()
    edge = new_edge(node, sessions=Sessions(clock, most=2))
    await greet(node)
    await greet(node)
    clock.advance(1801)
    await greet(node)
    assert len(edge.sessions) == 1


async def test_a_greeting_may_not_be_a_book(node: Live) -> None:
    params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "x" * 70_000}}
    reply = await node.post("/mcp", request("initialize", params))
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
    assert len(edge_of(node).sessions) == 0


@dataclass
class Library(Shelf):
    """Offers resources that somebody may have watched."""

    watched: list[str] = field(default_factory=list[str])

    async def subscribe(self, uri: str, options: Options) -> None:
        del options
        self.watched.append(uri)

    async def unsubscribe(self, uri: str, options: Options) -> None:
        del options
        self.watched.remove(uri)


async def test_nothing_is_watched_for_a_session_that_has_ended(node: Live) -> None:
    library, clock = Library({}), ManualClock()
    served = node.served

    def offers(caller: Caller, place: Place, chain: Chain) -> Library:
        del caller, place, chain
        return library

    edge = McpEdge(served.handler, offers, Sessions(clock))
    served.app.mounts = (edge,)
    deleted, forgotten = await greet(node), await greet(node)
    for session in (deleted, forgotten):
        for uri in ("test://a", "test://b"):
            assert (await session.ask("resources/subscribe", {"uri": uri}))["result"] == {}
    assert sorted(library.watched) == ["test://a"] * 2 + ["test://b"] * 2
    async with deleted.listening():
        await until(lambda: library.hearers)
    await deleted.end()
    assert sorted(library.watched) == ["test://a", "test://b"]
    assert library.hearers == []
    clock.advance(1801)
    await edge.sweep()
    assert (library.watched, len(edge.sessions)) == ([], 0)


async def test_a_session_that_waits_takes_little_room(node: Live) -> None:
    """1,000 of them, by what the process holds; the first ones pay for what all share."""
    client = await node.client()
    body = json.dumps(request("initialize", GREETING)).encode()
    one = node.request("POST", "/mcp", f"Accept: {BOTH}", body=body)

    async def greet_many(count: int) -> int:
        for _ in range(count // 10):
            await client.send(one * 10)
            for _ in range(10):
                assert (await client.answer()).status == 200
        gc.collect()
        return memory()

    before = await greet_many(100)
    after = await greet_many(900)
    assert len(edge_of(node).sessions) == 1000
    assert (after - before) / 900 < 25 * 1024
