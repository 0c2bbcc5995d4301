"""A question of the agent's is what its task waits for, and the next message is the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.pipeline.tasks.scene import Held, answers, cut_off, says, scene

from openfang.core.clients import ELICITATION, SAMPLING
from openfang.core.errors import Conflict, NotFound, Rejected
from openfang.core.results import text_result
from openfang.core.tasks import Role, TaskMessage, TaskState
from openfang.pipeline.tasks.forms import content_of, question_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.pipeline.tasks.service import TaskService, Work

pytestmark = pytest.mark.requirement("C5.4")


def form(**properties: str) -> dict[str, Any]:
    fields = {name: {"type": kind} for name, kind in properties.items()}
    return {"message": "Which?", "requestedSchema": {"type": "object", "properties": fields}}


ONE = form(answer="string")


def asks(*forms: Mapping[str, Any]) -> Work:
    """Ask one thing after the other, and answer with what was said."""

    async def work(client: Client, listener: Listener) -> Result:
        del listener
        said = [(await client.ask(ELICITATION, form)).structured["content"] for form in forms]
        return text_result(str(said))

    return work


def data(value: object) -> TaskMessage:
    return TaskMessage(id="", role=Role.USER, parts=({"type": "data", "data": value},))


async def asked(service: TaskService, task_id: str) -> None:
    with anyio.fail_after(30):
        assert (await service.settled(task_id)).state is TaskState.INPUT_REQUIRED


async def test_a_task_waits_for_its_caller_and_goes_on_with_the_answer(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(asks(ONE, ONE), "paint it")
        for colour in ("red", "blue"):
            await asked(node.service, task.id)
            waiting = await node.service.find(task.id)
            assert waiting
            assert waiting.status
            assert (waiting.status.text, waiting.status.role) == ("Which?", Role.AGENT)
            going = await node.service.answer(task.id, says(colour))
            assert going.state is TaskState.WORKING
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        told = "[{'answer': 'red'}, {'answer': 'blue'}]"
        assert [one.text for one in ended.history] == [
            "paint it",
            *("Which?", "red"),
            *("Which?", "blue"),
            told,
        ]
        assert node.states(task) == [
            *("submitted", "working"),
            *("input-required", "working") * 2,
            "completed",
        ]


async def test_the_same_answer_again_changes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(asks(ONE, ONE), message_id="m1")
        await asked(node.service, task.id)
        await node.service.answer(task.id, says("red", "m2"))
        await asked(node.service, task.id)
        again = await node.service.answer(task.id, says("red", "m2"))
        assert (again, again.state) == (await node.service.find(task.id), TaskState.INPUT_REQUIRED)
        first = await node.service.answer(task.id, says("go", "m1"))
        assert first == again


async def test_the_same_answer_twice_at_once_is_taken_once_and_nobody_is_refused(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, busy=True) as node:
        task = await node.begin(asks(ONE))
        await asked(node.service, task.id)
        states = list[TaskState]()

        async def answer() -> None:
            states.append((await node.service.answer(task.id, says("red", "m2"))).state)

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            group.start_soon(answer)
        assert states == [TaskState.WORKING] * 2
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        assert [one.text for one in ended.history] == ["go", "Which?", "red", "[{'answer': 'red'}]"]


async def test_an_answer_whose_sender_is_cut_off_is_given_or_can_be_given_again(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, busy=True) as node:
        for turns in range(12):
            task = await node.begin(asks(ONE))
            await asked(node.service, task.id)
            await cut_off(node.service.answer(task.id, says("red", "m2")), turns)
            with anyio.fail_after(30):
                await node.service.answer(task.id, says("red", "m2"))
                ended = await node.service.settled(task.id)
            assert ended.history[-1].text == "[{'answer': 'red'}]"


async def test_a_message_that_does_not_answer_is_refused_and_the_task_waits_on(
    tmp_path: Path,
) -> None:
    asking = form(colour="string")
    asking["requestedSchema"]["properties"]["colour"]["enum"] = ["red", "blue"]
    file = {"type": "file", "name": "a.txt", "data": "aGk="}
    async with scene(tmp_path) as node:
        task = await node.begin(asks(asking))
        await asked(node.service, task.id)
        for wrong in (says("green"), says("red", "", file), data({"colour": "green"}), data([1])):
            with pytest.raises(Rejected) as refused:
                await node.service.answer(task.id, wrong)
            assert (refused.value.status, refused.value.rule) == (422, "invalid_message")
        await asked(node.service, task.id)
        await node.service.answer(task.id, says("blue"))
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        assert [one.text for one in ended.history[1:]] == ["Which?", "blue", "[{'colour': 'blue'}]"]


async def test_who_is_not_asked_cannot_answer(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        busy = await node.begin(Held())
        with anyio.fail_after(30):
            ended = await node.service.settled((await node.begin(answers)).id)
        for task in (busy, ended):
            with pytest.raises(Conflict) as refused:
                await node.service.answer(task.id, says("red"))
            assert task.state.value in refused.value.message
            assert refused.value.way_out
            assert await node.service.find(task.id) == task
        with pytest.raises(NotFound):
            await node.service.answer("task_none", says("red"))


async def test_one_question_waits_for_the_other(tmp_path: Path) -> None:
    async def work(client: Client, listener: Listener) -> Result:
        del listener
        said: list[str] = []

        async def ask(name: str) -> None:
            answer = (await client.ask(ELICITATION, form(**{name: "string"}))).structured
            said.append(f"{name}={answer['content'][name]}")

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "a")
            group.start_soon(ask, "b")
        return text_result(" ".join(said))

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        for value in ("1", "2"):
            await asked(node.service, task.id)
            await node.service.answer(task.id, says(value))
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        assert ended.history[-1].text == "a=1 b=2"


async def test_of_two_answers_at_once_one_is_taken(tmp_path: Path) -> None:
    outcomes: list[str] = []

    async with scene(tmp_path) as node:
        task = await node.begin(asks(ONE))
        await asked(node.service, task.id)

        async def answer(text: str) -> None:
            try:
                await node.service.answer(task.id, says(text))
            except Conflict:
                outcomes.append("refused")
            else:
                outcomes.append(text)

        async with anyio.create_task_group() as group:
            group.start_soon(answer, "red")
            group.start_soon(answer, "blue")
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        assert sorted(outcomes) == ["red", "refused"]
        assert ended.history[-1].text == "[{'answer': 'red'}]"


@pytest.mark.requirement("C5.7")
async def test_a_task_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(asks(ONE))
        await asked(node.service, task.id)
        ended = await node.service.cancel(task.id)
        assert [one.text for one in ended.history] == ["go", "Which?"]
        with pytest.raises(Conflict):
            await node.service.answer(task.id, says("red"))
        assert node.states(task)[-2:] == ["input-required", "canceled"]


async def test_a_question_that_nobody_has_time_for_is_taken_back(tmp_path: Path) -> None:
    async def work(client: Client, listener: Listener) -> Result:
        del listener
        with anyio.move_on_after(0.01):
            await client.ask(ELICITATION, ONE)
        return text_result("without")

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        with anyio.fail_after(30):
            while not (ended := await node.service.settled(task.id)).state.final:
                await checkpoint()
        assert node.states(task) == [
            *("submitted", "working", "input-required", "working"),
            "completed",
        ]
        assert [one.text for one in ended.history] == ["go", "Which?", "without"]


async def test_who_sent_a_task_is_asked_for_forms_and_nothing_else(tmp_path: Path) -> None:
    results: list[Result] = []

    async def work(client: Client, listener: Listener) -> Result:
        results.append(await client.ask(SAMPLING, {}))
        results.append(await client.ask(ELICITATION, {"mode": "url", "url": "https://a.test"}))
        client.together(2)()
        client.tell("notifications/message", {})
        assert (client.key, client.level) == ("me", "")
        assert client.capabilities == {"elicitation": {"form": {}}}
        return await answers(client, listener)

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        with anyio.fail_after(30):
            assert (await node.service.settled(task.id)).state is TaskState.COMPLETED
        assert [one.fault and one.fault["code"] for one in results] == [-32601, -32602]


@pytest.mark.parametrize(
    ("asking", "answer", "content"),
    [
        (ONE, says("red"), {"answer": "red"}),
        (form(n="integer", name="string"), says("red"), {"name": "red"}),
        (form(n="integer"), says(" 3 "), {"n": 3}),
        (form(ok="boolean"), says("Yes"), {"ok": True}),
        (form(), says("red"), {}),
        ({"message": "?"}, says("red"), {}),
        ({"message": "?", "requestedSchema": 3}, says("red"), {}),
        (
            form(a="string", b="integer"),
            says("", "", {"type": "data", "data": {"a": "x", "b": 2}}),
            {"a": "x", "b": 2},
        ),
        (ONE, says("red", "", {"type": "data", "data": [1]}), {"answer": "red"}),
        (ONE, says("red", "", {"type": "data", "data": {"other": 1}}), {"answer": "red"}),
        (ONE, says("red", "", {"type": "data", "data": {"answer": 1}}), {"answer": "red"}),
        (form(a="no such type"), says("red"), {"a": "red"}),
    ],
)
def test_a_form_is_filled_with_what_was_sent(
    asking: dict[str, Any], answer: Any, content: dict[str, Any]
) -> None:
    assert content_of(asking, answer) == content


def test_a_form_that_a_text_cannot_fill_comes_with_the_question() -> None:
    assert len(question_of(ONE).parts) == 1
    several = form(a="string", b="integer")
    text, data = question_of(several).parts
    assert text["text"] == "Which?"
    assert data == {
        "type": "data",
        "data": {"requestedSchema": several["requestedSchema"]},
    }
