"""A clock that jumps by ten days: what counts seconds does not notice, what names a date does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.edges.demo import Demo
from tests.edges.live import Reply, live

from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.4", "C13.2")

TEN_DAYS = 10 * 86_400_000_000_000
JUMPS = (TEN_DAYS, -TEN_DAYS, -TEN_DAYS, TEN_DAYS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def wait_of(reply: Reply) -> tuple[str, str]:
    assert reply.status == 429
    return reply.problem["rule"], reply.headers["Retry-After"]


@pytest.mark.requirement("C12.3")
async def test_a_rate_neither_opens_nor_closes(tmp_path: Path, clock: ManualClock) -> None:
    config = "[limits]\ncells_per_minute = 60\nburst = 10\n"
    async with live(tmp_path / "home", config=config, clock=clock, sources=[Demo().source]) as node:
        assert [(await node.call("mcp:demo:echo")).status for _ in range(2)] == [200, 200]
        for jump in JUMPS:
            clock.now_ns += jump
            assert wait_of(await node.call("mcp:demo:echo")) == ("rate_limit", "5")
        clock.advance(4)
        assert wait_of(await node.call("mcp:demo:echo")) == ("rate_limit", "1")
        clock.advance(1)
        assert (await node.call("mcp:demo:echo")).status == 200


async def test_a_breaker_stays_open_for_its_seconds(tmp_path: Path, clock: ManualClock) -> None:
    async with live(tmp_path / "home", clock=clock, sources=[Demo().source]) as node:
        for _ in range(5):
            assert (await node.call("mcp:demo:broken")).headers["OpenFang-Failure"]
        for jump in JUMPS:
            clock.now_ns += jump
            assert wait_of(await node.call("mcp:demo:echo")) == ("breaker_open", "30")
        clock.advance(30)
        assert (await node.call("mcp:demo:echo")).status == 200


async def test_a_call_in_flight_has_the_same_time_as_before(
    tmp_path: Path, clock: ManualClock
) -> None:
    demo, replies = Demo(), list[Reply]()
    async with (
        live(tmp_path / "home", clock=clock, sources=[demo.source]) as node,
        anyio.create_task_group() as group,
    ):

        async def call() -> None:
            replies.append(await node.call("mcp:demo:wait"))

        group.start_soon(call)
        await demo.begun.wait()
        for jump in JUMPS:
            clock.now_ns += jump
            assert (await node.call("mcp:demo:echo")).json["outcome"] == "ok"
        demo.released.set()
    assert [reply.json["outcome"] for reply in replies] == ["ok"]


@pytest.mark.requirement("C18.1")
async def test_a_key_expires_by_the_date(tmp_path: Path, clock: ManualClock) -> None:
    async with live(tmp_path / "home", clock=clock, sources=[Demo().source]) as node:
        key = await node.key("short", ttl_secs=3600)
        seen: list[int] = []
        for jump in (0, *JUMPS):
            clock.now_ns += jump
            seen += [(await node.call("mcp:demo:echo", key=key)).status]
    assert seen == [200, 401, 200, 200, 200]


@pytest.mark.requirement("C13.1", "C13.6")
async def test_records_keep_their_order_and_their_proof(tmp_path: Path, clock: ManualClock) -> None:
    began, asked = clock.now_ns, list[str]()
    async with live(tmp_path / "home", clock=clock, sources=[Demo().source]) as node:
        for jump in (0, *JUMPS):
            clock.now_ns += jump
            asked.append((await node.call("mcp:demo:echo")).json["call_id"])
            newest = (await node.get("/api/audit?limit=1")).json["records"]
            assert newest[0]["call_id"] == asked[-1]
            assert (await node.get("/api/audit/verify")).json["findings"] == []
        ends = (await node.get("/api/audit?event=tool_invocation_end")).json["records"]
    assert [end["call_id"] for end in ends] == asked
    numbers = [end["audit_id"] for end in ends]
    assert numbers == sorted(set(numbers))
    clock.now_ns = began - TEN_DAYS
    async with live(tmp_path / "home", clock=clock, sources=[Demo().source]) as node:
        assert (await node.call("mcp:demo:echo")).json["audit"]["start"] > numbers[-1]
        assert (await node.get("/api/audit/verify")).json["findings"] == []
