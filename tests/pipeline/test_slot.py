"""The slot of a call whose client is being asked: others have it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from openfang.core.ids import Kind
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.guard.concurrency import Slots
from openfang.pipeline.slot import Slot
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.core.calls import Admitted

pytestmark = pytest.mark.requirement("C7.11")


@dataclass
class Person:
    """A client that answers when it is let."""

    key: str = "me"
    connection: str = "mine"
    level: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: anyio.Event = field(default_factory=anyio.Event)
    answers: anyio.Event = field(default_factory=anyio.Event)

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        del method, params, name
        self.asked.set()
        await self.answers.wait()
        return text_result("yes")

    def together(self, count: int) -> Callable[[], None]:
        del count
        return lambda: None

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


class Asking(TableSource):
    """A source whose calls ask their client, if they have one."""

    async def execute(self, admitted: Admitted) -> Result:
        if admitted.client is None:
            return await super().execute(admitted)
        return await admitted.client.ask("elicitation/create", {})


async def _echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments["text"])


async def test_a_call_that_waits_for_its_client_keeps_nobody_from_the_server(
    tmp_path: Path,
) -> None:
    harmless = {"risk": Risk.LOW, "tags": frozenset[str](), "lane": "demo", "at_once": 1}
    person, results = Person(), list[Result]()
    async with open_test_app(tmp_path) as app:
        app.add(Asking(Kind.MCP, "demo", {"echo": (harmless, _echo)}))
        slots = app.parts.pipeline.guards.slots

        async def asks() -> None:
            call = app.make("mcp:demo:echo", {"text": "never"})
            results.append(await app.invoke(replace(call, client=person)))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(asks)
                await person.asked.wait()
                assert slots.used("demo") == 0
                assert (await app.call("mcp:demo:echo", text="plain")).text == "plain"
                person.answers.set()
        assert [result.text for result in results] == ["yes"]
        assert slots.size == 0


async def test_a_slot_is_taken_back_when_no_question_is_open() -> None:
    slots = Slots()
    async with (slot := Slot(slots, "demo", 1, "me")):
        async with slot.lent():
            async with slot.lent():
                assert slots.used("demo") == 0
            assert slots.used("demo") == 0
        assert slots.used("demo") == 1
    assert slots.size == 0


async def test_who_ends_while_its_client_is_asked_gives_nothing_back_twice() -> None:
    slots, ended = Slots(), anyio.Event()
    slot = Slot(slots, "demo", 1, "me")

    async def ask() -> None:
        async with slot.lent():
            await ended.wait()

    async with anyio.create_task_group() as group:
        async with slot:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await slots.acquire("demo", 1)
        ended.set()
    assert slots.used("demo") == 1
    slots.release("demo")
    assert slots.size == 0


async def test_who_comes_back_to_a_full_lane_goes_on_without_a_slot() -> None:
    slots = Slots()
    with anyio.fail_after(30):
        async with (slot := Slot(slots, "demo", 1, "me")):
            async with slot.lent():
                await slots.acquire("demo", 1)
            assert (slots.used("demo"), slots.waiting("demo")) == (1, 0)
    assert slots.used("demo") == 1


async def test_a_question_that_was_taken_back_leaves_the_slots_in_order() -> None:
    slots = Slots()
    async with (slot := Slot(slots, "demo", 1, "me")):
        with anyio.CancelScope() as scope:
            async with slot.lent():
                scope.cancel()
                await anyio.sleep_forever()
        assert slots.used("demo") == 0
    assert slots.size == 0
