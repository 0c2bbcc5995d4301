"""After a process is gone nobody waits for ever: its tasks go on, or end with the reason."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.pipeline.tasks.scene import Held, answers, everything, says, scene

from openfang.core.errors import AuditUnavailable, Conflict, SourceFailed
from openfang.core.results import error_result, text_result
from openfang.core.tasks import TaskState, TaskUpdate
from openfang.pipeline.tasks.outcomes import INTERRUPTED
from openfang.pipeline.tasks.service import TaskBounds

if TYPE_CHECKING:
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Seen
    from openfang.pipeline.tasks.service import TaskService

pytestmark = pytest.mark.requirement("C5.6")
ROOT = Path(__file__).parents[3]


async def never(task_id: str) -> Result | None:
    del task_id
    return None


async def killed(folder: Path) -> list[str]:
    """Let a process begin tasks, kill it, and give their ids."""
    command = [sys.executable, "-m", "tests.pipeline.tasks.killed_task", str(folder)]
    async with await anyio.open_process(command, cwd=ROOT, env=dict(os.environ)) as process:
        assert process.stdout
        line = b""
        with anyio.fail_after(30):
            while not line.endswith(b"\n"):
                line += await process.stdout.receive()
        process.kill()
        await process.wait()
    return json.loads(line)


async def test_after_kill_9_tasks_go_on_or_end_with_what_is_known(tmp_path: Path) -> None:
    working, answered, waiting, ended = await killed(tmp_path)
    async with scene(tmp_path) as node:
        before = await node.service.find(ended)
        seen: list[list[Seen]] = []

        async def watch() -> None:
            seen.append(await everything(node.service, waiting))

        async def resumed(client: Client, listener: Listener) -> Result:
            assert client.connection == working
            return await answers(client, listener)

        async def ended_as(task_id: str) -> Result | None:
            return text_result("I had answered") if task_id == answered else None

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                with pytest.raises(Conflict):
                    await node.service.answer(waiting, says("red"))
                await node.service.recover({working: resumed}, ended_as)
            went_on = await node.service.settled(working)
        assert (went_on.state, went_on.history[-1].text) == (TaskState.COMPLETED, "done")
        assert node.states(went_on) == ["submitted", "working", "working", "completed"]
        known = await node.service.find(answered)
        assert known
        assert (known.state, known.history[-1].text) == (TaskState.COMPLETED, "I had answered")
        (last,) = [one.task for one in seen[0] if isinstance(one, TaskUpdate)]
        assert last == await node.service.find(waiting)
        assert last.status
        assert (last.state, last.status.text) == (TaskState.FAILED, INTERRUPTED)
        assert await node.service.find(ended) == before
        assert await node.service.store.unfinished() == []


async def test_an_agent_that_had_failed_has_failed(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as again:

        async def failed(task_id: str) -> Result:
            del task_id
            return error_result("It broke.")

        await again.service.recover({}, failed)
        found = await again.service.find(task.id)
        assert found
        assert found.status
        assert (found.state, found.status.text) == (TaskState.FAILED, "It broke.")


@pytest.mark.usefixtures("hasty")
async def test_a_database_that_is_locked_at_the_start_is_waited_for(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        tasks = [await node.begin(Held()) for _ in range(2)]
    async with scene(tmp_path) as again, anyio.create_task_group() as group:
        with closing(sqlite3.connect(again.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            group.start_soon(again.service.recover, {tasks[0].id: answers}, never)
            with pytest.raises(AuditUnavailable):
                await again.begin(answers)
            other.execute("ROLLBACK")
        with anyio.fail_after(30):
            ended = [await again.service.settled(task.id) for task in tasks]
        assert [task.state for task in ended] == [TaskState.COMPLETED, TaskState.FAILED]


async def test_what_another_process_works_on_is_left_alone(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        async with scene(tmp_path) as other:
            await other.service.recover({task.id: answers}, never)
            await node.service.recover({task.id: answers}, never)
        held.go.set()
        with anyio.fail_after(30):
            assert (await node.service.settled(task.id)).state is TaskState.COMPLETED
        assert node.states(task) == ["submitted", "working", "completed"]


async def test_of_two_processes_one_goes_on(tmp_path: Path) -> None:
    works, both = list["TaskService"](), anyio.Event()
    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as one, scene(tmp_path) as two:

        async def recover(service: TaskService) -> None:
            async def work(client: Client, listener: Listener) -> Result:
                works.append(service)
                await both.wait()
                return await answers(client, listener)

            await service.recover({task.id: work}, never)

        async with anyio.create_task_group() as group:
            group.start_soon(recover, one.service)
            group.start_soon(recover, two.service)
        both.set()
        with anyio.fail_after(30):
            ended = [await node.service.settled(task.id) for node in (one, two)]
        assert ended[0] == ended[1]
        assert len(works) == 1
        assert one.states(task) == ["submitted", "working", "working", "completed"]


@pytest.mark.requirement("C5.3")
async def test_who_comes_while_a_task_is_taken_over_hears_nothing_twice(tmp_path: Path) -> None:
    seen: list[list[Seen]] = []
    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    with anyio.fail_after(30):
        async with scene(tmp_path, busy=True) as again, anyio.create_task_group() as group:

            async def watch() -> None:
                seen.append(await everything(again.service, task.id))

            async def recover(held: Held) -> None:
                await again.service.recover({task.id: held}, never)
                held.go.set()

            held = Held()
            group.start_soon(recover, held)
            while not held.go.is_set():
                group.start_soon(watch)
                await checkpoint()
    assert seen
    for one in seen:
        versions = [each.n if isinstance(each, TaskUpdate) else each.version for each in one]
        assert versions == list(range(versions[0], 5))


async def test_who_watches_a_task_that_nobody_goes_on_with_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as watching:
        async with scene(tmp_path) as node:
            task = await node.begin(Held())
            await watching.service.recover({}, never)
        with anyio.fail_after(30), pytest.raises(SourceFailed):
            await watching.service.settled(task.id)


async def test_a_task_to_which_nothing_happens_is_given_up_and_its_work_ended(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, bounds=TaskBounds(stuck_seconds=3600)) as node:
        hour, held, late = 3600 * 10**9, Held(), Held()
        start = node.clock.time_ns()
        assert await node.service.expire(start) == start + hour
        stuck = await node.begin(held)
        node.clock.advance(1800)
        younger = await node.begin(late)
        assert await node.service.expire(node.clock.time_ns()) == start + hour
        node.clock.advance(1800)
        again = await node.service.expire(node.clock.time_ns())
        assert again == start + hour + hour // 2
        with anyio.fail_after(30):
            await held.ended.wait()
        gone = await node.service.find(stuck.id)
        assert gone
        assert gone.status
        assert (gone.state, "expired" in gone.status.text) == (TaskState.FAILED, True)
        assert "1 h" in gone.status.text
        assert await node.service.find(younger.id) == younger
