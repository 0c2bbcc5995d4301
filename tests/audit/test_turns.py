"""Who commits at once and who shares a commit, by the turns of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.storage.units import Head

pytestmark = pytest.mark.requirement("C7.13")
_TOOL = "mcp:demo:echo"


async def _echo(_: Mapping[str, Any]) -> str:
    return "x"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    facts: Mapping[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    demo = TableSource(Kind.MCP, "demo", {"echo": (facts, _echo)})
    async with open_test_app(tmp_path / "home", sources=[demo]) as app:
        await app.call(_TOOL)
        await anyio.wait_all_tasks_blocked()
        yield app


def counted(app: OpenApp) -> list[int]:
    """Note the head of the log at every commit from now on."""
    heads, told = list[int](), app.parts.writer.on_commit

    def committed(head: Head) -> None:
        heads.append(head.seq)
        if told is not None:
            told(head)

    app.parts.writer.on_commit = committed
    return heads


class Turns:
    """How often the loop has gone round since."""

    def __init__(self) -> None:
        self.count = 0

    async def watch(self) -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            self.count += 1


async def test_a_lone_caller_commits_start_and_end_without_waiting_for_a_turn(app: OpenApp) -> None:
    heads, turns = counted(app), Turns()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.watch)
        await app.call(_TOOL)
        await app.call(_TOOL)
        assert (len(heads), turns.count) == (4, 0)
        tasks.cancel_scope.cancel()


async def test_a_caller_that_never_pauses_gives_way_after_a_few_calls(app: OpenApp) -> None:
    turns = Turns()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.watch)
        for _ in range(90):
            await app.call(_TOOL)
        tasks.cancel_scope.cancel()
    assert turns.count >= 10


async def test_callers_side_by_side_share_their_commits(app: OpenApp) -> None:
    heads, callers, calls = counted(app), 20, 10
    before = app.parts.writer.head.seq

    async def caller() -> None:
        for _ in range(calls):
            await app.call(_TOOL)

    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(caller)
    assert app.parts.writer.head.seq == before + 3 * callers * calls
    # Two for each round of all of them, and a few until it is known that they are several.
    assert len(heads) <= 2 * calls + callers
