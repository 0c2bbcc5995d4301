"""Tasks as JSON, and back: how each is, the states it went through, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openfang.core.labels import Labels
from openfang.core.tasks import (
    Moved,
    Role,
    Spoken,
    Task,
    TaskArtifact,
    TaskMessage,
    TaskPage,
    TaskState,
    TaskUpdate,
)
from openfang.core.values import dataclass
from openfang.core.wire import moment, read_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.tasks import Seen

SEEN: Final = ("task", "moved", "spoken")
"""How the events are named in which a task is told."""


def task_body(task: Task) -> dict[str, Any]:
    """A task, whole."""
    return {
        "id": task.id,
        "agent": task.agent,
        "caller": task.caller,
        "context": task.context,
        "session": task.session,
        "state": task.state.value,
        "status": task.status and _message_body(task.status),
        "history": [_message_body(message) for message in task.history],
        "artifacts": [_artifact_body(artifact) for artifact in task.artifacts],
        "metadata": dict(task.metadata),
        "labels": task.labels.names,
        "version": task.version,
        "created_at": moment(task.created_at),
        "changed_at": moment(task.changed_at),
    }


def read_task(body: Mapping[str, Any]) -> Task:
    """Read a task."""
    return Task(
        id=body["id"],
        agent=body["agent"],
        caller=body["caller"],
        context=body["context"],
        session=body["session"],
        state=TaskState(body["state"]),
        status=_read_status(body),
        history=tuple(map(_read_message, body["history"])),
        artifacts=tuple(map(_read_artifact, body["artifacts"])),
        metadata=body["metadata"],
        labels=Labels.of(body["labels"]),
        version=body["version"],
        created_at=read_moment(body["created_at"]) or 0,
        changed_at=read_moment(body["changed_at"]) or 0,
    )


def tasks_body(page: TaskPage) -> dict[str, Any]:
    """A page of tasks."""
    bodies = [task_body(task) for task in page.tasks]
    return {"tasks": bodies, "total": page.total, "after": page.after or None}


def read_tasks(body: Mapping[str, Any]) -> TaskPage:
    """Read a page of tasks."""
    found = [read_task(one) for one in body["tasks"]]
    return TaskPage(tasks=found, total=body["total"], after=body["after"] or "")


def states_body(states: Sequence[tuple[int, int, TaskState]]) -> list[dict[str, Any]]:
    """The states that a task went through."""
    return [{"n": n, "at": moment(at), "state": state.value} for n, at, state in states]


def read_states(bodies: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, TaskState]]:
    """Read them."""
    return [(one["n"], read_moment(one["at"]) or 0, TaskState(one["state"])) for one in bodies]


def seen_name(seen: Seen) -> str:
    """How an event is named in which it is told."""
    return "task" if isinstance(seen, Task) else type(seen.what).__name__.lower()


def seen_body(seen: Seen) -> dict[str, Any]:
    """What is told of a task: how it is, how it moved, or what is being said."""
    if isinstance(seen, Task):
        return task_body(seen)
    match seen.what:
        case Spoken(text=text, first=first):
            return {"text": text, "first": first}
        case Moved() as moved:
            return {"n": seen.n, "at": moment(seen.at), **_moved_body(moved)}


@dataclass(slots=True)
class Following:
    """Reads what is told of one task, each after the one before; `task` is how it is by then."""

    task: Task | None = None

    def read(self, kind: str, body: Mapping[str, Any]) -> Seen:
        """Read what is told next; the first is the task itself."""
        if kind == "task":
            seen: Seen = read_task(body)
        elif self.task is None or kind not in SEEN:
            raise LookupError(kind)
        else:
            seen = _read_update(kind, body, self.task)
        self.task = seen if isinstance(seen, Task) else seen.task
        return seen


def _read_update(kind: str, body: Mapping[str, Any], before: Task) -> TaskUpdate:
    if kind == "spoken":
        return TaskUpdate(task=before, what=Spoken(**body), at=before.changed_at)
    at, moved = read_moment(body["at"]) or 0, _read_moved(body)
    task = replace(before.moved(moved, at), version=body["n"])
    return TaskUpdate(task=task, what=moved, at=at, n=body["n"])


def _moved_body(moved: Moved) -> dict[str, Any]:
    return {
        "state": moved.state.value,
        "status": moved.status and _message_body(moved.status),
        "said": [_message_body(message) for message in moved.said],
        "artifacts": [_artifact_body(artifact) for artifact in moved.artifacts],
        "labels": moved.labels.names,
        "metadata": dict(moved.metadata),
    }


def _read_moved(body: Mapping[str, Any]) -> Moved:
    return Moved(
        state=TaskState(body["state"]),
        status=_read_status(body),
        said=tuple(map(_read_message, body["said"])),
        artifacts=tuple(map(_read_artifact, body["artifacts"])),
        labels=Labels.of(body["labels"]),
        metadata=body["metadata"],
    )


def _read_status(body: Mapping[str, Any]) -> TaskMessage | None:
    return None if body["status"] is None else _read_message(body["status"])


def _message_body(message: TaskMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role.value,
        "parts": [dict(part) for part in message.parts],
        "metadata": dict(message.metadata),
        "extensions": list(message.extensions),
        "references": list(message.references),
    }


def _read_message(body: Mapping[str, Any]) -> TaskMessage:
    return TaskMessage(
        id=body["id"],
        role=Role(body["role"]),
        parts=tuple(body["parts"]),
        metadata=body["metadata"],
        extensions=tuple(body["extensions"]),
        references=tuple(body["references"]),
    )


def _artifact_body(artifact: TaskArtifact) -> dict[str, Any]:
    return {
        "id": artifact.id,
        "name": artifact.name,
        "description": artifact.description,
        "parts": [dict(part) for part in artifact.parts],
        "metadata": dict(artifact.metadata),
    }


def _read_artifact(body: Mapping[str, Any]) -> TaskArtifact:
    return TaskArtifact(
        id=body["id"],
        name=body["name"],
        description=body["description"],
        parts=tuple(body["parts"]),
        metadata=body["metadata"],
    )
