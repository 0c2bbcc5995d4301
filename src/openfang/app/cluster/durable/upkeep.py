"""What is done beside the works: what nodes that are gone had goes back, what has ended goes."""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.storage.members import DEAD_NS
from openfang.storage.queued import QUEUE

if TYPE_CHECKING:
    from collections.abc import Collection

    from openfang.app.agents.running import Agents
    from openfang.app.cluster.durable.flows import Flows
    from openfang.app.parts import Parts

_LOOK_SECONDS: Final = 3.0
_LOOKS_BETWEEN: Final = 10
_KEPT_MS: Final = 3_600_000
_AT_ONCE: Final = 1000
_log = logging.getLogger("openfang.durable")
_TAKEN: Final = (
    "SELECT DISTINCT executor_id FROM dbos.workflow_status AS flow "
    "WHERE status = 'PENDING' AND executor_id IS NOT NULL"
)
_UNKNOWN: Final = (
    f"{_TAKEN} AND NOT EXISTS (SELECT 1 FROM members WHERE left_at IS NULL "  # noqa: S608 - constants
    "AND members.node || '/' || members.process = flow.executor_id"
)
# Who is silent for long may be slow to be heard: that it is dead is found out by its beats. Whoever
# saw to that writes that it left.
_LEFT: Final = f"{_UNKNOWN})"
_SILENT: Final = f"{_UNKNOWN} AND beat_at > clock_ns() - {DEAD_NS})"
_OPEN: Final = "('ENQUEUED', 'PENDING', 'DELAYED')"
_STRANDED: Final = (
    "SELECT left_over.id FROM {} AS left_over LEFT JOIN dbos.workflow_status AS flow "  # noqa: S608 - constants
    "ON flow.workflow_uuid = left_over.id WHERE {} AND left_over.process LIKE ? "
    f"AND (flow.status IS NULL OR flow.status NOT IN {_OPEN})"
)
_STRANDED_TASKS: Final = _STRANDED.format("tasks", "final = 0")
_STRANDED_RUNS: Final = _STRANDED.format("agent_runs", "state = 'running'")
_OVER: Final = (
    "SELECT workflow_uuid FROM dbos.workflow_status WHERE completed_at < ? "
    "ORDER BY completed_at LIMIT ?"
)


@dataclass(slots=True)
class Upkeep:
    """Looks now and then, and hears of nodes that are dead."""

    parts: Parts
    flows: Flows
    agents: Agents

    async def run(self) -> None:
        """Look until cancelled."""
        for look in count():
            try:
                await self._take_back({name for (name,) in await self._read(_LEFT)})
                if look % _LOOKS_BETWEEN == 0:
                    await self.tidy()
            except OpenFangError as error:
                _log.warning("The queues of tasks cannot be looked at: %s", error.message)
            await anyio.sleep(_LOOK_SECONDS)

    async def take_over(self, node: str) -> None:
        """Put what a dead node had taken back on its queues; it may serve again by now."""
        silent = {name for (name,) in await self._read(_SILENT)}
        await self._take_back({name for name in silent if name.rpartition("/")[0] == node})

    async def _take_back(self, gone: Collection[str]) -> None:
        """Twice is as good as once: what somebody has taken since is not theirs any more."""
        if gone:
            count = await to_thread.run_sync(self.flows.recover, gone)
            _log.warning("%d tasks and runs of %s are taken over", count, ", ".join(sorted(gone)))

    async def tidy(self) -> None:
        """End what is there without its workflow, and forget workflows that are long over.

        A task or a run ends before its workflow: if it has not, nobody goes on with it.
        """
        for (task,) in await self._read(_STRANDED_TASKS, f"{QUEUE}%"):
            await self.parts.tasks.give_up(task)
        for (run,) in await self._read(_STRANDED_RUNS, f"{QUEUE}%"):
            await self.agents.resuming.give_up(run)
        before = self.parts.clock.time_ns() // 1_000_000 - _KEPT_MS
        while over := [name for (name,) in await self._read(_OVER, before, _AT_ONCE)]:
            await to_thread.run_sync(self.flows.forget, over)

    async def _read(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        return await self.parts.database.read(sql, parameters)
