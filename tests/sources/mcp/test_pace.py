"""How often a server is looked at, and how soon one that is given up answers for itself."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.sources.mcp.hostility import QUICK, hostile, scene, until

from openfang.core.errors import CallTimedOut, GuardTripped
from openfang.sources.mcp.pace import Pace
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("C3.6", "C3.7")
def test_the_usual_pace_is_the_contracts() -> None:
    assert (Pace().refresh, Pace().probe) == (300, 60)


@pytest.mark.requirement("C3.6")
async def test_a_list_is_asked_for_again_after_a_while_although_nothing_was_said(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, hostile(), pace=replace(QUICK, refresh=0.05)) as node:
        first = node.bad._listed
        await until(lambda: node.bad._listed > first)
        seen = (await node.call("seen")).structured
        assert seen["lists"] >= 2
        assert node.servers.health()["bad"] == "healthy"


@pytest.mark.requirement("C3.7")
async def test_a_call_to_a_server_whose_breaker_is_open_fails_at_once(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, hostile(more="timeout_secs = 0.2"), clock=ManualClock()) as node:
        for _ in range(5):
            assert isinstance(await node.fails("hang"), CallTimedOut)
        took: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            refused = await node.fails("echo", text="x")
            took.append(time.perf_counter() - began)
            assert isinstance(refused, GuardTripped)
            assert "did not answer within 0.2 s" in refused.message
    # The best: a busy machine may hold up the others.
    assert min(took) < 0.05
