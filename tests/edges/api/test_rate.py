"""GCRA over HTTP: cells by route, per key and per address, and what is told of them (C12.3)."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from tests.edges.live import live

from openfang.edges.api.table import ENDPOINTS
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C12.3")

DEFAULT = "[limits]\n"
TIGHT = "[limits]\ncells_per_minute = 60\nburst = 40\n"
# What is not named here costs as much as a look at the node's health.
WORK = {
    ("POST", "/api/tools/{id}/call"): "",
    ("POST", "/api/agents/{name}/message"): "",
    ("POST", "/api/agents/{name}/stream"): "",
    ("POST", "/api/a2a/discover"): "",
    ("POST", "/api/a2a/send"): "",
    ("POST", "/api/schedules"): "",
    ("GET", "/api/sessions/{id}/export"): "message",
    ("GET", "/api/usage"): "message",
    ("GET", "/api/audit/export"): "message",
    ("GET", "/api/audit/verify"): "message",
    ("POST", "/api/audit/sql"): "message",
    ("POST", "/api/mcp/servers/{name}/test"): "call",
    ("POST", "/api/extensions"): "call",
    ("POST", "/api/skills"): "call",
    ("POST", "/api/approvals/{id}/answer"): "call",
}


def left(reply: Reply) -> int:
    return int(reply.headers["RateLimit-Remaining"])


def test_the_work_of_every_route_is_data() -> None:
    for endpoint in ENDPOINTS:
        named = (endpoint.method, endpoint.path)
        assert (named, endpoint.work) == (named, WORK.get(named, "health"))


async def test_the_501st_cell_is_refused_and_a_wait_of_retry_after_is_enough(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", config=DEFAULT, clock=clock) as node:
        seen = [left(await node.get("/api/version")) for _ in range(500)]
        assert seen == list(range(499, -1, -1))
        for _ in range(3):
            refused = await node.get("/api/version")
            assert refused.told == (429, "rate_limit")
            assert (refused.headers["Retry-After"], left(refused)) == ("1", 0)
            assert refused.headers["RateLimit-Reset"] == "60"
            assert refused.problem["retry_after"] == pytest.approx(0.12)
        clock.advance(1)
        assert (await node.get("/api/version")).status == 200


async def test_one_second_less_than_retry_after_is_not_enough(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", config=DEFAULT, clock=clock) as node:
        for _ in range(16):
            assert (await node.get("/api/audit/verify")).status == 200
        refused = await node.get("/api/audit/verify")
        assert (refused.status, left(refused)) == (429, 20)
        wait = int(refused.headers["Retry-After"])
        assert wait == math.ceil(10 * 60 / 500) == 2
        clock.advance(wait - 1)
        assert (await node.get("/api/audit/verify")).status == 429
        clock.advance(1)
        assert (await node.get("/api/audit/verify")).status == 200


async def costs(node: Live) -> dict[str, int]:
    """How many cells each kind of request takes, by what is left after it."""
    found: dict[str, int] = {}
    before = left(await node.get("/api/version"))
    for name, reply in {
        "health": await node.get("/api/status"),
        "call": await node.call("mcp:demo:echo"),
        "message": await node.post("/api/audit/sql", {"query": "SELECT 1"}),
    }.items():
        found[name] = before - left(reply)
        before = left(reply)
    return found


async def test_a_request_costs_what_its_route_says(tmp_path: Path, demo: Demo) -> None:
    async with live(
        tmp_path / "home", config=DEFAULT, clock=ManualClock(), sources=[demo.source]
    ) as node:
        assert await costs(node) == {"health": 1, "call": 5, "message": 30}


async def test_the_operator_sets_what_each_kind_of_request_costs(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[limits]\ncosts = { health = 7, call = 3, message = 11 }\n"
    async with live(
        tmp_path / "home", config=config, clock=ManualClock(), sources=[demo.source]
    ) as node:
        assert await costs(node) == {"health": 7, "call": 3, "message": 11}
        public = [left(await node.get("/api/health", key=None)) for _ in range(2)]
        assert public == [493, 486]


async def test_calls_and_other_requests_share_the_rate_of_a_key(tmp_path: Path, demo: Demo) -> None:
    async with live(
        tmp_path / "home", config=TIGHT, clock=ManualClock(), sources=[demo.source]
    ) as node:
        told = [(await node.call("mcp:demo:echo")).status for _ in range(9)]
        assert told == [200] * 8 + [429]
        assert (await node.get("/api/version")).status == 429
        assert demo.source.reached == 8


async def test_each_key_has_its_own_rate_and_may_have_its_own_limit(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", config=DEFAULT, clock=clock) as node:
        small = await node.key("small", cells_per_minute=10)
        large = await node.key("large", cells_per_minute=100_000)
        other = await node.key("other")
        told = Counter([(await node.get("/api/version", key=small)).status for _ in range(12)])
        assert told == {200: 10, 429: 2}
        assert left(await node.get("/api/version", key=large)) == 99_999
        assert left(await node.get("/api/version", key=other)) == 499
        refused = await node.get("/api/version", key=small)
        assert (refused.headers["Retry-After"], refused.headers["RateLimit-Reset"]) == ("6", "60")
        clock.advance(5)
        assert (await node.get("/api/version", key=small)).status == 429
        clock.advance(1)
        assert (await node.get("/api/version", key=small)).status == 200


async def from_address(node: Live, address: str, path: str, **more: Any) -> int:
    """Ask from another address of this machine."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as web,
        web.get(node.at(path), **more) as response,
    ):
        return response.status


async def test_what_is_public_is_limited_by_address(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", config=TIGHT, clock=clock) as node:
        seen = [left(await node.get("/api/health", key=None)) for _ in range(40)]
        assert seen == list(range(39, -1, -1))
        refused = await node.get("/api/ready", key=None)
        assert (refused.told, refused.headers["Retry-After"]) == ((429, "rate_limit"), "1")
        assert await from_address(node, "127.0.0.2", "/api/health") == 200
        assert (await node.get("/api/version")).status == 200
        clock.advance(1)
        assert (await node.get("/api/health", key=None)).status == 200


async def test_who_comes_without_a_key_pays_with_its_address(tmp_path: Path) -> None:
    async with live(tmp_path / "home", config=TIGHT, clock=ManualClock()) as node:
        told = [(await node.get("/api/tools", key=None)).status for _ in range(41)]
        assert Counter(told) == {401: 40, 429: 1}
        assert told[-1] == 429


async def test_who_guesses_names_pays_for_it(tmp_path: Path, demo: Demo) -> None:
    async with live(
        tmp_path / "home", config=TIGHT, clock=ManualClock(), sources=[demo.source]
    ) as node:
        replies = [await node.call(f"guess-{number}") for number in range(9)]
        assert Counter(reply.status for reply in replies) == {404: 8, 429: 1}
        assert [left(reply) for reply in replies] == [35, 30, 25, 20, 15, 10, 5, 0, 0]
        assert (await node.get("/api/nothing")).status == 429


async def test_a_large_body_is_not_read_for_who_has_no_cells_left(tmp_path: Path) -> None:
    async with live(tmp_path / "home", config=TIGHT, clock=ManualClock()) as node:
        for _ in range(8):
            await node.call("system_time")
        path = "/api/tools/system_time/call"
        for header in ("Content-Length: 9000000", "Transfer-Encoding: chunked"):
            client = await node.client()
            reply = await client.ask(node.request("POST", path, header))
            assert (reply.status, reply.problem["rule"]) == (429, "rate_limit")


async def test_a_cost_above_a_whole_burst_is_never_granted(tmp_path: Path) -> None:
    config = "[limits]\ncells_per_minute = 60\nburst = 20\n"
    async with live(tmp_path / "home", config=config, clock=ManualClock()) as node:
        refused = await node.get("/api/audit/verify")
        assert (refused.told, "Retry-After" in refused.headers) == ((403, "rate_limit"), False)
        assert "--limit" in refused.problem["way_out"]


async def test_a_call_that_is_malformed_is_paid_for(tmp_path: Path) -> None:
    # So slow that no cell comes back meanwhile.
    config = "[limits]\ncells_per_minute = 1\nburst = 500"
    async with live(tmp_path, config=config) as node:
        spent = left(await node.get("/api/version"))
        for body, query in ((b"{", ""), (b"[]", ""), (b"{}", "?no=such")):
            path = f"/api/tools/system_time/call{query}"
            json_type = {"Content-Type": "application/json"}
            reply = await node.ask("POST", path, data=body, headers=json_type)
            assert reply.status in {400, 422}
            assert left(reply) == spent - 5
            spent = left(reply)
