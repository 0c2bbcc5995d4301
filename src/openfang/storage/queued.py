"""Whose a task on a queue is: nobody's, and then that of the process that took it. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

Statement = tuple[str, "Sequence[Any]"]
QUEUE: Final = "queue"
"""The process of a task that is on a queue; behind a colon, who has taken it from there."""


def own(process: str) -> tuple[str, str]:
    """Say how a process is named in tasks of its own, and in those that it took from a queue."""
    return process, f"{QUEUE}:{process}"


def is_queued(process: str) -> bool:
    """Whether a task of this process is on a queue: if it is gone, another one takes it."""
    return process.partition(":")[0] == QUEUE


def taken(task_id: str, by: str) -> Statement:
    """Keep who has taken a task from its queue: whoever had it before has it no longer."""
    sql = "UPDATE tasks SET process = ? WHERE id = ? AND final = 0"
    return sql, (own(by)[1], task_id)
