"""Schedules as people and models read them."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import Rejected
from openfang.core.labels import Labels
from openfang.core.schedules import RunOutcome, ScheduleState
from openfang.core.wire import moment
from openfang.storage.sessions import SessionStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.parts import Parts
    from openfang.core.results import Result
    from openfang.core.schedules import Schedule, ScheduleRun

CREATE: Final = "builtin:schedule_create"


async def schedule_body(parts: Parts, schedule: Schedule) -> dict[str, Any]:
    """One schedule with its next run, its last, and what was left out."""
    due = schedule.due if schedule.state is ScheduleState.ACTIVE else 0
    skipped = {
        "count": schedule.skips,
        "due": moment(schedule.skipped_at),
        "reason": schedule.skipped_why,
    }
    return {
        "id": schedule.id,
        "agent": schedule.agent,
        "owner": schedule.owner,
        "root": schedule.root,
        "description": schedule.description,
        "message": schedule.message,
        "schedule": schedule.schedule,
        "cron": _cron(schedule),
        "timezone": schedule.timezone,
        "overlap": schedule.overlap,
        "from_manifest": schedule.of_manifest,
        "labels": schedule.labels.names,
        "state": schedule.state.value,
        "reason": schedule.reason or None,
        "next_run": moment(due) if due else None,
        "runs": schedule.runs,
        "last_run": None if schedule.last is None else await _run(parts, schedule.last),
        "skipped": skipped if schedule.skips else None,
        "created_at": moment(schedule.created_at),
    }


def made_by(result: Result) -> Mapping[str, Any]:
    """Read the schedule that a call of the tool made, or why it made none."""
    body: object = result.structured
    if result.is_error or not isinstance(body, dict):
        raise Rejected(
            result.text.removeprefix("Error: "),
            status=422,
            rule="schedule",
            way_out="openfang tools show schedule_create",
        )
    return cast("dict[str, Any]", body)


async def _run(parts: Parts, run: ScheduleRun) -> dict[str, Any]:
    """The last run; of one that was only begun, its task knows more."""
    outcome = run.outcome.value
    if run.outcome is RunOutcome.STARTED and (head := await parts.tasks.head(run.task)) is not None:
        outcome = head.state.value
    labels = await _labels(parts, run)
    return {
        "due": moment(run.due),
        "at": moment(run.at),
        "outcome": outcome,
        "reason": run.reason or None if labels is not None else None,
        "labels": [] if labels is None else labels.names,
        "task": run.task or None,
        "session": run.session or None,
    }


async def _labels(parts: Parts, run: ScheduleRun) -> Labels | None:
    """What a run carried at its end; None if its conversation was deleted, and nobody knows."""
    if not run.session:
        return Labels.NONE
    session = await SessionStore(parts.database).get(run.session)
    return None if session is None else session.labels


def _cron(schedule: Schedule) -> str | None:
    from openfang.agents.when import Cron, read_when  # noqa: PLC0415 - where one is shown

    try:
        when = read_when(schedule.schedule, UTC, schedule.created_at)
    except Rejected:
        return None
    return when.expression if isinstance(when, Cron) else None
