"""What becomes of a schedule that is due: a run, begun in one unit with the next due time."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.agents.origin import Origin, read_origin
from openfang.app.agents.holders import SCHEDULE
from openfang.app.schedules.outcomes import MOST_REFUSALS, given_up
from openfang.app.schedules.starting import Errand, Errands
from openfang.app.schedules.triggers import Triggered
from openfang.app.timers import Again
from openfang.core.errors import CallRefused, Conflict, Rejected
from openfang.core.events import SCHEDULE_DUE, Record
from openfang.core.ids import Kind, tool_id
from openfang.core.schedules import RunOutcome, ScheduleRun, ScheduleState
from openfang.core.trace import new_chain
from openfang.core.values import dataclass
from openfang.storage import schedules, timers
from openfang.storage.agent_runs import AgentRunStore
from openfang.storage.schedules import ScheduleStore

if TYPE_CHECKING:
    from openfang.agents.when import When
    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.schedules import Schedule
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.tasks import Statement
    from openfang.storage.timers import Timer

_SECOND: Final = 1_000_000_000
_LATE: Final = 60 * _SECOND
_ROOM_AGAIN: Final = 10.0
_QUEUE_AGAIN: Final = 2
_STILL: Final = "the run before is still under way"
_MISSED: Final = "no daemon ran when it was due"
_QUIET: Final = "the agent's quiet hours"
_log = logging.getLogger("openfang.schedules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A due moment of a schedule, as it is seen to at `now`; `later` is the next one, if any."""

    schedule: Schedule
    due: int
    now: int
    later: int | None
    by_hand: bool = False
    waited: bool = False

    @property
    def missed(self) -> bool:
        """Whether nobody was there when it came."""
        return self.now - self.due > _LATE and not self.by_hand and not self.waited

    @property
    def planned(self) -> Schedule:
        """The schedule with its next due time; one that has none has ended."""
        one = self.schedule
        if self.later is not None:
            return replace(one, due=self.later)
        return replace(one, due=0, state=ScheduleState.ENDED)

    def statements(self, after: Schedule) -> tuple[Statement, ...]:
        """Change the schedule, and plan when it is looked at next."""
        change = schedules.change(self.schedule, after)
        if self.later is None or after.state is not ScheduleState.ACTIVE:
            return (change,)
        return change, timers.replace(schedules.timer(after, self.later))


@dataclass(frozen=True, slots=True)
class Due:
    """Sees to schedules that are due."""

    parts: Parts
    agents: Agents

    async def run(self, timer: Timer) -> Again | None:
        """Begin the run of a due moment, or say why there is none."""
        schedule = await ScheduleStore(self.parts.database).get(timer.subject)
        by_hand = bool(timer.body.get("by_hand"))
        if schedule is None or not (by_hand or schedule.state is ScheduleState.ACTIVE):
            return None
        moment = await self._moment(schedule, timer.body, by_hand=by_hand)
        try:
            return await self._seen_to(moment)
        except Conflict:  # somebody has changed it meanwhile: it is looked at anew
            return Again(1.0)

    async def _moment(self, schedule: Schedule, body: Any, *, by_hand: bool) -> Moment:  # noqa: ANN401 - a timer's
        now, when = self.parts.clock.time_ns(), await when_of(schedule)
        due = int(body["due"])
        ahead = schedule.due > now and schedule.state is ScheduleState.ACTIVE
        return Moment(
            schedule=schedule,
            due=due,
            now=now,
            later=schedule.due if by_hand and ahead else when.next_after(max(now, due)),
            by_hand=by_hand,
            waited=bool(body.get("waited")),
        )

    async def _seen_to(self, moment: Moment) -> Again | None:
        schedule = moment.schedule
        if moment.missed and self.parts.config.schedules.missed == "skip":
            return await self._skipped(moment, _MISSED)
        if not moment.by_hand and await self._is_quiet(moment):
            return await self._skipped(moment, _QUIET)
        if await self._under_way(schedule):
            if schedule.overlap == "queue":
                return await self._queued(moment)
            return await self._skipped(moment, _STILL)
        return await self._begun(moment)

    async def _under_way(self, schedule: Schedule) -> bool:
        head = await self.parts.tasks.head(schedule.last.task) if schedule.last else None
        return head is not None and not head.state.final

    async def _is_quiet(self, moment: Moment) -> bool:
        source = self.agents.running.get(moment.schedule.agent)
        own = source is not None and source.spec.id == moment.schedule.owner
        if source is None or not own or not source.spec.acts.quiet:
            return False
        from openfang.agents.when import Cron, read_zone  # noqa: PLC0415 - few agents have any

        zone = await to_thread.run_sync(read_zone, moment.schedule.timezone)
        return Cron(source.spec.acts.quiet, zone).holds(moment.now)

    async def _queued(self, moment: Moment) -> None:
        """Look again soon: one run waits for the one before, however often it was due."""
        due = moment.now + _QUEUE_AGAIN * _SECOND
        body = {"due": moment.due, "waited": True, "by_hand": moment.by_hand}
        await self.parts.timers.plan(replace(schedules.timer(moment.schedule, due), body=body))

    async def _skipped(self, moment: Moment, why: str) -> None:
        planned = moment.planned
        after = replace(planned, skips=planned.skips + 1, skipped_at=moment.due, skipped_why=why)
        record = due_record(moment.schedule, moment.due, "skipped", why)
        await self.parts.broker.append([record], moment.statements(after))

    async def _begun(self, moment: Moment) -> Again | None:
        errand = errand_of(moment.schedule, moment.due)
        try:
            await self._check(errand)
        except CallRefused as refusal:
            await self._refused(moment, refusal.message)
            return None
        run = ScheduleRun(
            due=moment.due,
            at=moment.now,
            outcome=RunOutcome.STARTED,
            task=errand.task_id,
            session=errand.session_id,
        )
        after = replace(moment.planned, last=run, runs=moment.schedule.runs + 1)
        try:
            await self._errands.begin(errand, moment.statements(after))
        except Rejected as error:  # there is no room for tasks now
            _log.warning("A run of %s waits: %s", moment.schedule.id, error.message)
            return Again(_ROOM_AGAIN)
        await self._moved_on(moment, after)
        return None

    async def _moved_on(self, moment: Moment, after: Schedule) -> None:
        """See that it is due again, even if its run had been begun before."""
        now = await ScheduleStore(self.parts.database).get(moment.schedule.id)
        if now is not None and now.version == moment.schedule.version:
            await self.parts.broker.append([], moment.statements(after))

    async def _check(self, errand: Errand) -> None:
        """Refuse at once who is gone, or an agent that is not there for its owner."""
        call = await self._errands.call(errand)
        self.parts.catalog.find(call.caller, call.tool)

    async def _refused(self, moment: Moment, why: str) -> None:
        """Keep why there was no run; after some of them in a row no more are tried."""
        planned, count = moment.planned, moment.schedule.refusals + 1
        run = ScheduleRun(due=moment.due, at=moment.now, outcome=RunOutcome.REFUSED, reason=why)
        after = replace(planned, last=run, refusals=count)
        if count >= MOST_REFUSALS and after.state is ScheduleState.ACTIVE:
            after = replace(after, state=ScheduleState.PAUSED, reason=given_up(why))
        record = due_record(moment.schedule, moment.due, "refused", why)
        await self.parts.broker.append([record], moment.statements(after))

    @property
    def _errands(self) -> Errands:
        return Errands(self.parts, self.agents)

    async def work_on(self, task: str) -> Work | None:
        """Give the work on a run that was kept and that a killed process never began."""
        schedule = await ScheduleStore(self.parts.database).of_task(task)
        if schedule is None or schedule.last is None:
            return None
        return self._errands.work(errand_of(schedule, schedule.last.due))


async def never_begun(parts: Parts, agents: Agents) -> dict[str, Work]:
    """Find the runs that were kept, and that were not begun when their process ended."""
    due, runs, found = Due(parts, agents), AgentRunStore(parts.database), dict[str, "Work"]()
    started = await Triggered(parts, agents).never_begun()
    for task, _ in await parts.tasks.store.unfinished():
        work = None if await runs.any_for(task) else started.get(task) or await due.work_on(task)
        if work is not None:
            found[task] = work
    return found


async def when_of(schedule: Schedule) -> When:
    """Read when a schedule is due; a time zone is a file."""
    return await to_thread.run_sync(partial(_when_of, schedule))


def _when_of(schedule: Schedule) -> When:
    from openfang.agents.when import read_when, read_zone  # noqa: PLC0415 - not before one is due

    return read_when(schedule.schedule, read_zone(schedule.timezone), schedule.created_at)


def errand_of(schedule: Schedule, due: int) -> Errand:
    """Say what the run of a due moment is. Nobody waits further up: it has a chain of its own."""
    context = read_origin(schedule.origin).context
    return Errand(
        agent=schedule.agent,
        text=schedule.message,
        message_id=f"{schedule.id}@{due}",
        owner=schedule.owner,
        root=schedule.root,
        origin=Origin(context=context, chain=new_chain()),
        labels=schedule.labels,
        edge=SCHEDULE,
        granted=schedule.owner == tool_id(Kind.AGENT, schedule.agent),
    )


def due_record(schedule: Schedule, due: int, outcome: str, why: str) -> Record:
    """Tell what became of a due moment that began no run."""
    payload = {"schedule": schedule.id, "agent": schedule.agent, "due": due, "outcome": outcome}
    return Record(
        event=SCHEDULE_DUE,
        level="warning" if outcome == "refused" else "info",
        payload={**payload, "reason": why},
        context={"caller": schedule.owner},
    )
