"""Tasks from their beginning to their end: one unit each change, and what is final is final."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.pipeline.tasks.scene import ME, Held, answers, cut_off, idle, says, scene

from openfang.core.agents import Artifact
from openfang.core.artifacts import artifact_parts
from openfang.core.clients import ELICITATION
from openfang.core.errors import (
    AuditUnavailable,
    CallCancelled,
    CallTimedOut,
    Conflict,
    FlowRefused,
    GuardTripped,
    InvalidArguments,
    NotFound,
    Parked,
    PolicyViolation,
    Rejected,
    SourceFailed,
)
from openfang.core.labels import Labels
from openfang.core.results import Result, error_result, text_part, text_result
from openfang.core.tasks import Role, Sent, TaskFilter, TaskState
from openfang.pipeline.tasks.service import TaskBounds
from openfang.storage.database import at_once
from openfang.storage.queued import QUEUE

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.tasks import Task, TaskUpdate
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.tasks import Statement

pytestmark = pytest.mark.requirement("C5.6")


def brings(result: Result) -> Work:
    async def work(client: Client, listener: Listener) -> Result:
        del client, listener
        return result

    return work


def breaks(error: Exception) -> Work:
    async def work(client: Client, listener: Listener) -> Result:
        del client, listener
        raise error

    return work


async def test_a_task_is_kept_before_its_work_begins_and_ends_with_the_answer(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        begun = await node.begin(held, "hello")
        assert await node.service.find(begun.id) == begun
        assert (begun.state, begun.version, begun.history[0].text) == (
            TaskState.WORKING,
            2,
            "hello",
        )
        held.go.set()
        with anyio.fail_after(30):
            ended = await node.service.settled(begun.id)
        assert await node.service.find(begun.id) == ended
        assert (ended.state, ended.version) == (TaskState.COMPLETED, 3)
        assert [(one.role, one.text) for one in ended.history] == [
            (Role.USER, "hello"),
            (Role.AGENT, "done"),
        ]
        assert node.states(begun) == ["submitted", "working", "completed"]
        assert node.records(begun) == [
            ("submitted", "working", ""),
            ("working", "completed", ""),
        ]


async def test_what_the_agent_made_are_artifacts_and_what_it_answered_is_a_message(
    tmp_path: Path,
) -> None:
    made = (
        Artifact(name="plan", parts=({"type": "data", "data": {"steps": [1, 2]}},)),
        Artifact(
            name="a b.png",
            parts=({"type": "file", "mime_type": "image/png", "data": "aGk="}, text_part("seen")),
        ),
    )
    content = (text_part("here"), *artifact_parts(made))
    async with scene(tmp_path) as node:
        work = brings(Result(content=content, labels=Labels.PII))
        with anyio.fail_after(30):
            task = await node.service.settled((await node.begin(work)).id)
        assert [part for one in task.history[1:] for part in one.parts] == [text_part("here")]
        assert [(one.name, one.parts) for one in task.artifacts] == [
            ("plan", ({"type": "data", "data": {"steps": [1, 2]}},)),
            (
                "a b.png",
                (
                    {
                        "type": "file",
                        "name": "a b.png",
                        "mime_type": "image/png",
                        "data": "aGk=",
                    },
                    text_part("seen"),
                ),
            ),
        ]
        assert task.labels == Labels.PII


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (PolicyViolation("A gate said no", way_out="ask"), "rejected", "said no. Way out: ask."),
        (FlowRefused("Too secret."), "rejected", "Too secret."),
        (Parked("Wait.", question_id="q1", rule="r"), "rejected", "approve q1"),
        (InvalidArguments("Too large."), "rejected", "Too large."),
        (GuardTripped("Too deep.", rule="depth"), "failed", "Too deep."),
        (AuditUnavailable("The disk is full."), "failed", "The disk is full."),
        (SourceFailed("It broke."), "failed", "It broke."),
        (CallTimedOut("Too long."), "failed", "Too long."),
        (NotFound("No such thing."), "failed", "No such thing."),
        (CallCancelled("It was stopped."), "canceled", "It was stopped."),
        (ValueError("a secret of the program's"), "failed", "Something broke"),
    ],
)
async def test_a_work_that_fails_ends_its_task_with_the_reason(
    tmp_path: Path, error: Exception, state: str, reason: str
) -> None:
    async with scene(tmp_path) as node:
        with anyio.fail_after(30):
            task = await node.service.settled((await node.begin(breaks(error))).id)
        assert task.status
        assert (task.state.value, reason in task.status.text) == (state, True)
        assert "secret" not in task.status.text.lower() or isinstance(error, FlowRefused)
        assert node.records(task)[-1] == ("working", state, task.status.text)
        assert task.history[-1].role is Role.USER


@pytest.mark.parametrize(
    ("structured", "state"), [(None, "failed"), ({"ending": "rejected"}, "rejected")]
)
async def test_what_the_agent_calls_an_error_is_one(
    tmp_path: Path, structured: object, state: str
) -> None:
    result = Result(content=error_result("I cannot.").content, is_error=True, structured=structured)
    async with scene(tmp_path) as node:
        with anyio.fail_after(30):
            task = await node.service.settled((await node.begin(brings(result))).id)
        assert task.status
        assert (task.state.value, task.status.text) == (state, "I cannot.")


async def test_the_same_message_is_taken_once_also_when_it_comes_many_times_at_once(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        works, tasks = 0, list["Task"]()

        async def work(client: Client, listener: Listener) -> Result:
            nonlocal works
            works += 1
            return await answers(client, listener)

        async def send() -> None:
            tasks.append(await node.begin(work, message_id="m1"))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(send)
        with anyio.fail_after(30):
            ended = await node.service.settled(tasks[0].id)
        assert {task.id for task in tasks} == {ended.id}
        assert (await node.begin(work, message_id="m1")) == ended
        assert works == 1
        others = [
            await node.begin(work, message_id="m1", caller="key:other"),
            await node.begin(work, message_id="m1", agent="other"),
            await node.begin(work, message_id="m2"),
        ]
        assert len({ended.id, *(task.id for task in others)}) == 4


async def test_the_oldest_that_has_ended_goes_first_and_what_is_under_way_never(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most=4)) as node:
        running = await node.begin(Held())
        with anyio.fail_after(30):
            ended = [
                (await node.service.settled((await node.begin(answers)).id)).id for _ in range(5)
            ]
        kept = {task.id for task in (await node.service.page(ME, TaskFilter())).tasks}
        assert kept == {running.id, *ended[2:]}
        assert await node.service.find(ended[0]) is None
        assert await node.service.states(ended[0]) == []
        assert (await node.begin(Held())).state is TaskState.WORKING


async def test_a_large_store_lets_the_oldest_fiftieth_go_at_once_and_never_holds_more(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most=100)) as node:
        ids = list[str]()
        for number in range(1, 104):
            ids.append((await node.begin(answers)).id)
            with anyio.fail_after(30):
                await node.service.settled(ids[-1])
            assert (await node.service.store.counts())[0] <= 100
            kept = {101: 99, 102: 100, 103: 99}.get(number, number)
            assert await node.service.store.counts() == (kept, kept)
        assert [await node.service.find(one) is None for one in ids[:5]] == [True] * 4 + [False]


async def test_a_store_that_is_full_of_unfinished_tasks_refuses_and_takes_again_when_one_ends(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most=2)) as node:
        works = [Held(), Held()]
        tasks = [await node.begin(work) for work in works]
        for _ in range(2):
            with pytest.raises(Rejected) as refused:
                await node.begin(answers)
            assert (refused.value.status, refused.value.rule) == (503, "tasks_full")
        works[0].go.set()
        with anyio.fail_after(30):
            await node.service.settled(tasks[0].id)
            assert (await node.service.settled((await node.begin(answers)).id)).state.final
        assert await node.service.find(tasks[0].id) is None
        assert await node.service.find(tasks[1].id) is not None


async def outcome(sending: Awaitable[Task]) -> str:
    try:
        return (await sending).state.value
    except Rejected as refused:
        return refused.rule


async def test_the_bound_holds_also_for_tasks_that_come_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most=5), busy=True) as node:
        outcomes = list[str]()

        async def send() -> None:
            outcomes.append(await outcome(node.begin(Held())))

        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(send)
        assert sorted(outcomes) == ["tasks_full"] * 35 + ["working"] * 5
        assert await node.service.store.counts() == (5, 0)


async def test_one_caller_leaves_a_tenth_of_the_places_to_others(tmp_path: Path) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most=20)) as node:
        outcomes = [await outcome(node.begin(Held())) for _ in range(20)]
        assert outcomes == ["working"] * 18 + ["tasks_full"] * 2
        others = [await outcome(node.begin(Held(), caller="key:other")) for _ in range(3)]
        assert others == ["working"] * 2 + ["tasks_full"]
        one = (await node.service.page(ME, TaskFilter())).tasks[0]
        await node.service.cancel(one.id)
        assert await outcome(node.begin(Held())) == "working"


async def test_tasks_are_bounded_in_length_too_and_long_ones_that_have_ended_go(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, bounds=TaskBounds(most_characters=10_000)) as node:
        with anyio.fail_after(30):
            for _ in range(10):
                await node.service.settled((await node.begin(answers, "x" * 3_000)).id)
                assert await node.service.store.size() <= 10_000
        assert (await node.service.store.counts())[0] == 3
        held = [await outcome(node.begin(Held(), "x" * 3_000)) for _ in range(3)]
        assert held == ["working", "working", "tasks_full"]
        other = await outcome(node.begin(Held(), "x" * 3_000, caller="key:other"))
        assert other == "working"
        assert await outcome(node.begin(Held(), "x" * 3_000, caller="key:third")) == "tasks_full"


@pytest.mark.requirement("C5.7")
async def test_a_cancelled_task_is_final_at_once_and_its_work_is_stopped(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            await held.began.wait()
            ended = await node.service.cancel(task.id)
            assert ended.state is TaskState.CANCELED
            assert await node.service.find(task.id) == ended
            await held.ended.wait()
        with pytest.raises(Conflict):
            await node.service.cancel(task.id)
        with pytest.raises(NotFound):
            await node.service.cancel("task_none")
        assert node.states(task) == ["submitted", "working", "canceled"]
        assert await node.service.find(task.id) == ended


@pytest.mark.requirement("C5.7")
async def test_a_task_that_is_cancelled_at_once_is_worked_on_no_further(tmp_path: Path) -> None:
    go, worked = anyio.Event(), False

    async def work(client: Client, listener: Listener) -> Result:
        nonlocal worked
        await go.wait()
        worked = True
        return await answers(client, listener)

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        await node.service.cancel(task.id)
        go.set()
        await idle(node.service)
        assert not worked
        assert node.states(task) == ["submitted", "working", "canceled"]


@pytest.mark.requirement("C5.7")
async def test_a_task_that_is_cancelled_before_its_work_begins_is_not_worked_on(
    tmp_path: Path,
) -> None:
    on_disk, go_on, worked = anyio.Event(), anyio.Event(), False

    async def written() -> None:
        if not on_disk.is_set():
            on_disk.set()
            await go_on.wait()

    async def work(client: Client, listener: Listener) -> Result:
        nonlocal worked
        worked = True
        return await answers(client, listener)

    async with scene(tmp_path, busy=True, written=written) as node:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(partial(node.begin, work, task_id="task_1"))
                await on_disk.wait()
                await node.service.cancel("task_1")
                go_on.set()
            assert (await node.service.settled("task_1")).state is TaskState.CANCELED
        assert (worked, len(node.service._rooms)) == (False, 0)
        states = [state.value for _, _, state in await node.service.states("task_1")]
        assert states == ["submitted", "working", "canceled"]


@pytest.mark.requirement("C5.7")
async def test_a_result_that_comes_after_the_end_changes_nothing(tmp_path: Path) -> None:
    stubborn, late = anyio.Event(), anyio.Event()

    async def work(client: Client, listener: Listener) -> Result:
        del client, listener
        with anyio.CancelScope(shield=True):
            await stubborn.wait()
        late.set()
        return text_result("too late")

    async with scene(tmp_path) as node:
        task = await node.begin(work)
        ended = await node.service.cancel(task.id)
        stubborn.set()
        with anyio.fail_after(30):
            await late.wait()
        await idle(node.service)
        assert await node.service.find(task.id) == ended
        assert node.states(task) == ["submitted", "working", "canceled"]


async def test_a_task_that_another_process_has_ended_stays_so_and_its_work_is_told(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node, scene(tmp_path) as other:
        held = Held()
        task = await node.begin(held)
        ended = await other.service.cancel(task.id)
        held.go.set()
        with anyio.fail_after(30):
            assert await node.service.settled(task.id) == ended
        assert node.states(task) == ["submitted", "working", "canceled"]


@pytest.mark.requirement("C5.7")
async def test_who_cancels_in_another_process_ends_the_work_too_and_who_watches_hears_it(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, look_seconds=0.01) as node, scene(tmp_path) as other:
        held, beside = Held(), Held()
        task, stays = await node.begin(held), await node.begin(beside)
        with anyio.fail_after(30):
            await held.began.wait()
            ended = await other.service.cancel(task.id)
            assert await node.service.settled(task.id) == ended
            await held.ended.wait()
            assert await node.service.find(stays.id) == stays
            beside.go.set()
            assert (await node.service.settled(stays.id)).state is TaskState.COMPLETED
        assert node.states(task) == ["submitted", "working", "canceled"]


@pytest.mark.requirement("C5.7")
async def test_a_work_whose_task_has_made_way_for_others_meanwhile_is_ended(
    tmp_path: Path,
) -> None:
    one = TaskBounds(most=1)
    async with scene(tmp_path, look_seconds=0.2) as node, scene(tmp_path, bounds=one) as other:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            await held.began.wait()
            await other.service.cancel(task.id)
            await other.begin(answers)
            assert await other.service.store.get(task.id) is None
            await held.ended.wait()
        await idle(node.service)


async def test_a_database_that_cannot_be_read_for_a_while_ends_no_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(tmp_path, look_seconds=0.01) as node, scene(tmp_path) as other:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            other.database.connection.execute("ALTER TABLE tasks RENAME TO away")
            while "cannot be seen" not in caplog.text:
                await checkpoint()
            other.database.connection.execute("ALTER TABLE away RENAME TO tasks")
            assert not held.ended.is_set()
            await other.service.cancel(task.id)
            await held.ended.wait()


async def test_a_work_that_does_not_know_yet_that_its_task_has_ended_is_stopped(
    tmp_path: Path,
) -> None:
    go, ended, went_on = anyio.Event(), anyio.Event(), False

    async def work(client: Client, listener: Listener) -> Result:
        nonlocal went_on
        await go.wait()
        try:
            with suppress(Conflict):
                await client.ask(ELICITATION, {"message": "which?"})
            await checkpoint()
            went_on = True
        finally:
            ended.set()
        return await answers(client, listener)

    async with scene(tmp_path) as node, scene(tmp_path) as other:
        task = await node.begin(work)
        await other.service.cancel(task.id)
        go.set()
        with anyio.fail_after(30):
            await ended.wait()
        assert not went_on
        assert node.states(task) == ["submitted", "working", "canceled"]


async def test_who_goes_away_while_a_task_is_written_stops_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, busy=True) as node:
        held = Held()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await node.begin(held)
        with anyio.fail_after(30):
            await held.began.wait()
        (task,) = (await node.service.page(ME, TaskFilter())).tasks
        held.go.set()
        with anyio.fail_after(30):
            assert (await node.service.settled(task.id)).state is TaskState.COMPLETED


async def test_a_task_whose_sender_is_cut_off_at_any_moment_is_worked_on_or_not_kept(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, busy=True) as node:
        for turns in range(12):
            held, name = Held(), f"m{turns}"
            await cut_off(node.begin(held, message_id=name), turns)
            held.go.set()
            again = await node.begin(held, message_id=name)
            with anyio.fail_after(30):
                assert (await node.service.settled(again.id)).state is TaskState.COMPLETED


@pytest.mark.requirement("C5.7")
async def test_who_is_cut_off_while_they_cancel_has_cancelled_all_of_it_or_nothing(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, busy=True) as node:
        for turns in range(1, 12):
            held = Held()
            task = await node.begin(held)
            with anyio.fail_after(30):
                await held.began.wait()
                await cut_off(node.service.cancel(task.id), turns)
                await held.ended.wait()
                assert (await node.service.settled(task.id)).state is TaskState.CANCELED


async def test_what_goes_out_is_in_the_same_unit_and_only_then_told(tmp_path: Path) -> None:
    told = list[str]()

    def outbox(task: Task, update: TaskUpdate) -> list[Statement]:
        assert update.task == task
        key = f"{task.state.value}-{update.n}"
        return [("INSERT INTO settings (name, value) VALUES (?, ?)", (key, task.id))]

    async with scene(tmp_path, outbox=outbox, committed=lambda: told.append("yes")) as node:
        with anyio.fail_after(30):
            task = await node.service.settled((await node.begin(answers)).id)
        sql = "SELECT name FROM settings WHERE value = ? ORDER BY name"
        rows = [row[0] for row in node.database.read_now(sql, (task.id,))]
        assert rows == ["completed-3", "working-2"]
        assert told == ["yes", "yes"]
        before = at_once(node.service.store.counts())
        with pytest.raises(Conflict):
            await node.begin(answers)
        assert at_once(node.service.store.counts()) == before


async def test_what_belongs_to_a_task_is_kept_with_it_or_not_at_all(tmp_path: Path) -> None:
    mark = ("INSERT INTO settings (name, value) VALUES ('mark', '')", ())
    async with scene(tmp_path) as node:
        task = await node.begin(answers, statements=(mark,), task_id=f"task_{7:032x}")
        assert task.id == f"task_{7:032x}"
        with pytest.raises(Conflict):
            await node.begin(answers, statements=(mark,))
        assert (await node.service.store.counts())[0] == 1


@pytest.mark.usefixtures("hasty")
async def test_a_locked_database_refuses_new_tasks_and_an_end_waits_until_it_is_free(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        with closing(sqlite3.connect(node.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            held.go.set()
            with pytest.raises(AuditUnavailable):
                await node.begin(answers)
            assert await node.service.find(task.id) == task
            other.execute("ROLLBACK")
        with anyio.fail_after(30):
            ended = await node.service.settled(task.id)
        assert ended.state is TaskState.COMPLETED
        assert await node.service.store.counts() == (1, 1)


async def test_a_node_that_does_not_serve_takes_no_task(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        service = node.service
    sent = Sent(agent="echo", message=says("hello"))
    with pytest.raises(Rejected) as refused:
        await service.begin(sent, caller=ME, context="c", session="s", work=answers)
    assert (refused.value.status, refused.value.rule) == (503, "not_serving")


async def test_a_node_that_drains_takes_no_task_until_it_takes_them_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        node.service.drain(on=True)
        with pytest.raises(Rejected) as refused:
            await node.begin(answers)
        assert (refused.value.status, refused.value.rule) == (503, "not_serving")
        node.service.drain(on=False)
        task = await node.begin(answers)
        with anyio.fail_after(30):
            assert (await node.service.settled(task.id)).state is TaskState.COMPLETED


async def test_works_that_are_interrupted_have_stopped_and_others_begin_when_it_goes_on(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        with anyio.fail_after(30):
            node.service.interrupt()
            await node.service.stopped()
            with pytest.raises(Rejected):
                await node.begin(answers)
            await node.service.go_on()
            while node.service._working.group is None:
                await checkpoint()
            again = await node.begin(answers)
            assert (await node.service.settled(again.id)).state is TaskState.COMPLETED
        assert node.states(task) == ["submitted", "working"]


async def test_a_task_from_a_queue_is_worked_on_to_its_end_once(tmp_path: Path) -> None:
    built: list[str] = []

    async def build(task: Task) -> Work:
        built.append(task.id)
        return answers

    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as again:
        again.database.connection.execute("UPDATE tasks SET process = ?", (QUEUE,))
        with anyio.fail_after(30):
            assert await again.service.work(task.id, build)
            assert again.states(task)[-1] == "completed"
            assert await again.service.work(task.id, build)
            assert await again.service.work("task_none", build)
    assert built == [task.id]


async def test_a_task_that_is_cancelled_while_it_is_taken_from_its_queue_is_not_begun(
    tmp_path: Path,
) -> None:
    held = Held()

    async def build(task: Task) -> Work:
        await again.service.cancel(task.id)
        return held

    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as again:
        again.database.connection.execute("UPDATE tasks SET process = ?", (QUEUE,))
        with anyio.fail_after(30):
            assert await again.service.work(task.id, build)
    assert not held.began.is_set()


async def test_a_task_on_which_nobody_goes_on_is_given_up_with_the_reason(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as again:
        await again.service.give_up(task.id)
        found = await again.service.find(task.id)
    assert found is not None
    assert found.state is TaskState.FAILED
