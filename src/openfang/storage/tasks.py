"""Tasks as rows: what was said in each and what came out of it, and the states it went through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.core.errors import Rejected
from openfang.core.tasks import (
    MOST_TASKS,
    Task,
    TaskPage,
    TaskState,
)
from openfang.core.values import dataclass
from openfang.storage.marks import marks
from openfang.storage.queued import own
from openfang.storage.task_bodies import readable, task_of, written

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from openfang.core.tasks import TaskFilter
    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_COLUMNS: Final = (
    "id, agent, caller, context, session, state, version, labels, body, created_at, changed_at"
)
_CURSOR: Final = re.compile(r"\A[0-7][0-9a-f]{15}-task_[0-9a-f]{32}\Z")
_CHARACTERS_AT_ONCE: Final = 1_000_000


class TaskHead(NamedTuple):
    """Whose a task is, and how far it has got."""

    agent: str
    caller: str
    state: TaskState


@dataclass(frozen=True, slots=True)
class TaskStore:
    """Reads tasks; the statements below change them."""

    database: Reader

    async def get(self, task_id: str) -> Task | None:
        """Find one."""
        found = await self._select("id = ?", (task_id,))
        return found[0] if found else None

    async def of_message(self, caller: str, agent: str, message_id: str) -> Task | None:
        """Find the one that this message of this caller began."""
        if not message_id:
            return None
        where = "caller = ? AND agent = ? AND message = ? AND message <> ''"
        found = await self._select(where, (caller, agent, readable(message_id)))
        return found[0] if found else None

    async def head(self, task_id: str) -> TaskHead | None:
        """Tell whose one is, without all that it holds."""
        sql = "SELECT agent, caller, state FROM tasks WHERE id = ?"
        rows = await self.database.read(sql, (task_id,))
        return TaskHead(rows[0][0], rows[0][1], TaskState(rows[0][2])) if rows else None

    async def page(self, caller: str | None, wanted: TaskFilter) -> TaskPage:
        """List those of one caller, or everybody's: the last changed first, behind a cursor.

        A page of long ones is shorter than it may be.
        """
        conditions, parameters = _wanted(caller, wanted)
        where = " AND ".join(conditions)
        count = f"SELECT COUNT(*) FROM tasks WHERE {where}"  # noqa: S608 - constants and marks
        total = (await self.database.read(count, parameters))[0][0]
        if wanted.after:
            where += " AND (changed_at, id) < (?, ?)"
            parameters += _place(wanted.after)
        limit = max(1, min(wanted.limit, MOST_TASKS))
        sql = (
            f"SELECT {_COLUMNS} FROM tasks WHERE {where} "  # noqa: S608 - constants and marks
            "ORDER BY changed_at DESC, id DESC LIMIT ?"
        )
        found = await self.database.read(sql, (*parameters, limit + 1), most=_CHARACTERS_AT_ONCE)
        tasks = [task_of(row) for row in found[:limit]]
        more = len(found) > limit or _size(found) > _CHARACTERS_AT_ONCE
        return TaskPage(tasks=tasks, total=total, after=_cursor(tasks[-1]) if more else "")

    async def unfinished(self) -> list[tuple[str, str]]:
        """Name those that have not ended, oldest first, each with the process that it is in."""
        rows = await self.database.read(
            "SELECT id, process FROM tasks WHERE final = 0 ORDER BY seq"
        )
        return [(task, process) for task, process in rows]

    async def held_by(self, process: str) -> dict[str, int]:
        """Name those that have not ended and are in this process, each with its version."""
        sql = "SELECT id, version FROM tasks WHERE final = 0 AND process IN (?, ?)"
        return dict(await self.database.read(sql, own(process)))

    async def stuck(self, before: int) -> list[str]:
        """Name those that have not ended, and did not change since then."""
        sql = "SELECT id FROM tasks WHERE final = 0 AND changed_at <= ? ORDER BY seq"
        return [row[0] for row in await self.database.read(sql, (before,))]

    async def longest_unchanged(self) -> int | None:
        """When anything last happened to the one of them to which nothing has for longest."""
        return (await self.database.read("SELECT MIN(changed_at) FROM tasks WHERE final = 0"))[0][0]

    async def process(self, task_id: str) -> str:
        """Name the process that it is in, or was."""
        rows = await self.database.read("SELECT process FROM tasks WHERE id = ?", (task_id,))
        return rows[0][0] if rows else ""

    async def counts(self) -> tuple[int, int]:
        """Count them: all, and those that have ended."""
        sql = "SELECT COUNT(*), COALESCE(SUM(final), 0) FROM tasks"
        return (await self.database.read(sql))[0][:2]

    async def size(self) -> int:
        """How long all of them are together."""
        return (await self.database.read("SELECT COALESCE(SUM(size), 0) FROM tasks"))[0][0]

    async def under_way(self) -> list[tuple[str, int, int]]:
        """Tell who has tasks that have not ended, how many, and how long they are together."""
        sql = "SELECT caller, COUNT(*), SUM(size) FROM tasks WHERE final = 0 GROUP BY caller"
        return [(caller, count, size) for caller, count, size in await self.database.read(sql)]

    async def oldest(self, most: int) -> list[int]:
        """Tell how long those are that would go first."""
        rows = await self.database.read(f"SELECT size {_OLDEST}", (most,) * 3)
        return [size for (size,) in rows]

    async def states(self, task_id: str) -> list[tuple[int, int, TaskState]]:
        """Tell the states that it went through: number, time, state."""
        sql = "SELECT n, at, state FROM task_events WHERE task = ? ORDER BY n"
        return [
            (n, at, TaskState(state)) for n, at, state in await self.database.read(sql, (task_id,))
        ]

    async def _select(self, where: str, parameters: Sequence[Any]) -> list[Task]:
        sql = f"SELECT {_COLUMNS} FROM tasks WHERE {where}"  # noqa: S608 - constants and marks
        return [task_of(row) for row in await self.database.read(sql, parameters)]


def _wanted(caller: str | None, wanted: TaskFilter) -> tuple[list[str], list[Any]]:
    """Conditions, and what stands for their marks."""
    choice = {
        "caller = ?": caller,
        "agent = ?": wanted.agent or None,
        "context = ?": readable(wanted.context) or None,
        "state = ?": wanted.state and wanted.state.value,
        "changed_at >= ?": wanted.since,
    }
    kept = {condition: value for condition, value in choice.items() if value is not None}
    return ["1 = 1", *kept], list(kept.values())


def _cursor(task: Task) -> str:
    return f"{task.changed_at:016x}-{task.id}"


def _place(cursor: str) -> tuple[int, str]:
    if not _CURSOR.match(cursor):
        raise Rejected(
            f"{cursor[:100]!r} is not where a list of tasks goes on.",
            status=400,
            rule="query",
            way_out="pass what the page before says, or leave it out",
        )
    moment, _, task_id = cursor.partition("-")
    return int(moment, 16), task_id


def _size(rows: Sequence[tuple[Any, ...]]) -> int:
    return sum(len(value) for row in rows for value in row if isinstance(value, str))


def insert(task: Task, message_id: str, process: str, body: str = "") -> Statement:
    """Keep a new task. The unit fails if that message of that caller has begun one already.

    `body` is what it holds, if that is written already.
    """
    columns = f"{_COLUMNS}, message, final, process, size"
    values, body = ", ".join("?" * 15), body or written(task)
    return f"INSERT INTO tasks ({columns}) VALUES ({values})", (  # noqa: S608 - constants and marks
        task.id,
        task.agent,
        task.caller,
        readable(task.context),
        task.session,
        task.state.value,
        task.version,
        int(task.labels),
        body,
        task.created_at,
        task.changed_at,
        readable(message_id),
        int(task.state.final),
        process,
        len(body),
    )


def event(task_id: str, n: int, at: int, state: TaskState) -> Statement:
    """Keep that it came into a state. If that is not what happened to it last the unit fails."""
    sql = (
        "INSERT INTO task_events (task, n, at, state) "
        "VALUES (?, (SELECT CAST(? AS BIGINT) FROM tasks WHERE id = ? AND version >= ?), ?, ?)"
    )
    return sql, (task_id, n, task_id, n, at, state.value)


def move(before: Task, after: Task, told: Collection[str] | None = None) -> tuple[Statement, ...]:
    """Change a task as it was known. If it is another by now, or gone, the unit fails.

    So it does if others than those who are `told` are to be told of it, where that is not known.
    """
    all_told, pushes = ("", ()) if told is None else _only_told(after.id, told)
    sql = (
        "UPDATE tasks SET state = ?, final = ?, labels = ?, body = ?, size = ?, changed_at = ?, "  # noqa: S608 - constants and marks
        f"version = CASE WHEN version = ? AND final = 0{all_told} THEN CAST(? AS BIGINT) END "
        "WHERE id = ?"
    )
    body = written(after)
    parameters = (
        after.state.value,
        int(after.state.final),
        int(after.labels),
        body,
        len(body),
        after.changed_at,
        before.version,
        *pushes,
        after.version,
        after.id,
    )
    return (sql, parameters), event(after.id, after.version, after.changed_at, after.state)


def _only_told(task_id: str, told: Collection[str]) -> tuple[str, tuple[Any, ...]]:
    """That these are all who are to be told of a task."""
    counted = "SELECT COUNT(*) FROM pushes WHERE task = ?"
    among = f"{counted} AND id IN ({marks(told)})"
    if not told:
        return f" AND ({counted}) = 0", (task_id,)
    count = len(told)
    return f" AND ({counted}) = ? AND ({among}) = ?", (task_id, count, task_id, *told, count)


def unchanged(task: Task) -> Statement:
    """Change nothing. If the task is another by now, or gone, the unit fails."""
    sql = (
        "INSERT INTO task_events (task, n, at, state) SELECT ?, NULL, 0, '' "
        "WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = ? AND version = ?)"
    )
    return sql, (task.id, task.id, task.version)


def take_over(task_id: str, process: str, by: str) -> Statement:
    """Take a task from a process that is gone. If somebody else was faster the unit fails."""
    sql = "UPDATE tasks SET process = CASE WHEN process = ? AND final = 0 THEN ? END WHERE id = ?"
    return sql, (process, by, task_id)


def evict(count: int) -> tuple[Statement, ...]:
    """Delete so many of those that have ended, the oldest first, with all that belongs to them.

    Those of which somebody is still to be told go last; their notices stay, to be given up.
    """
    return (_GOES, (count,) * 3), *((sql, ()) for sql in _EVICT)


_TOLD: Final = "EXISTS (SELECT 1 FROM timers WHERE kind = 'push' AND subject = tasks.id)"
# Two lists, one behind the other: the second one is looked at if the first one is too short.
_OLDEST: Final = (
    "FROM (SELECT * FROM (SELECT id, size FROM tasks "  # noqa: S608 - constants
    f"WHERE final = 1 AND NOT {_TOLD} ORDER BY seq LIMIT ?) AS free "
    "UNION ALL SELECT * FROM (SELECT id, size FROM tasks "
    f"WHERE final = 1 AND {_TOLD} ORDER BY seq LIMIT ?) AS told) AS ended LIMIT ?"
)
# What goes is marked first, in the same unit, so that it is looked for once.
_GOES: Final = f"UPDATE tasks SET final = 2 WHERE id IN (SELECT id {_OLDEST})"  # noqa: S608 - constants
_GOING: Final = "SELECT id FROM tasks WHERE final = 2"
# A conversation that was made for a task and that nobody has gone on with is nothing without it.
# Its runs stay for now: budgets count what was used in the last hour.
_ALONE: Final = (
    "SELECT session FROM tasks WHERE final = 2 AND context = session "
    "AND NOT EXISTS (SELECT 1 FROM tasks AS more WHERE more.session = tasks.session "
    "AND more.final < 2) AND NOT EXISTS (SELECT 1 FROM agent_runs AS run "
    "WHERE run.session = tasks.session AND (run.state = 'running' OR run.task = ''))"
)
_EVICT: Final = (
    f"DELETE FROM task_events WHERE task IN ({_GOING})",  # noqa: S608 - constants
    f"DELETE FROM pushes WHERE task IN ({_GOING})",  # noqa: S608 - constants
    f"DELETE FROM turns WHERE session IN ({_ALONE})",  # noqa: S608 - constants
    f"DELETE FROM sessions WHERE id IN ({_ALONE})",  # noqa: S608 - constants
    "DELETE FROM tasks WHERE final = 2",
)
