"""What the end of the work makes of its task."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.core.agents import Ending
from openfang.core.bodies import receipt_beside
from openfang.core.errors import (
    AuditUnavailable,
    CallCancelled,
    CallFailed,
    CallRefused,
    Conflict,
    GuardTripped,
    OpenFangError,
)
from openfang.core.tasks import Moved, TaskState
from openfang.pipeline.tasks.parts import agent_writes, answer_in, artifacts_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.core.results import Result
    from openfang.core.tasks import Task

_log = logging.getLogger("openfang.tasks")
INTERRUPTED: Final = (
    "The node stopped before this task had ended, and its agent cannot go on with it."
)
_BROKEN: Final = "Something broke while the agent was at work."
_NO_REASON: Final = "The agent gave no reason."
# Nothing is wrong with what was asked: at another time it would have been done.
_BUSY: Final = (GuardTripped, AuditUnavailable)


async def outcome(work: Callable[[], Awaitable[Result]]) -> Moved:
    """Do the work to its end, whatever that is."""
    try:
        return moved_by(await work())
    except OpenFangError as error:
        return _moved_after(error)
    except Exception:  # noqa: BLE001 - other people's code: one that breaks is one task that fails
        _log.exception("The work on a task broke")
        return ended(TaskState.FAILED, _BROKEN)


def moved_by(result: Result) -> Moved:
    """Read what an agent answered."""
    if result.is_error:
        state = TaskState.REJECTED if _is_rejection(result) else TaskState.FAILED
        status, said = agent_writes(result.text or _NO_REASON), ()
    else:
        answer = answer_in(result)
        state, status, said = TaskState.COMPLETED, None, () if answer is None else (answer,)
    return Moved(
        state=state,
        status=status,
        said=said,
        artifacts=artifacts_in(result),
        labels=result.labels,
        metadata=receipt_beside(result.call_id, result.receipt),
    )


def _is_rejection(result: Result) -> bool:
    match result.structured:
        case {"ending": Ending.REJECTED.value}:
            return True
        case _:
            return False


def _moved_after(error: OpenFangError) -> Moved:
    state = TaskState.FAILED
    if isinstance(error, CallCancelled):
        state = TaskState.CANCELED
    elif isinstance(error, CallRefused) and not isinstance(error, _BUSY):
        state = TaskState.REJECTED
    moved = ended(state, _reason(error))
    if not isinstance(error, CallFailed):
        return moved
    return replace(moved, metadata=receipt_beside(error.call_id, error.receipt))


def _reason(error: OpenFangError) -> str:
    if not error.way_out:
        return error.message
    stop = "" if error.message.endswith((".", "!", "?")) else "."
    return f"{error.message}{stop} Way out: {error.way_out}."


def ended(state: TaskState, reason: str) -> Moved:
    """End a task for a reason."""
    return Moved(state=state, status=agent_writes(reason))


def left_with(result: Result | None) -> Moved:
    """How a task ends on which nobody goes on, and what its agent had answered, if it had."""
    return ended(TaskState.FAILED, INTERRUPTED) if result is None else moved_by(result)


def expired(task: Task, before: int, seconds: float) -> Moved:
    """How a task ends to which nothing has happened since then, if that is still so."""
    if task.changed_at > before:
        raise Conflict(f"The task {task.id} has changed meanwhile.")
    hours = f"{seconds / 3600:g} h"
    return ended(TaskState.FAILED, f"The task expired: nothing happened to it for {hours}.")
