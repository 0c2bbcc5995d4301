"""The schedules of a node: who makes them, sees them and changes them. Another's do not exist."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from anyio import Lock, to_thread

from openfang.agents.origin import write_origin
from openfang.app.agents.holders import Holders
from openfang.app.schedules.due import when_of
from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound, PolicyViolation, UnknownTool
from openfang.core.events import SCHEDULE_CHANGED, Record
from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.schedules import Schedule, ScheduleState
from openfang.core.values import dataclass
from openfang.storage import schedules, timers
from openfang.storage.schedules import ScheduleStore
from openfang.storage.task_bodies import readable
from openfang.storage.units import TIMERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.calls import Call, Caller
    from openfang.core.labels import Labels
    from openfang.storage.tasks import Statement

_WATCHERS: Final = (Role.AUDITOR, Role.ADMIN)
_AGENT: Final = f"{Kind.AGENT.value}:"
_WAY_OUT: Final = "openfang schedules list"


@dataclass(slots=True)
class Book:
    """Keeps schedules: each with the timer that it waits for, in one unit."""

    parts: Parts
    _making: Lock = field(default_factory=Lock)

    async def create(self, call: Call, labels: Labels, wanted: Mapping[str, Any]) -> Schedule:
        """Make one on behalf of whoever calls, bound to what the call is bound to."""
        agents = await self._agents()
        agent = self._agent_of(call.caller, str(wanted.get("agent", "")))
        if not await Holders(self.parts, agents.running).can_find(call.caller, call.root):
            raise _nobody(call)
        now, config = self.parts.clock.time_ns(), self.parts.config.schedules
        description = readable(str(wanted["description"]))
        new = Schedule(
            id=new_id("schedule"),
            owner=call.caller.id,
            root=call.root,
            agent=agent,
            description=description,
            message=readable(str(wanted.get("message") or description)),
            schedule=readable(str(wanted["schedule"])),
            timezone=str(wanted.get("timezone") or config.timezone),
            overlap=wanted.get("overlap", "skip"),
            origin=write_origin(call),
            labels=labels,
            created_at=now,
        )
        planned = await to_thread.run_sync(partial(first_due, new, config.min_interval_secs))
        async with self._making:
            await self._check_room(planned.root)
            await self._write(planned, "created", call.caller, *added(planned))
        return planned

    async def of_call(self, call: Call) -> list[Schedule]:
        """List those that whoever calls has made, for the one that it acts for."""
        found = await ScheduleStore(self.parts.database).of(call.caller.id)
        return [one for one in found if _made_by(one, call)]

    async def delete_of_call(self, call: Call, schedule_id: str) -> Schedule:
        """Delete one of those."""
        found = await ScheduleStore(self.parts.database).get(schedule_id)
        if found is None or not _made_by(found, call):
            raise _unknown(schedule_id)
        return await self._deleted(found, call.caller)

    async def seen_by(self, caller: Caller) -> Sequence[Schedule]:
        """List those of a caller and those made on its behalf; everybody's for who watches."""
        store = ScheduleStore(self.parts.database)
        return await store.all() if caller.role in _WATCHERS else await store.of(caller.id)

    async def find(self, caller: Caller, schedule_id: str) -> Schedule:
        """Find one that this caller sees."""
        found = await ScheduleStore(self.parts.database).get(schedule_id)
        if found is None or not (caller.role in _WATCHERS or _concerns(found, caller)):
            raise _unknown(schedule_id)
        return found

    async def act(self, caller: Caller, schedule_id: str, act: str) -> Schedule:
        """Delete, pause or resume one, or let it run now."""
        found = await self.find(caller, schedule_id)
        if not (caller.admin or _concerns(found, caller)):
            raise Conflict(f"The schedule {schedule_id} is another's.", way_out="an administrator")
        acts = {
            "delete": self._deleted,
            "pause": self._paused,
            "resume": self._resumed,
            "run": self._run,
        }
        return await acts[act](found, caller)

    async def _deleted(self, schedule: Schedule, caller: Caller) -> Schedule:
        if schedule.of_manifest:
            raise Conflict(
                f"The manifest of {schedule.agent} asks for {schedule.id}.",
                way_out=f"openfang agents edit {schedule.agent}, or: "
                f"openfang schedules pause {schedule.id}",
            )
        await self._write(schedule, "deleted", caller, *schedules.delete(schedule))
        return schedule

    async def _paused(self, schedule: Schedule, caller: Caller) -> Schedule:
        if schedule.state is not ScheduleState.ACTIVE:
            raise _is(schedule)
        reason = f"paused by {caller.id}"
        after = replace(schedule, state=ScheduleState.PAUSED, reason=reason, due=0)
        await self._write(after, "paused", caller, schedules.change(schedule, after))
        return after

    async def _resumed(self, schedule: Schedule, caller: Caller) -> Schedule:
        due = (await when_of(schedule)).next_after(self.parts.clock.time_ns())
        if schedule.state is not ScheduleState.PAUSED or due is None:
            raise _is(schedule)
        after = replace(schedule, state=ScheduleState.ACTIVE, reason="", refusals=0, due=due)
        plan = timers.replace(schedules.timer(after, due))
        await self._write(after, "resumed", caller, schedules.change(schedule, after), plan)
        return after

    async def _run(self, schedule: Schedule, caller: Caller) -> Schedule:
        now = self.parts.clock.time_ns()
        plan = timers.replace(schedules.timer(schedule, now, by_hand=True))
        await self._write(schedule, "run", caller, plan)
        return replace(schedule, due=now)

    async def _write(
        self, schedule: Schedule, act: str, caller: Caller, *statements: Statement
    ) -> None:
        record = changed(schedule, act, caller.id)
        await self.parts.broker.append([record], statements, (TIMERS,))
        self.parts.timers.wake()

    async def _check_room(self, root: str) -> None:
        config = self.parts.config.schedules
        own, everybody = await ScheduleStore(self.parts.database).counts(root)
        if own >= config.max_per_caller:
            raise _full(f"{root} has {own} schedules", "max_per_caller")
        if everybody >= config.max_total:
            raise _full(f"The node has {everybody} schedules", "max_total")

    def _agent_of(self, caller: Caller, name: str) -> str:
        """Name the agent that is meant: the one who calls, or one that it may send messages to."""
        agent, own = name.removeprefix(_AGENT), caller.id.removeprefix(_AGENT)
        if caller.id.startswith(_AGENT) and agent in {"", own}:
            return own
        if not agent:
            raise NotFound("It is not said which agent runs.", way_out='agent = "NAME"')
        try:
            return self.parts.catalog.find(caller, tool_id(Kind.AGENT, agent)).name
        except UnknownTool:
            own_way = f'agent_message = ["{agent}"] in its manifest, or: '
            raise NotFound(
                f"No agent {agent} is there that {caller.id} may send messages to.",
                way_out=f"{own_way if own != caller.id else ''}openfang agents list",
            ) from None

    async def _agents(self) -> Agents:
        if self.parts.agents is None:
            raise NotFound("No agent is there.", way_out="openfang start")
        return await self.parts.agents.opened()


def added(schedule: Schedule) -> tuple[Statement, ...]:
    """Keep a new schedule, and when it is due, if it is."""
    plan = timers.replace(schedules.timer(schedule, schedule.due))
    return *schedules.insert(schedule), *((plan,) if schedule.due else ())


def changed(schedule: Schedule, act: str, by: str) -> Record:
    """Tell what was done with a schedule."""
    payload = {
        "schedule": schedule.id,
        "act": act,
        "agent": schedule.agent,
        "owner": schedule.owner,
        "when": schedule.schedule,
        "timezone": schedule.timezone,
    }
    return Record(event=SCHEDULE_CHANGED, payload=payload, context={"caller": by})


def first_due(schedule: Schedule, least: float) -> Schedule:
    """Read when it is due first; what makes no sense is refused. Blocks."""
    from openfang.agents.when import check_apart, read_when, read_zone  # noqa: PLC0415 - start-up

    zone, now = read_zone(schedule.timezone), schedule.created_at
    when = read_when(schedule.schedule, zone, now)
    check_apart(when, now, least)
    return replace(schedule, due=when.next_after(now) or 0)


def _made_by(schedule: Schedule, call: Call) -> bool:
    return (schedule.owner, schedule.root) == (call.caller.id, call.root)


def _concerns(schedule: Schedule, caller: Caller) -> bool:
    return caller.id in {schedule.owner, schedule.root}


def _unknown(schedule_id: str) -> NotFound:
    return NotFound(f"No schedule {schedule_id}.", way_out=_WAY_OUT)


def _is(schedule: Schedule) -> Conflict:
    way_out = f"openfang schedules show {schedule.id}"
    return Conflict(f"The schedule {schedule.id} is {schedule.state.value}.", way_out=way_out)


def _full(whose: str, key: str) -> Conflict:
    return Conflict(
        f"{whose}, and no more are kept.",
        way_out=f"delete one that is not needed, or schedules.{key} in config.toml",
    )


def _nobody(call: Call) -> PolicyViolation:
    who = " for ".join(dict.fromkeys((call.caller.id, call.root)))
    return PolicyViolation(
        f"{who} could not be found again when a schedule is due.",
        rule="schedule.holder",
        way_out="a key of the node's own that is not bound to toolsets, or an agent's manifest",
    )
