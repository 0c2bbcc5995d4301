"""A task is worked on at one node, and watched, answered and cancelled at any other."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.pipeline.tasks import nodes
from tests.pipeline.tasks.scene import Held, everything, says
from tests.pipeline.tasks.test_questions import ONE, asked, asks, form
from tests.pipeline.tasks.test_watching import spoken
from tests.postgres import run

from openfang.core.agents import Wanted, Wish, Words
from openfang.core.clients import ELICITATION
from openfang.core.errors import Conflict, Rejected
from openfang.core.labels import Labels
from openfang.core.results import text_result
from openfang.core.tasks import Moved, Spoken, Task, TaskState, TaskUpdate
from openfang.pipeline.tasks import carrying, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from tests.pipeline.tasks.nodes import Node

    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Seen

pytestmark = [pytest.mark.requirement("C5.3"), pytest.mark.requirement("C13.3")]


@pytest.fixture
async def two(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Node, Node]]:
    monkeypatch.setattr(watching, "_LOOK_SECONDS_IF_TOLD", 60.0)
    async with AsyncExitStack() as stack:
        a, b = [
            await stack.enter_async_context(nodes.node(postgres, tmp_path, name)) for name in "ab"
        ]
        yield a, b


def seen_by(seen: Sequence[Seen]) -> Task:
    """The task as somebody who watched has put it together, who may be told of several at once."""
    first, *updates = seen
    assert isinstance(first, Task)
    texts, version = [one.text for one in first.history], first.version
    status, last = first.status, first
    for update in updates:
        assert isinstance(update, TaskUpdate)
        assert isinstance(update.what, Moved)
        assert update.n > version
        texts += [status.text] if status else []
        texts += [one.text for one in update.what.said]
        status, version, last = update.what.status, update.n, update.task
    assert texts == [one.text for one in last.history]
    return last


async def test_who_watches_at_another_node_hears_of_it_at_once(two: tuple[Node, Node]) -> None:
    a, b = two
    held = Held()
    task = await a.begin(held)
    async with aclosing(b.service.watch(task.id)) as watched:
        with anyio.fail_after(30):
            assert await anext(watched) == task
            await held.began.wait()
            held.go.set()
            update = await anext(watched)
    assert isinstance(update, TaskUpdate)
    assert isinstance(update.what, Moved)
    assert (update.task.state, [one.text for one in update.what.said]) == (
        TaskState.COMPLETED,
        ["done"],
    )


@pytest.mark.requirement("C5.7")
async def test_a_task_that_is_cancelled_at_another_node_ends_at_once(
    two: tuple[Node, Node],
) -> None:
    a, b = two
    held = Held()
    task = await a.begin(held)
    with anyio.fail_after(30):
        await held.began.wait()
        async with aclosing(a.service.watch(task.id)) as watched:
            await anext(watched)
            await b.service.cancel(task.id)
            await held.ended.wait()
            update = await anext(watched)
    assert isinstance(update, TaskUpdate)
    assert update.task.state is TaskState.CANCELED


@pytest.mark.requirement("C5.4")
async def test_an_answer_at_another_node_reaches_who_asked_with_what_it_carries(
    two: tuple[Node, Node],
) -> None:
    a, b = two
    carried = list[Labels]()

    async def work(client: Client, listener: Listener) -> Result:
        del listener
        said = [await client.ask(ELICITATION, ONE) for _ in range(2)]
        carried.extend(one.labels for one in said)
        return text_result(str([one.structured["content"]["answer"] for one in said]))

    task = await a.begin(work)
    for node, text in ((b, "red"), (a, "blue")):
        await asked(node.service, task.id)
        with anyio.fail_after(30):
            await node.service.answer(task.id, says(text, text), Labels.UNTRUSTED_AGENT)
            again = await b.service.answer(task.id, says(text, text))
        assert says(text, text) in again.history
    with anyio.fail_after(30):
        ended = await b.service.settled(task.id)
    assert carried == [Labels.UNTRUSTED_AGENT] * 2
    assert [one.text for one in ended.history] == [
        *("go", "Which?", "red", "Which?", "blue"),
        "['red', 'blue']",
    ]
    assert (ended.form, ended.given) == ({}, None)


@pytest.mark.requirement("C5.4")
async def test_what_does_not_fill_the_form_is_refused_at_every_node(two: tuple[Node, Node]) -> None:
    a, b = two
    asking = form(colour="string")
    asking["requestedSchema"]["properties"]["colour"]["enum"] = ["red", "blue"]
    task = await a.begin(asks(asking))
    await asked(b.service, task.id)
    assert await b.service.asked(task.id) == asking
    for node in two:
        with pytest.raises(Rejected):
            await node.service.answer(task.id, says("green"))


@pytest.mark.requirement("C5.4")
async def test_of_answers_at_two_nodes_at_once_one_is_taken(two: tuple[Node, Node]) -> None:
    a, _ = two
    task = await a.begin(asks(ONE))
    await asked(a.service, task.id)
    taken = list[str]()

    async def answer(node: Node, text: str) -> None:
        try:
            await node.service.answer(task.id, says(text))
        except Conflict:
            return
        taken.append(text)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for node, text in zip(two, ("red", "blue"), strict=True):
                group.start_soon(answer, node, text)
        ended = await a.service.settled(task.id)
    assert len(taken) == 1
    assert ended.history[-1].text == str([{"answer": taken[0]}])


async def test_a_client_that_moves_between_nodes_misses_nothing(two: tuple[Node, Node]) -> None:
    a, b = two
    questions = 6
    task = await a.begin(asks(*[ONE] * questions))
    seen, whole = list[list["Seen"]](), list[list["Seen"]]()

    async def watch(node: Node) -> None:
        whole.append(await everything(node.service, task.id))

    async def until_asked(node: Node, version: int) -> Task:
        """Watch at a node until the task waits again, and leave in the middle of the stream."""
        seen.append([])
        async with aclosing(node.service.watch(task.id)) as watched:
            async for one in watched:
                seen[-1].append(one)
                last = one if isinstance(one, Task) else one.task
                if last.state.final or (last.state.waiting and last.version > version):
                    return last
        raise AssertionError

    last = task
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for node in (a, b, b):
                group.start_soon(watch, node)
            for number in range(questions):
                node = two[number % 2]
                last = await until_asked(node, last.version)
                await two[number // 2 % 2].service.answer(task.id, says(f"m{number}"))
            last = await until_asked(b, last.version)
    ended = last
    assert ended.state is TaskState.COMPLETED
    assert [one.text for one in ended.history[2:-1:2]] == [f"m{n}" for n in range(questions)]
    for stream in (*seen, *whole):
        seen_by(stream)
    for stream in whole:
        assert seen_by(stream) == ended


async def test_what_was_told_while_nobody_could_hear_is_seen_behind_it(
    two: tuple[Node, Node], postgres: str
) -> None:
    a, b = two
    held = Held()
    task = await a.begin(held)
    async with aclosing(b.service.watch(task.id)) as watched:
        with anyio.fail_after(20):
            await anext(watched)
            await run(
                postgres,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' "
                "AND datname = current_database()",
            )
            await held.began.wait()
            held.go.set()
            update = await anext(watched)
    assert isinstance(update, TaskUpdate)
    assert update.task.state is TaskState.COMPLETED


async def test_a_task_that_another_node_took_over_is_not_worked_on_any_more(
    two: tuple[Node, Node],
) -> None:
    a, b = two
    held, taken = Held(), Held()
    task = await a.begin(held)
    with anyio.fail_after(30):
        await held.began.wait()
        mine = await a.storage.read("SELECT process FROM tasks WHERE id = ?", (task.id,))
        await b.service._taken_over(task.id, mine[0][0], taken)  # pyright: ignore[reportPrivateUsage]
        await held.ended.wait()
        async with aclosing(a.service.watch(task.id)) as watched:
            await anext(watched)
            taken.go.set()
            update = await anext(watched)
    assert isinstance(update, TaskUpdate)
    assert update.task.state is TaskState.COMPLETED


async def test_what_is_being_said_at_one_node_is_read_at_every_other(
    two: tuple[Node, Node],
) -> None:
    a, b = two
    held = Held()
    task = await a.begin(held)
    with anyio.fail_after(30):
        await held.began.wait()
        assert held.listener
        held.listener(Words("Once "))
        async with (
            aclosing(b.service.watch(task.id)) as watched,
            aclosing(b.service.watch(task.id)) as later,
        ):
            await anext(watched)
            assert spoken([await anext(watched)]) == "Once "
            held.listener(Words("upon\na \u00e4" * 500))
            held.listener(Words(" time"))
            whole, seen = "Once " + "upon\na \u00e4" * 500 + " time", list["Seen"]()
            seen.append(TaskUpdate(task=task, what=Spoken(text="Once ", first=True), at=0))
            while spoken(seen) != whole:
                seen.append(await anext(watched))
            await anext(later)
            assert spoken([await anext(later)]) == whole
            held.listener(Wanted(Wish(id="w", tool="look")))
            held.listener(Words("Anew"))
            for one in (watched, later):
                assert spoken([await anext(one)]) == "Anew"
            held.go.set()
            update = await anext(watched)
    assert isinstance(update, TaskUpdate)
    assert update.task.state is TaskState.COMPLETED


async def test_who_misses_words_is_told_all_of_them_again(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "_SOON", 0.0)
    a, b = two
    held = Held()
    task = await a.begin(held)
    with anyio.fail_after(30):
        await held.began.wait()
        assert held.listener
        async with aclosing(b.service.watch(task.id)) as watched:
            await anext(watched)
            held.listener(Words("Once "))
            seen = [_update(await anext(watched))]
            room = b.service._rooms.of(task.id)  # pyright: ignore[reportPrivateUsage]
            room.words = ""  # as if they had never come
            held.listener(Words("upon"))
            while spoken(seen) != "Once upon":
                seen.append(_update(await anext(watched)))
    assert [one.what.first for one in seen if isinstance(one.what, Spoken)] == [True, True]


def _update(seen: Seen) -> TaskUpdate:
    assert isinstance(seen, TaskUpdate)
    return seen
