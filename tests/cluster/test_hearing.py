"""What happens at one node is known at every other at once, and not when it looks next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.cluster.house import homes
from tests.cluster.opened import opened

from openfang.app import timers as looking
from openfang.core.errors import Parked
from openfang.core.ids import Kind
from openfang.core.keys import Way
from openfang.core.tools import Risk
from openfang.policy import waits
from openfang.storage.timers import Timer
from openfang.testing.sources import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

    from openfang.testing.app import OpenApp

pytestmark = pytest.mark.requirement("C13.3")
TOOL = "mcp:demo:deploy"


async def done(_: Mapping[str, Any]) -> str:
    return "done"


def source() -> TableSource:
    facts = {"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}
    return TableSource(Kind.MCP, "demo", {"deploy": (facts, done)})


@pytest.fixture
def nodes(make_home: Callable[[], Cli], empty_postgres: str) -> list[Node]:
    return homes(make_home, empty_postgres, "ab")


@pytest.fixture
async def two(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[OpenApp]]:
    monkeypatch.setattr(waits, "_LOOK_SECONDS", 60.0)
    monkeypatch.setattr(looking, "_LOOK", 60.0)
    async with opened(nodes) as apps:
        yield apps


@pytest.mark.requirement("C15.1")
async def test_a_call_goes_on_when_its_question_is_answered_at_another_node(
    two: list[OpenApp],
) -> None:
    a, b = two
    for app in two:
        app.add(source())
    results = list[str]()

    async def wait() -> None:
        call = a.make(TOOL, {"to": "prod"}, patience=30.0)
        results.append((await a.invoke(call)).text)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            while not (waiting := await b.parts.approvals.store.pending(0)):
                await anyio.lowlevel.checkpoint()
            answer = b.parts.approvals.answer
            await answer(waiting[0].id, approve=True, by=b.caller.id, via=Way.API)
    assert results == ["done"]
    with pytest.raises(Parked):  # it was spent once, for all nodes
        await b.invoke(b.make(TOOL, {"to": "prod"}))


@pytest.mark.requirement("C5.6")
async def test_what_one_node_plans_another_one_does(two: list[OpenApp]) -> None:
    a, b = two
    seen, done = list[str](), anyio.Event()

    async def run(timer: Timer) -> None:
        seen.append(timer.subject)
        done.set()

    a.parts.timers.register("test", run)  # b does not know how
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(a.parts.timers.run)
            await anyio.wait_all_tasks_blocked()
            now = b.parts.clock.time_ns()
            await b.parts.timers.plan(Timer(id="t", kind="test", subject="it", due=now))
            await done.wait()
            group.cancel_scope.cancel()
    assert seen == ["it"]
