"""A home with a clock that a test moves, agents that do as a test says, and the one timer loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from openfang.app.schedules.watching import watch_schedules
from openfang.core.ids import Kind
from openfang.core.keys import Key
from openfang.core.results import text_result
from openfang.core.tools import Risk, Tool, Trust
from openfang.storage.database import at_once
from openfang.storage.schedules import ScheduleStore
from openfang.storage.timers import TimerStore
from openfang.testing import ManualClock, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from openfang.agents.spec import AgentSpec
    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.results import Result
    from openfang.core.schedules import Schedule
    from openfang.storage.timers import Timer
    from openfang.testing import OpenApp

SECOND = 1_000_000_000
MANIFEST = """
name = "{name}"
description = "{name} does what it is for"
[capabilities]
tools = ["system_time", "schedule_create", "schedule_list", "schedule_delete", "event_publish"]
agent_message = [{message}]
[policy]
project = "default"
{more}
"""


@dataclass
class Worker:
    """An agent that is told things, and answers when a test lets it."""

    told: list[str] = field(default_factory=list[str])
    answer: Result = field(default_factory=lambda: text_result("done"))
    goes: anyio.Event = field(default_factory=anyio.Event)
    source: TableSource = field(init=False)

    def __post_init__(self) -> None:
        tool = Tool(
            id="agent:worker",
            kind=Kind.AGENT,
            source="worker",
            name="worker",
            risk=Risk.LOW,
            tags=frozenset(),
            trust=Trust.HIGH,
        )
        self.source = TableSource(Kind.AGENT, "worker", {"worker": (tool, self._run)})
        self.goes.set()

    async def _run(self, arguments: Mapping[str, Any]) -> Result:
        self.told.append(str(arguments["message"]))
        await self.goes.wait()
        return self.answer

    @property
    def calls(self) -> list[Admitted]:
        return self.source.calls


@dataclass(frozen=True)
class Calendar:
    """An open home whose schedules are seen to."""

    app: OpenApp
    clock: ManualClock
    worker: Worker

    @property
    def store(self) -> ScheduleStore:
        return ScheduleStore(self.app.parts.database)

    async def create(self, schedule: str, call: Call | None = None, **more: Any) -> Schedule:
        """Make one through the path, and give what is kept."""
        arguments = {"description": "look", "schedule": schedule, "agent": "worker", **more}
        made = call or self.app.make("builtin:schedule_create", arguments)
        result = await self.app.invoke(replace(made, arguments=arguments))
        assert not result.is_error, result.text
        return self.get(result.structured["id"])

    async def told_off(self, schedule: str, **more: Any) -> str:
        """What is said of one that is not made."""
        arguments = {"description": "look", "schedule": schedule, "agent": "worker", **more}
        result = await self.app.invoke(self.app.make("builtin:schedule_create", arguments))
        assert result.is_error
        return result.text

    def get(self, schedule_id: str) -> Schedule:
        found = at_once(self.store.get(schedule_id))
        assert found
        return found

    async def to(self, moment: int) -> None:
        """Let the clock come to a moment."""
        self.clock.advance((moment - self.clock.time_ns()) / SECOND)
        self.app.parts.timers.wake()

    async def next_due(self, schedule: Schedule) -> Schedule:
        """Let the clock come to the next due time, and wait until that is seen to, to its end."""
        before = self.get(schedule.id)
        await self.to(before.due)
        return await self.changed(before)

    async def changed(self, before: Schedule) -> Schedule:
        """Wait until a due moment was seen to, and until the run, if there is one, has ended."""
        await self.until(lambda: self.get(before.id).version > before.version)
        last = self.get(before.id).last
        if last and last.task and self.worker.goes.is_set():
            await self.until(lambda: self.ended(last.task))
        return self.get(before.id)

    async def agent(self, name: str) -> AgentSpec:
        """One of the agents that have a manifest."""
        later = self.app.parts.agents
        assert later
        return (await later.opened()).find(name).spec

    def planned(self) -> list[Timer]:
        """What the loop waits for."""
        return at_once(TimerStore(self.app.parts.database).soonest("schedule", 5))

    def ended(self, task: str) -> bool:
        head = at_once(self.app.parts.tasks.head(task))
        return head is not None and head.state.final

    @staticmethod
    async def until(seen: Callable[[], object]) -> None:
        with anyio.fail_after(20):
            while not seen():
                await anyio.lowlevel.checkpoint()

    async def key(self, name: str, **bound: Any) -> Caller:
        """Somebody with a key of their own."""
        key = Key(id=name, name=name, projects=("default",), **bound)
        statement = self.app.parts.keys.insert_key(key, f"of_{name}")
        await self.app.parts.broker.append([], (statement,))
        return key.caller()

    def as_caller(self, caller: Caller, tool: str = "builtin:schedule_create", **more: Any) -> Call:
        return self.app.make(tool, {}, caller=caller, **more)


@asynccontextmanager
async def calendar(
    folder: Path,
    *,
    config: str = "",
    clock: ManualClock | None = None,
    agents: Mapping[str, str] | None = None,
    worker: Worker | None = None,
) -> AsyncGenerator[Calendar]:
    """Open a home, with the loop of a daemon, and with the manifests of agents."""
    clock, worker = clock or ManualClock(), worker or Worker()
    await to_thread.run_sync(_write, folder, agents or {})
    async with open_test_app(folder, config=config, clock=clock, sources=[worker.source]) as app:
        later = app.parts.agents
        assert later
        later.want(resume=True)
        async with anyio.create_task_group() as group:
            group.start_soon(watch_schedules, app.parts)
            group.start_soon(app.parts.timers.run)
            await (await later.opened()).recovered.wait()
            yield Calendar(app, clock, worker)
            group.cancel_scope.cancel()


def _write(folder: Path, agents: Mapping[str, str]) -> None:
    for name, manifest in agents.items():
        place = folder / "agents" / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "agent.toml").write_text(manifest)


def manifest(name: str, *message: str, more: str = "") -> str:
    """An agent that may make schedules, and send messages to these."""
    named = ", ".join(f'"{one}"' for one in message)
    return MANIFEST.format(name=name, message=named, more=more)
