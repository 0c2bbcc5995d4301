"""What somebody is told of a task: the task as it was after one change, kept in a few numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.core.tasks import TaskState
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One change. History and artifacts only grow, so it is enough to know how long they were.

    `status` is whether something was said with the state.
    """

    push: str
    n: int
    state: TaskState
    at: int
    history: int
    artifacts: int
    status: bool

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Notice:
        """Read what was kept."""
        return cls(
            push=body["push"],
            n=body["n"],
            state=TaskState(body["state"]),
            at=body["at"],
            history=body["history"],
            artifacts=body["artifacts"],
            status=body["status"],
        )


def notice_body(task: Task) -> Mapping[str, Any]:
    """Keep how a task is now; to whom that is told, and as the how manieth, stands beside it."""
    return {
        "state": task.state.value,
        "at": task.changed_at,
        "history": len(task.history),
        "artifacts": len(task.artifacts),
        "status": task.status is not None,
    }


def as_of(task: Task, notice: Notice) -> Task:
    """The task as it was then: what was said with a state is in the history once that is left."""
    if task.version == notice.n:
        return task
    status = task.history[notice.history] if notice.status else None
    return replace(
        task,
        state=notice.state,
        status=status,
        history=task.history[: notice.history],
        artifacts=task.artifacts[: notice.artifacts],
        version=notice.n,
        changed_at=notice.at,
    )
