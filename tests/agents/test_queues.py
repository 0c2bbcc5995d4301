"""One message to a session after the other, save that nobody waits for somebody's answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from tests.agents.test_node import node, put

from openfang.agents.queues import Queues
from openfang.core.results import Result
from openfang.storage.sessions import SessionStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from openfang.agents.queues import Place

pytestmark = pytest.mark.requirement("C6.4")

ASKS = """
async def run(message, context):
    if message.startswith("ask"):
        return "You said " + await context.ask(message)
    return str([said["text"] for said in context.history])
"""


@dataclass(slots=True)
class Person:
    """Thinks about a question until told what to say."""

    said: str = ""
    asked: anyio.Event = field(default_factory=anyio.Event)
    decided: anyio.Event = field(default_factory=anyio.Event)
    key: str = "me"
    connection: str = "a connection"
    level: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"elicitation": {}})

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        del method, params, name
        self.asked.set()
        await self.decided.wait()
        return Result(structured={"action": "accept", "content": {"answer": self.said}})

    def say(self, text: str) -> None:
        self.said = text
        self.decided.set()

    def together(self, count: int) -> Callable[[], None]:
        del count
        return lambda: None

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


@dataclass(slots=True)
class Line:
    """Those who want their turn in one session, and what they did when they had it."""

    queues: Queues = field(default_factory=Queues)
    did: list[str] = field(default_factory=list[str])

    async def go(self, name: str, does: Callable[[Place], Awaitable[None]] | None = None) -> None:
        async with self.queues.place("s") as place:
            self.did.append(f"{name} begins")
            if does is not None:
                await does(place)
            self.did.append(f"{name} ends")

    @property
    def forgotten(self) -> bool:
        return Queues().__dict__ == self.queues.__dict__


def until(event: anyio.Event) -> Callable[[Place], Awaitable[None]]:
    async def wait(place: Place) -> None:
        del place
        await event.wait()

    return wait


async def test_one_goes_after_the_other_in_the_order_in_which_they_came() -> None:
    line, free = Line(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(line.go, "a", until(free))
        await wait_all_tasks_blocked()
        for name in ("b", "c"):
            group.start_soon(line.go, name)
            await wait_all_tasks_blocked()
        assert line.did == ["a begins"]
        free.set()
    assert line.did == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]
    assert line.forgotten


async def test_while_one_waits_for_an_answer_the_next_goes_and_then_it_has_its_turn_back() -> None:
    line, answer, other = Line(), anyio.Event(), anyio.Event()

    async def ask(place: Place) -> None:
        async with place.lent():
            await answer.wait()
        line.did.append("a goes on")

    async with anyio.create_task_group() as group:
        group.start_soon(line.go, "a", ask)
        await wait_all_tasks_blocked()
        group.start_soon(line.go, "b", until(other))
        await wait_all_tasks_blocked()
        answer.set()
        await wait_all_tasks_blocked()
        assert line.did == ["a begins", "b begins"]
        other.set()
    assert line.did == ["a begins", "b begins", "b ends", "a goes on", "a ends"]
    assert line.forgotten


async def test_who_asks_twice_at_once_has_its_turn_back_once() -> None:
    line = Line()

    async def ask_twice(place: Place) -> None:
        async def ask() -> None:
            async with place.lent():
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in "ab":
                group.start_soon(line.go, name, ask_twice)
    assert sorted(line.did) == ["a begins", "a ends", "b begins", "b ends"]
    assert line.forgotten


@pytest.mark.parametrize("answered", [False, True])
async def test_who_is_ended_without_its_turn_takes_it_from_nobody(*, answered: bool) -> None:
    line, answer, other = Line(), anyio.Event(), anyio.Event()

    async def ask(place: Place) -> None:
        async with place.lent():
            await answer.wait()

    async def ended(scope: anyio.CancelScope) -> None:
        with scope:
            await line.go("a", ask)

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(ended, scope)
        await wait_all_tasks_blocked()
        group.start_soon(line.go, "b", until(other))
        group.start_soon(line.go, "c")
        await wait_all_tasks_blocked()
        if answered:
            answer.set()
            await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert line.did == ["a begins", "b begins"]
        other.set()
    assert line.did == ["a begins", "b begins", "b ends", "c begins", "c ends"]
    assert line.forgotten


async def test_who_talks_to_an_agent_that_waits_for_an_answer_is_answered(tmp_path: Path) -> None:
    put(tmp_path, "asks", program=ASKS)
    person, answers = Person(), list[str]()
    async with node(tmp_path) as (app, _):

        async def say(message: str) -> None:
            made = app.make("agent:asks", {"message": message}, client=person)
            answers.append((await app.invoke(made)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(say, "ask me")
            await person.asked.wait()
            await say("tell me")
            assert answers == ["['ask me']"]
            person.say("blue")
        store = SessionStore(app.parts.database)
        session = await store.find("asks", app.caller.id, "default")
        assert session
        said = [turn.message.text for turn in await store.turns(session.id)]
        await say("tell me again")

    assert answers[1] == "You said blue"
    assert said == ["ask me", "tell me", "['ask me']", "You said blue"]
    assert answers[2] == str(said)
