"""Whose a task or a run on a queue is: nobody's, then that of the process that took it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from openfang.storage.processes import Roll

Statement = tuple[str, "Sequence[Any]"]
QUEUE: Final = "queue"
"""The process of what is on a queue; behind a colon, who has taken it from there."""

ON_QUEUES: Final = (
    "SELECT (SELECT COUNT(*) FROM tasks WHERE final = 0 AND process LIKE ?) + "
    "(SELECT COUNT(*) FROM agent_runs WHERE state = 'running' AND task = '' AND process LIKE ?)"
)
"""How many tasks and runs are on queues, or were taken from one and have not ended."""


def own(process: str) -> tuple[str, str]:
    """Say how a process is named in what is its own, and in what it took from a queue."""
    return process, f"{QUEUE}:{process}"


def is_queued(process: str) -> bool:
    """Whether a task of this process is on a queue: if it is gone, another one takes it."""
    return process.partition(":")[0] == QUEUE


async def left_by(roll: Roll, names: Collection[str]) -> frozenset[str]:
    """Name those that will do nothing any more; what waits on a queue is still to be taken."""
    holders = {name: name.removeprefix(QUEUE).removeprefix(":") for name in names}
    dead = await roll.gone({holder for holder in holders.values() if holder})
    return frozenset(name for name, holder in holders.items() if holder in dead)


def taken(task_id: str, by: str) -> Statement:
    """Keep who has taken a task from its queue: whoever had it before has it no longer."""
    sql = "UPDATE tasks SET process = ? WHERE id = ? AND final = 0"
    return sql, (own(by)[1], task_id)
