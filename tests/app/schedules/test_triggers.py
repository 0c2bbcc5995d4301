"""Events and the agents that they start: once each, in the chain of the publisher, and bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from tests.app.schedules.calendar import Calendar, calendar, manifest

from openfang.core.calls import Grants
from openfang.core.errors import UnknownTool
from openfang.core.events import AuditEvent
from openfang.core.labels import Labels
from openfang.core.tasks import TaskFilter, TaskState
from openfang.core.trace import new_chain
from openfang.core.triggers import Trigger
from openfang.storage.database import at_once
from openfang.storage.log import all_rows
from openfang.storage.timers import TimerStore
from openfang.storage.units import Unit
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.calls import Caller
    from openfang.core.tasks import Task

pytestmark = pytest.mark.requirement("C6.2")
CONFIG = """
[[triggers]]
name = "builds"
event = "build.*"
agent = "worker"
message = "see to {event_type}: {payload}"
max_per_hour = 3
"""
BODY = (
    '{"agent":"worker","text":"x","owner":"key:admin","root":"key:admin","origin":"","labels":[]}'
)
LOST = "could not be found again when it starts"
TOLD = 'see to build.failed: {"by":"{payload}"}'


async def publish(
    days: Calendar, kind: str = "build.failed", caller: Caller | None = None, **more: Any
) -> Any:
    payload = more.pop("payload", {"by": "{payload}"})
    arguments = {"event_type": kind, "payload": payload}
    call = days.app.make("builtin:event_publish", arguments, caller=caller, **more)
    return await days.app.invoke(call)


def tasks(days: Calendar) -> list[Task]:
    return list(at_once(days.app.parts.tasks.page(None, TaskFilter())).tasks)


async def records(days: Calendar, kind: str) -> list[AuditEvent]:
    def read() -> list[AuditEvent]:
        found = map(AuditEvent.of, all_rows(days.app.file.path))
        return [one for one in found if one.event_type == kind]

    return await to_thread.run_sync(read)


async def ended(days: Calendar, count: int) -> list[Task]:
    await days.until(lambda: len([one for one in tasks(days) if one.state.final]) == count)
    return tasks(days)


async def test_an_event_starts_the_agents_that_wait_for_it_and_no_other(tmp_path: Path) -> None:
    async with calendar(tmp_path, config=CONFIG) as days:
        told = await publish(days)
        assert told.structured["triggered"] == ["builds"]
        (task,) = await ended(days, 1)
        assert (task.state, days.worker.told) == (TaskState.COMPLETED, [TOLD])
        none = await publish(days, "deploy.done")
        assert (none.structured["triggered"], none.structured["held"]) == ([], [])
        published = await records(days, "event_published")
        kinds = [one.payload["event"] for one in published]
        assert kinds == ["build.failed", "deploy.done"]
        assert await TimerStore(days.app.parts.database).soonest("trigger", 5) == []
        await days.until(
            lambda: not at_once(TimerStore(days.app.parts.database).soonest("errand", 5))
        )


async def test_a_run_that_was_done_is_not_said_to_have_failed_for_what_could_not_be_tidied(
    tmp_path: Path,
) -> None:
    async with calendar(tmp_path, config=CONFIG) as days:
        stays = (
            "CREATE TRIGGER stays BEFORE DELETE ON timers WHEN OLD.kind = 'errand' "
            "BEGIN SELECT RAISE(ABORT, 'it stays'); END"
        )
        await days.app.parts.writer.write(Unit(statements=((stays, ()),)))
        await publish(days)
        (task,) = await ended(days, 1)
        assert (task.state, days.worker.told) == (TaskState.COMPLETED, [TOLD])


async def test_a_run_is_in_the_chain_of_the_publisher_and_carries_its_labels(
    tmp_path: Path,
) -> None:
    agents = {"clerk": manifest("clerk")}
    async with calendar(tmp_path, config=CONFIG, agents=agents) as days:
        clerk = (await days.agent("clerk")).caller
        chain = new_chain().deeper("agent:clerk")
        labels = Labels.EXTERNAL_NETWORK
        await publish(days, caller=clerk, chain=chain, labels=labels, asker="key:admin")
        await ended(days, 1)
        (admitted,) = days.worker.calls
        call = admitted.call
        assert (call.caller.id, call.root, call.edge) == ("agent:clerk", "key:admin", "trigger")
        assert (call.chain.trace_id, call.chain.depth) == (chain.trace_id, 2)
        assert call.chain.ancestors == ("agent:clerk",)
        assert admitted.labels & labels


async def test_a_trigger_that_triggers_itself_is_refused_and_the_reason_is_seen(
    tmp_path: Path,
) -> None:
    more = '[schedule.proactive]\nconditions = ["event:build.*"]\n'
    agents = {"clerk": manifest("clerk", more=more)}
    async with calendar(tmp_path, agents=agents) as days:
        clerk = (await days.agent("clerk")).caller
        chain = new_chain().deeper("agent:clerk")
        told = await publish(days, caller=clerk, chain=chain, asker="key:admin")
        assert told.structured["triggered"] == ["agent:clerk"]
        (task,) = await ended(days, 1)
        assert task.state is TaskState.FAILED
        assert task.status
        (refused,) = await records(days, "trigger_refused")
        assert refused.payload["reason"] in task.status.text
        assert (
            "agent:clerk is already waiting further up in this chain" in refused.payload["reason"]
        )
        assert refused.task_id == task.id


async def test_a_manifest_waits_for_events(tmp_path: Path) -> None:
    more = '[schedule.proactive]\nconditions = ["event:build.*"]\n'
    async with calendar(tmp_path, agents={"clerk": manifest("clerk", more=more)}) as days:
        await publish(days, payload={"what time is it": 1})
        (task,) = await ended(days, 1)
        assert (task.agent, task.state) == ("clerk", TaskState.COMPLETED)


async def test_a_trigger_starts_so_often_in_an_hour_and_says_when_it_does_not(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with calendar(tmp_path, config=CONFIG, clock=clock) as days:
        told = [(await publish(days)).structured for _ in range(5)]
        assert [len(one["triggered"]) for one in told] == [1, 1, 1, 0, 0]
        assert told[3]["held"] == [
            {"trigger": "builds", "reason": "it was started 3 times in an hour (max_per_hour)"}
        ]
        clock.advance(3600)
        assert (await publish(days)).structured["triggered"] == ["builds"]
        await ended(days, 4)


async def test_in_no_hour_a_trigger_starts_more_often_than_is_said(tmp_path: Path) -> None:
    clock = ManualClock()
    async with calendar(tmp_path, config=CONFIG, clock=clock) as days:
        started = list[bool]()
        for _ in range(24):
            started.append(bool((await publish(days)).structured["triggered"]))
            clock.advance(300)
        hours = [sum(started[first : first + 12]) for first in range(13)]
        assert (max(hours), sum(started)) == (3, 6)


async def test_an_event_starts_nobody_for_whom_nobody_finds_again(tmp_path: Path) -> None:
    async with calendar(tmp_path, config=CONFIG, agents={"clerk": manifest("clerk")}) as days:
        clerk = (await days.agent("clerk")).caller
        told = (await publish(days, caller=clerk, asker="user:somebody@example.com")).structured
        assert (told["triggered"], told["held"]) == (
            [],
            [{"trigger": "builds", "reason": f"who publishes {LOST}"}],
        )
        assert tasks(days) == []


async def test_what_was_published_is_started_after_a_restart_once(tmp_path: Path) -> None:
    async with calendar(tmp_path, config=CONFIG) as days:
        await publish(days)
        await ended(days, 1)
        (task,) = tasks(days)
        # The row is there again, as if its process had died before it was forgotten.
        sql = (
            "INSERT INTO timers SELECT ?, 'trigger', 'event', 0, 0, ?, '', '', ''",
            (task_message(days, task), BODY),
        )
        await days.app.parts.broker.append([], (sql,))
        days.app.parts.timers.wake()
        await days.until(
            lambda: not at_once(TimerStore(days.app.parts.database).soonest("trigger", 5))
        )
        assert (len(tasks(days)), len(days.worker.told)) == (1, 1)


def task_message(days: Calendar, task: Task) -> str:
    found = days.app.file.read_now("SELECT message FROM tasks WHERE id = ?", (task.id,))
    return found[0][0]


async def test_who_publishes_needs_the_grant_and_a_key_of_the_nodes(tmp_path: Path) -> None:
    async with calendar(tmp_path, config=CONFIG) as days:
        reader = await days.key("reader", grants=Grants(tools=("system_time",)))
        with pytest.raises(UnknownTool):
            await publish(days, caller=reader)
        guest = replace(days.app.caller, id="user:somebody@example.com")
        told = (await publish(days, caller=guest)).structured
        assert (told["triggered"], told["held"][0]["trigger"]) == ([], "builds")
        # Who may publish need not be able to call the agent: the operator lets events start it.
        only = await days.key("only", grants=Grants(tools=("event_publish",)))
        await publish(days, caller=only)
        (task,) = await ended(days, 1)
        assert (task.caller, task.state) == ("key:only", TaskState.COMPLETED)
        large = await publish(days, payload={"x": "y" * 70_000})
        assert large.is_error
        assert "at most 65536" in large.text


def test_what_stands_in_an_event_fills_no_other_place() -> None:
    trigger = Trigger(name="t", event="*", agent="a", message="{payload} and {event_type} {else}")
    assert trigger.told("{payload}", "{event_type}") == "{event_type} and {payload} {else}"
