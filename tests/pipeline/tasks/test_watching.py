"""Whoever watches a task misses nothing and hears nothing twice, whenever they come."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.tasks.scene import Held, everything, idle, says, scene

from openfang.core.agents import Wanted, Wish, Words
from openfang.core.clients import ELICITATION
from openfang.core.errors import NotFound, SourceFailed
from openfang.core.results import text_result
from openfang.core.tasks import Moved, Spoken, Task, TaskState, TaskUpdate
from openfang.pipeline.tasks.rooms import MOST_WAITING
from openfang.pipeline.tasks.telling import MOST_SPOKEN, Speech

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Seen
    from openfang.pipeline.tasks.service import TaskService

pytestmark = pytest.mark.requirement("C5.3")


def spoken(seen: Iterable[Seen]) -> str:
    """What somebody who watched has read of the answer in the end."""
    text = ""
    for one in seen:
        if isinstance(one, TaskUpdate) and isinstance(one.what, Spoken):
            text = one.what.text if one.what.first else text + one.what.text
    return text


def replayed(seen: Sequence[Seen]) -> Task:
    """The task as somebody who watched has put it together."""
    first, *updates = seen
    assert isinstance(first, Task)
    task = first
    for update in updates:
        assert isinstance(update, TaskUpdate)
        if isinstance(update.what, Moved):
            task = task.moved(update.what, update.at)
            assert (task, task.version) == (update.task, update.n)
    return task


async def test_a_watcher_gets_the_task_as_it_is_and_then_what_happens_to_its_end(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        async with aclosing(node.service.watch(task.id)) as watched:
            assert await anext(watched) == task
            held.go.set()
            with anyio.fail_after(30):
                update = await anext(watched)
                assert isinstance(update, TaskUpdate)
                assert (update.task.state, update.n) == (TaskState.COMPLETED, 3)
                assert update.task == await node.service.find(task.id)
                with pytest.raises(StopAsyncIteration):
                    await anext(watched)
        assert await everything(node.service, task.id) == [update.task]
        with pytest.raises(NotFound):
            await everything(node.service, "task_none")


async def test_words_are_gathered_and_who_comes_later_gets_them_all(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            await held.began.wait()
            assert held.listener
            async with aclosing(node.service.watch(task.id)) as watched:
                await anext(watched)
                for word in ("a ", "b ", "c "):
                    held.listener(Words(word))
                await checkpoint()
                first = await anext(watched)
                held.listener(Words("d"))
                second = await anext(watched)
            assert isinstance(first, TaskUpdate)
            assert isinstance(second, TaskUpdate)
            assert (first.what, first.n) == (Spoken(text="a b c ", first=True), 0)
            assert second.what == Spoken(text="d")
            async with aclosing(node.service.watch(task.id)) as late:
                await anext(late)
                update = await anext(late)
                assert isinstance(update, TaskUpdate)
                assert update.what == Spoken(text="a b c d", first=True)
            held.listener(Words(" e"))
            held.go.set()
            seen = await everything(node.service, task.id)
        assert spoken(seen) == "a b c d e"
        assert [type(one).__name__ for one in seen] == ["Task", *["TaskUpdate"] * (len(seen) - 1)]


async def test_the_last_words_are_told_before_the_end(tmp_path: Path) -> None:
    go = anyio.Event()

    async def work(client: Client, listener: Listener) -> Result:
        del client
        await go.wait()
        listener(Words("bye"))
        return text_result("bye")

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        async with aclosing(node.service.watch(task.id)) as watched:
            await anext(watched)
            go.set()
            with anyio.fail_after(30):
                rest = [one async for one in watched]
        assert [type(one.what).__name__ for one in rest if isinstance(one, TaskUpdate)] == [
            "Spoken",
            "Moved",
        ]


def test_words_before_a_call_are_no_part_of_the_answer_and_a_flood_is_cut(tmp_path: Path) -> None:
    del tmp_path
    told: list[Spoken] = []

    async def flood() -> None:
        speech = Speech(told.append)
        speech(Words("let me see "))
        speech(Wanted(Wish(id="w", tool="look")))
        speech(Words("it is "))
        speech.flush()
        speech(Words("red"))
        speech.flush()
        speech(Words(""))
        assert speech.so_far == "it is red"
        for _ in range(3):
            speech(Words("x" * (MOST_SPOKEN // 2)))
        speech.flush()
        assert len(speech.so_far) <= MOST_SPOKEN

    anyio.run(flood)
    assert told[:3] == [
        Spoken(text="let me see ", first=True),
        Spoken(text="it is ", first=True),
        Spoken(text="red"),
    ]


async def test_a_watcher_that_does_not_read_is_let_go_and_slows_nobody(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            await held.began.wait()
            assert held.listener
            async with aclosing(node.service.watch(task.id)) as slow:
                await anext(slow)
                async with anyio.create_task_group() as group:
                    group.start_soon(everything, node.service, task.id)
                    await checkpoint()
                    for _ in range(MOST_WAITING + 1):
                        held.listener(Words("."))
                        await checkpoint()
                    held.go.set()
                with pytest.raises(SourceFailed):
                    await anext(slow)
            assert (await node.service.settled(task.id)).state is TaskState.COMPLETED


async def test_a_thousand_watchers_hear_the_same_thing_within_a_moment(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        held, heard = Held(), list["Seen"]()
        task = await node.begin(held)

        async def watch() -> None:
            heard.append((await everything(node.service, task.id))[-1])

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(1000):
                    group.start_soon(watch)
                await held.began.wait()
                await checkpoint()
                held.go.set()
        assert len(heard) == 1000
        assert len({id(one) for one in heard}) == 1
        await idle(node.service)
        assert len(node.service._rooms) == 0


async def test_nobody_waits_for_a_node_that_stops(tmp_path: Path) -> None:
    failed, tasks = list[SourceFailed](), list[Task]()

    async def wait(service: TaskService, task_id: str) -> None:
        try:
            await service.settled(task_id)
        except SourceFailed as error:
            failed.append(error)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            async with scene(tmp_path) as node:
                held = Held()
                tasks.append(await node.begin(held))
                group.start_soon(wait, node.service, tasks[0].id)
                await held.began.wait()
            assert held.ended.is_set()
    assert len(failed) == 1
    async with scene(tmp_path) as again:
        assert again.states(tasks[0]) == ["submitted", "working"]


async def test_a_task_of_another_process_can_be_watched_too(tmp_path: Path) -> None:
    async with scene(tmp_path) as node, scene(tmp_path) as other:
        held = Held()
        task = await node.begin(held)
        async with aclosing(other.service.watch(task.id)) as watched:
            with anyio.fail_after(30):
                assert await anext(watched) == task
                held.go.set()
                await node.service.settled(task.id)
                update = await anext(watched)
        assert isinstance(update, TaskUpdate)
        assert update.task == await node.service.find(task.id)
        assert isinstance(update.what, Moved)
        assert [one.text for one in update.what.said] == ["done"]


STEP = st.one_of(
    st.text(" abc", min_size=1, max_size=3).map(Words),
    st.just(Wanted(Wish(id="w", tool="look"))),
    st.just("ask"),
    st.just("watch"),
    st.just("turn"),
)


def written_by(steps: list[object]) -> str:
    """What of an answer there is after these steps."""
    text, fresh = "", True
    for step in steps:
        match step:
            case Words(piece):
                text, fresh = piece if fresh else text + piece, False
            case Wanted():
                fresh = True
            case _:
                pass
    return text


async def take(step: object, client: Client, listener: Listener, watch: Callable[[], None]) -> None:
    match step:
        case "ask":
            await client.ask(ELICITATION, {"message": "which?"})
        case "watch":
            watch()
        case Words() | Wanted():
            listener(step)
        case _:
            await checkpoint()


@given(steps=st.lists(STEP, max_size=12))
@settings(max_examples=25, deadline=None)
async def test_a_snapshot_and_what_follows_are_always_the_whole(steps: list[object]) -> None:
    seen, ended = list[list["Seen"]](), list[Task]()

    async def watch(service: TaskService, task_id: str) -> None:
        seen.append(await everything(service, task_id))

    with TemporaryDirectory() as folder, anyio.fail_after(20):
        async with scene(Path(folder)) as node, anyio.create_task_group() as group:

            async def work(client: Client, listener: Listener) -> Result:
                def watch_too() -> None:
                    group.start_soon(watch, node.service, client.connection)

                for step in steps:
                    await take(step, client, listener, watch_too)
                return text_result("done")

            task = await node.begin(work)
            group.start_soon(watch, node.service, task.id)
            while not (task := await node.service.settled(task.id)).state.final:
                await node.service.answer(task.id, says("this"))
            group.start_soon(watch, node.service, task.id)
            ended.append(task)
    assert len(seen) == 2 + steps.count("watch")
    assert ended[0].state is TaskState.COMPLETED
    for one in seen:
        assert replayed(one) == ended[0]
        assert len(one) == 1 or spoken(one) == written_by(steps)
