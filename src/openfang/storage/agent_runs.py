"""Runs of agents as rows: under way in which process, begun with what, ended how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.agents import Ended, Ending
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.storage.queued import QUEUE, own
from openfang.storage.sessions import carry
from openfang.storage.state import RunStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from openfang.core.agents import Usage, Wish
    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_COLUMNS: Final = "id, session, agent, caller, labels, process, taken, origin, task"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUnderWay:
    """A run without its ending. `taken` counts the processes that took it over before.

    `origin` is what whoever asked was bound to, as it was written at the beginning. `task` is the
    one that it works on, if there is one.
    """

    id: str
    session: str
    agent: str
    caller: str
    labels: Labels
    process: str
    taken: int
    origin: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class AgentRunStore:
    """Reads runs; the statements below change them."""

    database: Reader

    async def under_way(self) -> list[RunUnderWay]:
        """List all runs without an ending, oldest first."""
        return await self._select("state = 'running' ORDER BY started_at, id", ())

    async def left(self) -> list[RunUnderWay]:
        """List them but for those on a queue, or with a task there: who takes that goes on."""
        queued = (
            "SELECT 1 FROM tasks WHERE tasks.id = agent_runs.task AND tasks.final = 0 "
            "AND tasks.process LIKE ?"
        )
        where = (
            f"state = 'running' AND process NOT LIKE ? AND NOT EXISTS ({queued}) "
            "ORDER BY started_at, id"
        )
        return await self._select(where, (f"{QUEUE}%",) * 2)

    async def still(self, run: str) -> RunUnderWay | None:
        """Find one that has not ended."""
        found = await self._select("id = ? AND state = 'running'", (run,))
        return found[0] if found else None

    async def under_way_for(self, task: str) -> RunUnderWay | None:
        """Find the one that works on a task."""
        where = "task = ? AND state = 'running' ORDER BY started_at DESC LIMIT 1"
        found = await self._select(where, (task,))
        return found[0] if found else None

    async def under_way_in(self, session: str) -> list[RunUnderWay]:
        """List those of one session."""
        return await self._select("session = ? AND state = 'running'", (session,))

    async def _select(self, where: str, parameters: Sequence[Any]) -> list[RunUnderWay]:
        sql = f"SELECT {_COLUMNS} FROM agent_runs WHERE {where}"  # noqa: S608 - constants
        return [
            RunUnderWay(
                id=row[0],
                session=row[1],
                agent=row[2],
                caller=row[3],
                labels=Labels(row[4]) | await RunStore(self.database).labels(row[0]),
                process=row[5],
                taken=row[6],
                origin=row[7],
                task=row[8],
            )
            for row in await self.database.read(sql, parameters)
        ]

    async def ended_for(self, task: str) -> tuple[str, str, Ending] | None:
        """Find the last run that worked on a task and ended: its session, its id and how."""
        sql = (
            "SELECT session, id, ending FROM agent_runs "
            "WHERE task = ? AND task <> '' AND state = 'ended' ORDER BY ended_at DESC LIMIT 1"
        )
        rows = await self.database.read(sql, (task,))
        return (rows[0][0], rows[0][1], Ending(rows[0][2])) if rows else None

    async def at_work_on(self, task: str) -> set[str]:
        """Name the processes that have a run without an ending for a task."""
        sql = "SELECT process FROM agent_runs WHERE task = ? AND task <> '' AND state = 'running'"
        return {row[0] for row in await self.database.read(sql, (task,))}

    async def any_for(self, task: str) -> bool:
        """Whether a run has worked on a task."""
        sql = "SELECT 1 FROM agent_runs WHERE task = ? AND task <> '' LIMIT 1"
        return bool(await self.database.read(sql, (task,)))

    async def begun(self, run: str) -> frozenset[str]:
        """Name the calls of a run that were about to be made and have no result yet."""
        rows = await self.database.read("SELECT wish FROM begun WHERE run = ?", (run,))
        return frozenset(row[0] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A run that is about to begin: where, by which process, and with what it came."""

    run: str
    session: str
    process: str
    labels: Labels
    origin: str = ""
    task: str = ""
    now: int


def begin(one: Beginning, gone: Collection[str] = ()) -> tuple[Statement, ...]:
    """Begin a run in a session.

    The unit fails while another process has one there, unless it is one of those `gone`.
    """
    besides = (*own(one.process), *gone)
    marks = ", ".join("?" * len(besides))
    alone = (
        "INSERT INTO begun SELECT NULL, '' WHERE EXISTS ("  # noqa: S608 - constants and marks
        "SELECT 1 FROM agent_runs WHERE session = ? AND state = 'running' "
        f"AND process NOT IN ({marks}))"
    )
    sql = (
        "INSERT INTO agent_runs (id, session, agent, caller, state, labels, started_at, process, "
        "taken, origin, task) "
        "SELECT ?, id, agent, caller, 'running', ?, ?, ?, 0, ?, ? FROM sessions WHERE id = ?"
    )
    labels, process = int(one.labels), one.process
    parameters = (one.run, labels, one.now, process, one.origin, one.task, one.session)
    return (alone, (one.session, *besides)), (sql, parameters)


def call(run: str, wish: Wish) -> Statement:
    """Keep that a call is made; a run that goes on may make one again."""
    return "INSERT INTO begun VALUES (?, ?) ON CONFLICT DO NOTHING", (run, wish.id)


def answered(run: str, wish_id: str) -> Statement:
    """Forget a call whose result is kept: the same id may come again."""
    return "DELETE FROM begun WHERE run = ? AND wish = ?", (run, wish_id)


def _usage(usage: Usage) -> str:
    spent = {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }
    return orjson.dumps(spent).decode()


def end(run: str, ended: Ended, now: int) -> tuple[Statement, ...]:
    """End a run."""
    sql = "UPDATE agent_runs SET state = 'ended', ending = ?, usage = ?, ended_at = ? WHERE id = ?"
    return (
        (sql, (ended.ending.value, _usage(ended.usage), now, run)),
        ("DELETE FROM begun WHERE run = ?", (run,)),
    )


def drop_left(before: int) -> Statement:
    """Forget the runs for tasks that began before then, and whose sessions went with the tasks."""
    sql = (
        "DELETE FROM agent_runs WHERE task <> '' AND state <> 'running' AND started_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = agent_runs.session)"
    )
    return sql, (before,)


def take_over(run: RunUnderWay, process: str, messages: int | None = None) -> Statement:
    """Take a run over. If somebody else was faster the column turns NULL, and the unit fails.

    So it does if the session has other than so many `messages` by now: it went on without the run.
    """
    still, known = "process = ? AND state = 'running'", tuple[Any, ...]()
    if messages is not None:
        still += " AND (SELECT messages FROM sessions WHERE id = agent_runs.session) = ?"
        known = (messages,)
    sql = (
        "UPDATE agent_runs SET taken = taken + 1, "  # noqa: S608 - constants
        f"process = CASE WHEN {still} THEN ? END WHERE id = ?"
    )
    return sql, (run.process, *known, process, run.id)


def enqueue(run: RunUnderWay) -> Statement:
    """Leave a run to whoever takes it from its queue, unless somebody else was faster."""
    sql = (
        "UPDATE agent_runs SET process = CASE WHEN process = ? AND state = 'running' THEN ? END "
        "WHERE id = ?"
    )
    return sql, (run.process, QUEUE, run.id)


def give_up(run: RunUnderWay, now: int, used: Usage) -> tuple[Statement, ...]:
    """End a run that nobody goes on with; what it has seen stays with the session."""
    failed = Ended(answer="", ending=Ending.FAILED, usage=used)
    return *end(run.id, failed, now), carry(run.session, run.labels, now)
