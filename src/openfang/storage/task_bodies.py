"""What a task holds, as JSON: its history, its status, its artifacts and what it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.labels import Labels
from openfang.core.tasks import Given, Role, Task, TaskArtifact, TaskMessage, TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEEPEST: Final = 100
_MOST_BITS: Final = 63


def readable(text: str) -> str:
    """The text, with a mark for what is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def written(task: Task) -> str:
    """Write what a task holds as JSON; what JSON has no word for is replaced, never left out."""
    body: dict[str, Any] = {"history": [_message_body(one) for one in task.history]}
    if task.status is not None:
        body["status"] = _message_body(task.status)
    if task.artifacts:
        body["artifacts"] = [_artifact_body(one) for one in task.artifacts]
    if task.metadata:
        body["metadata"] = dict(task.metadata)
    if task.form:
        body["form"] = dict(task.form)
    if task.given is not None:
        body["given"] = {"content": dict(task.given.content), "labels": int(task.given.labels)}
    try:
        return orjson.dumps(body).decode()
    except TypeError:
        return orjson.dumps(_mended(body, 0)).decode()


def _mended(value: object, depth: int) -> object:
    if depth > _DEEPEST:
        return {"unreadable": "nested too deeply"}
    match value:
        case bool() | None | float():
            return value
        case int() if value.bit_length() <= _MOST_BITS:
            return value
        case dict():
            items = cast("dict[object, object]", value).items()
            return {readable(str(name)): _mended(inner, depth + 1) for name, inner in items}
        case list() | tuple():
            return [_mended(inner, depth + 1) for inner in cast("list[object]", value)]
        case _:
            return readable(str(value))


def _message_body(message: TaskMessage) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": message.id,
        "role": message.role.value,
        "parts": [dict(part) for part in message.parts],
    }
    if message.metadata:
        body["metadata"] = dict(message.metadata)
    if message.extensions:
        body["extensions"] = list(message.extensions)
    if message.references:
        body["references"] = list(message.references)
    return body


def _artifact_body(artifact: TaskArtifact) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": artifact.id,
        "name": artifact.name,
        "parts": [dict(part) for part in artifact.parts],
    }
    if artifact.description:
        body["description"] = artifact.description
    if artifact.metadata:
        body["metadata"] = dict(artifact.metadata)
    return body


def _message(body: Mapping[str, Any]) -> TaskMessage:
    return TaskMessage(
        id=body["id"],
        role=Role(body["role"]),
        parts=tuple(body["parts"]),
        metadata=body.get("metadata", {}),
        extensions=tuple(body.get("extensions", ())),
        references=tuple(body.get("references", ())),
    )


def _artifact(body: Mapping[str, Any]) -> TaskArtifact:
    return TaskArtifact(
        id=body["id"],
        name=body["name"],
        parts=tuple(body["parts"]),
        description=body.get("description", ""),
        metadata=body.get("metadata", {}),
    )


def task_of(row: tuple[Any, ...]) -> Task:
    """Read a task from its row."""
    body = orjson.loads(row[8])
    status, given = body.get("status"), body.get("given")
    return Task(
        id=row[0],
        agent=row[1],
        caller=row[2],
        context=row[3],
        session=row[4],
        state=TaskState(row[5]),
        version=row[6],
        labels=Labels(row[7]),
        status=None if status is None else _message(status),
        history=tuple(_message(one) for one in body["history"]),
        artifacts=tuple(_artifact(one) for one in body.get("artifacts", ())),
        metadata=body.get("metadata", {}),
        form=body.get("form", {}),
        given=None if given is None else Given(given["content"], Labels(given["labels"])),
        created_at=row[9],
        changed_at=row[10],
    )
