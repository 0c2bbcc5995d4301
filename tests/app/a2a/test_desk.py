"""What a caller does with tasks is a call each: what it costs, and what a breaker hears of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.app.a2a.pushing import receiving, says
from tests.edges.a2a.seeding import write_agents
from tests.edges.live import live
from tests.pipeline.tasks.scene import Held

from openfang.app.a2a.desk import Desk
from openfang.core.calls import Role
from openfang.core.errors import Conflict, Rejected
from openfang.core.events import TOOL_INVOCATION_START
from openfang.core.tasks import Push, Sent, Task, TaskState
from openfang.core.trace import new_chain
from openfang.storage.pushes import MOST_PUSHES
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.live import Live
pytestmark = pytest.mark.requirement("C5.4", "C5.5")
CONFIG = "[limits]\ncells_per_minute = 100_000\n[a2a.push]\nallow_private = true\n"
MESSAGE, OPERATION = 30, 5


@dataclass(frozen=True)
class Visitor:
    """The administrator at the desk of a node whose clock stands still."""

    node: Live
    desk: Desk

    async def said(self, sent: Sent) -> Task:
        return await self.desk.settled((await self.desk.send(sent)).id)

    def left(self) -> int:
        guards, caller = self.node.app.parts.pipeline.guards, self.node.app.caller
        return guards.allowance(caller, 0, self.node.app.parts.clock.monotonic()).remaining

    async def working(self, agent: str = "asker") -> Task:
        """Begin a task that goes on until it is ended."""
        return await self.node.app.parts.tasks.begin(
            Sent(agent=agent, message=says("x")),
            caller=self.node.app.caller.id,
            context="talk",
            session="session_1",
            work=Held(),
        )

    def sessions(self, name: str) -> list[str]:
        sql = "SELECT id FROM sessions WHERE name = ?"
        return [session for (session,) in self.node.app.file.read_now(sql, (name,))]

    async def calls(self) -> list[str]:
        """What was called, on record."""
        events = [
            one for one in await self.node.events() if one.event_type == TOOL_INVOCATION_START
        ]
        return [str(event.context["tool"]) for event in events]


@asynccontextmanager
async def visiting(folder: Path, more: str = "") -> AsyncGenerator[Visitor]:
    await to_thread.run_sync(write_agents, folder)
    async with live(folder, config=CONFIG + more, clock=ManualClock()) as node:
        yield Visitor(node, Desk(node.app.parts, node.app.caller, new_chain()))


@pytest.mark.requirement("C12.3")
async def test_an_answer_costs_a_message_and_a_repeated_message_a_look(tmp_path: Path) -> None:
    async with visiting(tmp_path / "home") as visitor:
        first = Sent(agent="asker", message=says("go"))
        full = visitor.left()
        asked = await visitor.said(first)
        assert full - visitor.left() == MESSAGE
        again = await visitor.desk.send(first)
        assert (again.id, full - visitor.left()) == (asked.id, MESSAGE + OPERATION)
        answer = Sent(agent="asker", message=says("blue"), task=asked.id)
        assert (await visitor.said(answer)).state is TaskState.COMPLETED
        assert full - visitor.left() == 2 * MESSAGE + OPERATION
        assert await visitor.calls() == [
            "agent:asker",
            "client:admin:elicitation/create",
            "agent:asker:tasks/get",
            "agent:asker:tasks/answer",
        ]


@pytest.mark.requirement("C4.9")
async def test_a_broken_agent_leaves_its_tasks_within_reach_and_they_do_not_mend_it(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path / "home") as visitor:
        desk = visitor.desk
        failed = [await visitor.said(Sent(agent="broken", message=says("x"))) for _ in range(6)]
        assert {task.state for task in failed} == {TaskState.FAILED}
        said = [task.status.text if task.status else "" for task in failed]
        assert ["keeps failing" in one for one in said] == [False] * 5 + [True]
        for task in failed:
            assert (await desk.get(task.id)).state is TaskState.FAILED
            with pytest.raises(Conflict):
                await desk.cancel(task.id)
        last = await visitor.said(Sent(agent="broken", message=says("x")))
        assert last.status is not None
        assert "keeps failing" in last.status.text


@pytest.mark.requirement("C5.3")
async def test_who_is_named_with_an_answer_is_told_of_what_follows(tmp_path: Path) -> None:
    async with visiting(tmp_path / "home") as visitor, receiving() as receiver:
        asked = await visitor.said(Sent(agent="asker", message=says("go")))
        nowhere = Push(id="", task="", url="ftp://example.com/")
        with pytest.raises(Rejected):
            await visitor.desk.send(
                Sent(agent="asker", message=says("blue"), task=asked.id, push=nowhere)
            )
        assert (await visitor.desk.get(asked.id)).state is TaskState.INPUT_REQUIRED
        mine = Push(id="mine", task="", url=receiver.url())
        await visitor.said(Sent(agent="asker", message=says("blue"), task=asked.id, push=mine))
        assert [push.id for push in await visitor.desk.pushes(asked.id)] == ["mine"]
        await receiver.times(2)
    assert [b"TASK_STATE_COMPLETED" in taken.body for taken in receiver.taken] == [False, True]


@pytest.mark.requirement("C5.3")
async def test_nobody_is_told_who_was_named_with_a_message_that_is_refused(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path / "home") as visitor, receiving() as receiver:
        desk, mine = visitor.desk, Push(id="mine", task="", url=receiver.url())
        task = await visitor.working()
        with pytest.raises(Conflict):
            await desk.send(Sent(agent="asker", message=says("blue"), task=task.id, push=mine))
        assert await desk.pushes(task.id) == []
        await desk.cancel(task.id)
        with pytest.raises(Conflict):
            await desk.send(Sent(agent="asker", message=says("blue"), task=task.id, push=mine))
        assert await desk.pushes(task.id) == []
        timers = "SELECT COUNT(*) FROM timers WHERE kind = 'push'"
        assert visitor.node.app.file.read_now(timers) == [(0,)]


@pytest.mark.requirement("C5.3")
async def test_an_answer_that_names_one_too_many_is_not_taken(tmp_path: Path) -> None:
    async with visiting(tmp_path / "home") as visitor, receiving() as receiver:
        asked = await visitor.said(Sent(agent="asker", message=says("go")))
        for n in range(MOST_PUSHES):
            await visitor.desk.set_push(Push(id=f"p{n}", task=asked.id, url=receiver.url()))
        answer = Sent(agent="asker", message=says("blue"), task=asked.id)
        more = Push(id="more", task="", url=receiver.url())
        with pytest.raises(Rejected) as refused:
            await visitor.desk.send(replace(answer, push=more))
        assert refused.value.rule == "push_limit"
        assert (await visitor.desk.get(asked.id)).state is TaskState.INPUT_REQUIRED
        known = replace(more, id="p0")
        assert (await visitor.said(replace(answer, push=known))).state is TaskState.COMPLETED
        assert len(await visitor.desk.pushes(asked.id)) == MOST_PUSHES


@pytest.mark.requirement("C5.4")
async def test_a_message_that_is_refused_begins_no_conversation(tmp_path: Path) -> None:
    async with visiting(tmp_path / "home", "[a2a]\nmax_tasks = 1\n") as visitor:
        under_way = await visitor.working()
        sent = Sent(agent="code-reviewer", message=says("x"), context="mine")
        with pytest.raises(Rejected) as refused:
            await visitor.desk.send(sent)
        assert (refused.value.rule, visitor.sessions("mine")) == ("tasks_full", [])
        await visitor.desk.cancel(under_way.id)
        done = await visitor.said(sent)
        assert (done.state, done.context) == (TaskState.COMPLETED, "mine")
        assert visitor.sessions("mine") == [done.session]


@pytest.mark.requirement("C5.4")
async def test_messages_that_begin_a_conversation_side_by_side_are_in_the_same_one(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path / "home") as visitor:
        done = list[Task]()

        async def say(text: str) -> None:
            sent = Sent(agent="code-reviewer", message=says(text), context="mine")
            done.append(await visitor.said(sent))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for text in ("a", "b", "c"):
                    group.start_soon(say, text)
        assert {task.state for task in done} == {TaskState.COMPLETED}
        assert [task.session for task in done] == visitor.sessions("mine") * 3


@pytest.mark.requirement("C5.7")
async def test_a_task_of_an_agent_that_is_gone_is_ended_by_its_caller_and_costs_a_call(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path / "home") as visitor:
        parts, caller = visitor.node.app.parts, visitor.node.app.caller
        task = await visitor.working("gone")
        auditor = replace(caller, id="key:auditor", role=Role.AUDITOR)
        full = visitor.left()
        with pytest.raises(Conflict) as refused:
            await Desk(parts, auditor, new_chain(), "http").cancel(task.id)
        assert "another's" in refused.value.message
        assert (await visitor.desk.get(task.id)).state is TaskState.WORKING
        assert (await visitor.desk.cancel(task.id)).state is TaskState.CANCELED
        assert full - visitor.left() == 2 * OPERATION
