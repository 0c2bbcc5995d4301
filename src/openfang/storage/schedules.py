"""Schedules as rows: what is asked for, when it is due next, and how it went the last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.labels import Labels
from openfang.core.schedules import RunOutcome, Schedule, ScheduleRun, ScheduleState
from openfang.core.values import dataclass
from openfang.storage.timers import Timer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
KIND: Final = "schedule"
"""The kind of the timers of schedules."""
_COLUMNS: Final = (
    "id, owner, root, agent, state, reason, version, due, runs, refusals, last_due, last_at, "
    "last_outcome, last_reason, last_task, last_session, skips, skipped_at, skipped_why, "
    "body, created_at"
)
_KEPT: Final = 50
"""So many that have ended stay to be seen, on behalf of each."""
_LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class ScheduleStore:
    """Reads schedules; the statements below change them."""

    database: Reader

    async def get(self, schedule_id: str) -> Schedule | None:
        """Find one."""
        found = await self._select("id = ?", (schedule_id,))
        return found[0] if found else None

    async def all(self) -> list[Schedule]:
        """List everybody's, oldest first."""
        return await self._select("1 = 1", ())

    async def of(self, caller: str) -> list[Schedule]:
        """List those of one owner, and those made on their behalf."""
        return await self._select("owner = ? OR root = ?", (caller, caller))

    async def of_manifests(self) -> list[Schedule]:
        """List those that manifests ask for."""
        return [one for one in await self.all() if one.of_manifest]

    async def of_task(self, task: str) -> Schedule | None:
        """Find the one whose last run this task is."""
        found = await self._select("last_task = ? AND last_task <> ''", (task,))
        return found[0] if found else None

    async def ahead_of(self, moment: int) -> list[Schedule]:
        """List those that run, and that were made or seen to later than this."""
        seen = "state = 'active' AND (created_at > ? OR last_at > ? OR skipped_at > ?)"
        return await self._select(seen, (moment,) * 3)

    async def counts(self, root: str) -> tuple[int, int]:
        """Count those that have not ended: those on behalf of one, and all."""
        sql = (
            "SELECT COALESCE(SUM(CASE WHEN root = ? THEN 1 ELSE 0 END), 0), COUNT(*) "
            "FROM schedules WHERE state <> 'ended'"
        )
        return (await self.database.read(sql, (root,)))[0][:2]

    async def _select(self, where: str, parameters: Sequence[Any]) -> list[Schedule]:
        sql = f"SELECT {_COLUMNS} FROM schedules WHERE {where} ORDER BY created_at, id"  # noqa: S608 - constants
        return [_schedule(row) for row in await self.database.read(sql, parameters)]


def insert(schedule: Schedule) -> tuple[Statement, ...]:
    """Keep a new one; of those on behalf of the same that have ended, only some stay."""
    marks = ", ".join("?" * len(_row(schedule)))
    return (
        (f"INSERT INTO schedules ({_COLUMNS}) VALUES ({marks})", _row(schedule)),  # noqa: S608 - constants
        (_DROP_ENDED, (schedule.root, schedule.root, _KEPT)),
    )


_DROP_ENDED: Final = (
    "DELETE FROM schedules WHERE state = 'ended' AND root = ? AND id NOT IN (SELECT id FROM "
    "schedules WHERE state = 'ended' AND root = ? ORDER BY created_at DESC, id DESC LIMIT ?)"
)


def change(before: Schedule, after: Schedule) -> Statement:
    """Put one in the place of what was known. If it is another by now the unit fails."""
    known = zip(_COLUMNS.split(", "), _row(before), _row(after), strict=True)
    changed = {name: new for name, old, new in known if new != old}
    sets = "".join(f", {name} = ?" for name in changed)
    same = "CASE WHEN version = ? THEN CAST(? AS BIGINT) END"
    sql = f"UPDATE schedules SET version = {same}{sets} WHERE id = ?"  # noqa: S608 - constants
    return sql, (before.version, before.version + 1, *changed.values(), before.id)


def ended_as(task: str, outcome: RunOutcome, reason: str) -> Statement:
    """Keep how the last run ended, if it is still the last; what was not refused is forgiven."""
    sql = "UPDATE schedules SET last_outcome = ?, last_reason = ?, refusals = 0 WHERE last_task = ?"
    return sql, (outcome.value, reason[:_LONGEST_REASON], task)


def refused(task: str, reason: str, most: int, why: str) -> Statement:
    """Keep that the last run was refused; after so many in a row no more are begun."""
    sql = (
        "UPDATE schedules SET last_outcome = 'refused', last_reason = ?, refusals = refusals + 1, "
        "reason = CASE WHEN refusals + 1 >= ? AND state = 'active' THEN ? ELSE reason END, "
        "state = CASE WHEN refusals + 1 >= ? AND state = 'active' THEN 'paused' ELSE state END "
        "WHERE last_task = ?"
    )
    return sql, (reason[:_LONGEST_REASON], most, why[:_LONGEST_REASON], most, task)


def delete(schedule: Schedule) -> tuple[Statement, ...]:
    """Forget one, and when it would be due."""
    return (
        ("DELETE FROM schedules WHERE id = ?", (schedule.id,)),
        ("DELETE FROM timers WHERE id = ?", (_timer_id(schedule),)),
    )


def timer(schedule: Schedule, due: int, **body: Any) -> Timer:  # noqa: ANN401 - what the loop is told
    """When a schedule is to be looked at; `due` in the body is the moment that it is for."""
    return Timer(
        id=_timer_id(schedule),
        kind=KIND,
        subject=schedule.id,
        due=due,
        body={"due": due, **body},
        party=schedule.owner,
    )


def _timer_id(schedule: Schedule) -> str:
    return f"{KIND}/{schedule.id}"


def _row(schedule: Schedule) -> tuple[Any, ...]:
    last = schedule.last
    body = {
        "description": schedule.description,
        "message": schedule.message,
        "schedule": schedule.schedule,
        "timezone": schedule.timezone,
        "overlap": schedule.overlap,
        "origin": schedule.origin,
        "labels": schedule.labels.names,
        "manifest": schedule.of_manifest,
    }
    return (
        *(schedule.id, schedule.owner, schedule.root, schedule.agent),
        *(schedule.state.value, schedule.reason[:_LONGEST_REASON], schedule.version),
        *(schedule.due, schedule.runs, schedule.refusals),
        *((last.due, last.at, last.outcome.value) if last else (0, 0, "")),
        *((last.reason[:_LONGEST_REASON], last.task, last.session) if last else ("", "", "")),
        *(schedule.skips, schedule.skipped_at, schedule.skipped_why[:_LONGEST_REASON]),
        *(orjson.dumps(body).decode(), schedule.created_at),
    )


def _schedule(row: tuple[Any, ...]) -> Schedule:
    body: Mapping[str, Any] = orjson.loads(row[19])
    return Schedule(
        id=row[0],
        owner=row[1],
        root=row[2],
        agent=row[3],
        state=ScheduleState(row[4]),
        reason=row[5],
        version=row[6],
        due=row[7],
        runs=row[8],
        refusals=row[9],
        last=_run(row) if row[12] else None,
        skips=row[16],
        skipped_at=row[17],
        skipped_why=row[18],
        description=body["description"],
        message=body["message"],
        schedule=body["schedule"],
        timezone=body["timezone"],
        overlap=body["overlap"],
        origin=body["origin"],
        labels=Labels.of(body["labels"]),
        of_manifest=body["manifest"],
        created_at=row[20],
    )


def _run(row: tuple[Any, ...]) -> ScheduleRun:
    return ScheduleRun(
        due=row[10],
        at=row[11],
        outcome=RunOutcome(row[12]),
        reason=row[13],
        task=row[14],
        session=row[15],
    )
