"""How runs end that nobody waits for, kept where they were asked for, whichever node ends them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.app.agents.holders import SCHEDULE, TRIGGER
from openfang.core.agents import Ending
from openfang.core.errors import AuditUnavailable, CallRefused, GuardTripped, OpenFangError
from openfang.core.events import TRIGGER_REFUSED, Record
from openfang.core.results import Result
from openfang.core.schedules import RunOutcome
from openfang.core.values import value
from openfang.storage import schedules
from openfang.storage.sessions import carry

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.storage.tasks import Statement

Work: TypeAlias = Callable[[], Awaitable[Result]]
MOST_REFUSALS: Final = 5
"""After so many in a row a schedule is paused."""
KEPT: Final = "errand"
"""The kind of the rows that say what a run is, until it has begun; nobody is woken by them."""
_log = logging.getLogger("openfang.schedules")


@value
class Own:
    """A run of an agent's own time: over which edge, as which task, where, of what, for whom."""

    edge: str
    task: str
    session: str
    agent: str
    owner: str


async def kept(parts: Parts, own: Own, work: Work) -> Result:
    """Do the work, and keep how it ended; who was asked by somebody tells them alone."""
    if own.edge == SCHEDULE and own.task:
        return await _scheduled(parts, own, work)
    if own.edge == TRIGGER and own.task:
        return await _triggered(parts, own, work)
    return await work()


async def _scheduled(parts: Parts, own: Own, work: Work) -> Result:
    try:
        result = await work()
    except OpenFangError as error:
        await _told(parts, _failed(own.task, error))
        raise
    outcome = RunOutcome.FAILED if result.is_error else RunOutcome.COMPLETED
    why = result.text if result.is_error or _stopped(result) else ""
    # Who reads why is judged by the labels of the run, which its conversation keeps.
    labels = carry(own.session, result.labels, parts.clock.time_ns())
    await _told(parts, labels, schedules.ended_as(own.task, outcome, why))
    return result


def _failed(task: str, error: OpenFangError) -> Statement:
    """Keep why; what is only too much at the moment is no refusal."""
    why = error.message
    if isinstance(error, CallRefused) and not isinstance(error, (GuardTripped, AuditUnavailable)):
        return schedules.refused(task, why, MOST_REFUSALS, given_up(why))
    return schedules.ended_as(task, RunOutcome.FAILED, why)


async def _told(parts: Parts, *statements: Statement, records: Sequence[Record] = ()) -> None:
    """Keep how a run ended; if that cannot be, its task still says so."""
    try:
        await parts.broker.append(records, statements)
    except OpenFangError as error:
        _log.warning("How a run of an agent's own time ended is not kept: %s", error.message)


async def _triggered(parts: Parts, own: Own, work: Work) -> Result:
    """A refusal is on record as that of a trigger, too."""
    try:
        result = await work()
    except OpenFangError as error:
        record = refusal(own.agent, own.owner, own.task, error.message)
        records = [record] if isinstance(error, CallRefused) else []
        await _told(parts, _forgotten(own.task), records=records)
        raise
    await _told(parts, _forgotten(own.task))
    return result


def _forgotten(task: str) -> Statement:
    return "DELETE FROM timers WHERE id = ?", (f"{KEPT}/{task}",)


def refusal(agent: str, caller: str, task: str, why: str) -> Record:
    """Tell that an event has not started what waited for it."""
    return Record(
        event=TRIGGER_REFUSED,
        level="warning",
        task_id=task,
        payload={"agent": agent, "task": task, "reason": why},
        context={"caller": caller},
    )


def given_up(why: str) -> str:
    """Say why a schedule is paused."""
    return f"refused {MOST_REFUSALS} times in a row: {why}"


def _stopped(result: Result) -> bool:
    """Whether an agent ended before it was done: a budget, or another bound, was used up."""
    match result.structured:
        case {"ending": Ending.ANSWERED.value}:
            return False
        case {"ending": _}:
            return True
        case _:
            return False
