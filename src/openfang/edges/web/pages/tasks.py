"""Tasks: work that goes on, over A2A or given here; what it is at, and a way to end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError
from openfang.core.tasks import TaskFilter, TaskState
from openfang.core.wire import moment
from openfang.edges.web.asking import Go, Page
from openfang.edges.web.words import segment

if TYPE_CHECKING:
    from openfang.core.tasks import Task, TaskMessage
    from openfang.edges.web.asking import Ask

KINDS: Final = {
    TaskState.SUBMITTED: ("run", "Submitted"),
    TaskState.WORKING: ("run", "Working"),
    TaskState.INPUT_REQUIRED: ("ask", "Needs an answer"),
    TaskState.AUTH_REQUIRED: ("ask", "Needs a sign-in"),
    TaskState.COMPLETED: ("allow", "Completed"),
    TaskState.CANCELED: ("none", "Cancelled"),
    TaskState.FAILED: ("failed", "Failed"),
    TaskState.REJECTED: ("deny", "Denied"),
}
_LONGEST: Final = 100


async def show(ask: Ask) -> Page:
    """List tasks, the last changed first."""
    word = ask.query.get("state", "")
    state = next((one for one in TaskState if one.value == word), None)
    agent = ask.query.get("agent", "")[:_LONGEST]
    after = ask.query.get("after", "")[:_LONGEST]
    found = await ask.session.tasks(TaskFilter(state=state, agent=agent, after=after))
    return Page(
        template="tasks.html",
        title="Tasks",
        section="tasks",
        values={
            "tasks": [_shown(one) for one in found.tasks],
            "total": found.total,
            "after": found.after,
            "state": word,
            "agent": agent,
            "states": [(one.value, KINDS[one]) for one in TaskState],
            "everybody": ask.may(Role.AUDITOR),
        },
    )


async def one(ask: Ask) -> Page | Go:
    """Show one task, or end it."""
    error: OpenFangError | None = None
    if ask.came.method == "POST":
        try:
            await ask.session.cancel_task(ask.names["id"])
            return Go(where=f"/tasks/{segment(ask.names['id'])}")
        except OpenFangError as refused:
            error = refused
    task, states = await ask.session.task(ask.names["id"])
    return Page(
        template="task.html",
        title="Task",
        section="tasks",
        crumbs=(("Tasks", "/tasks"), (task.id, "")),
        values={
            "task": _shown(task),
            "states": [(number, moment(at), KINDS[state]) for number, at, state in states],
            "history": [_said(one) for one in task.history],
            "status": _said(task.status) if task.status else None,
            "artifacts": task.artifacts,
            "may_cancel": not task.state.final
            and (ask.caller.admin or task.caller == ask.caller.id),
            "error": error,
        },
    )


def _shown(task: Task) -> dict[str, Any]:
    kind, word = KINDS[task.state]
    return {
        "id": task.id,
        "agent": task.agent,
        "caller": task.caller,
        "context": task.context,
        "kind": kind,
        "word": word,
        "final": task.state.final,
        "labels": task.labels.names,
        "created_at": moment(task.created_at),
        "changed_at": moment(task.changed_at),
    }


def _said(message: TaskMessage) -> dict[str, Any]:
    return {"role": message.role.value, "parts": [dict(part) for part in message.parts]}
