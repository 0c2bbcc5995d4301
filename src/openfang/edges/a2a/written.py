"""Tasks as the JSON of A2A 1.0, written at once: on the way of every message.

It is what the library makes of what `convert` writes, in a tenth of the time; numbers stay as they
are.
"""

from __future__ import annotations

import binascii
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.tasks import Task
from openfang.edges.a2a.telling import Changed
from openfang.edges.a2a.views import last_of, results_of
from openfang.protocols.a2a.extensions import beside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import TaskArtifact, TaskMessage, TaskPage
    from openfang.edges.a2a.telling import Event, Told

Json: TypeAlias = "dict[str, Any]"
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1000
_PLAIN: Final = 2


def task_json(task: Task, history: int | None = None, *, with_artifacts: bool = True) -> Json:
    """Write a task as it is, with the last `history` things that were said in it, or with all."""
    made = [_artifact(one) for one in results_of(task)] if with_artifacts else []
    return {
        "id": task.id,
        "contextId": task.context,
        "status": _status(task),
        **_some("artifacts", made),
        **_some("history", [_message(said, task) for said in last_of(task.history, history)]),
        **_some("metadata", task.metadata),
    }


def page_json(page: TaskPage, limit: int, history: int | None, *, with_artifacts: bool) -> Json:
    """Write a page of at most `limit` tasks; all that is said of it, also where it is empty."""
    return {
        "tasks": [task_json(one, history, with_artifacts=with_artifacts) for one in page.tasks],
        "nextPageToken": page.after,
        "pageSize": limit,
        "totalSize": page.total,
    }


def event_json(event: Event, history: int | None = None) -> Json:
    """Write an event of a stream."""
    if isinstance(event, Task):
        return {"task": task_json(event, history)}
    ids = {"taskId": event.task.id, "contextId": event.task.context}
    if isinstance(event, Changed):
        return {"statusUpdate": {**ids, "status": _status(event.task), **beside(event.task)}}
    return {"artifactUpdate": {**ids, **_piece(event)}}


def _piece(told: Told) -> Json:
    return {
        "artifact": _artifact(told.artifact),
        **_some("append", told.append),
        **_some("lastChunk", told.last),
    }


def _status(task: Task) -> Json:
    said = {} if task.status is None else {"message": _message(task.status, task)}
    return {"state": f"TASK_STATE_{task.state.name}", **said, "timestamp": _moment(task.changed_at)}


def _moment(at: int) -> str:
    """Write a moment: the protocol's clock has milliseconds."""
    milliseconds = at // _MILLISECOND
    return f"{_second(milliseconds // _SECOND)}.{milliseconds % _SECOND:03d}Z"


@lru_cache(maxsize=16)
def _second(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"


def _message(message: TaskMessage, task: Task) -> Json:
    return {
        **_some("messageId", message.id),
        "contextId": task.context,
        "taskId": task.id,
        "role": f"ROLE_{message.role.name}",
        **_some("parts", [_part(part) for part in message.parts]),
        **_some("metadata", message.metadata),
        **_some("extensions", list(message.extensions)),
        **_some("referenceTaskIds", list(message.references)),
    }


def _artifact(made: TaskArtifact) -> Json:
    return {
        "artifactId": made.id,
        **_some("name", made.name),
        **_some("description", made.description),
        **_some("parts", [_part(part) for part in made.parts]),
        **_some("metadata", made.metadata),
    }


def _part(part: Part) -> Json:
    if len(part) == _PLAIN and part.get("type") == "text" and "text" in part:
        return {"text": part["text"]}
    return {
        **_content(part),
        **_some("filename", _text(part, "name")),
        **_some("mediaType", _text(part, "mime_type")),
        **_some("metadata", _members(part)),
    }


def _content(part: Part) -> Json:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"text": text}
        case {"type": "file", "data": str(data)}:
            return {"raw" if _is_base64(data) else "text": data}
        case {"type": "file", "uri": str(uri)}:
            return {"url": uri}
        case {"type": "data", "data": data}:
            return {"data": data}
        case _:
            return {"data": dict(part)}


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    return True


def _text(part: Part, name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


def _members(part: Part) -> Mapping[str, Any]:
    value = part.get("metadata")
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - any JSON


def _some(name: str, value: object) -> Json:
    """A member, unless it is empty: what is not there is not said."""
    return {name: value} if value else {}
