"""The JSON of A2A 1.0 and our own nouns, both ways. No I/O.

The library brings 0.3 to this form. What a peer writes is taken as far as it makes sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.ids import new_id
from openfang.core.tasks import Role, TaskArtifact, TaskMessage, TaskState
from openfang.sources.a2a.following import PeerTask, Piece, Turned
from openfang.sources.a2a.shapes import object_in, objects_in, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import Sent
    from openfang.sources.a2a.following import Event

_STATES: Final = {f"TASK_STATE_{state.name}": state for state in TaskState}
_BYTES: Final = "application/octet-stream"


def event_of(said: Mapping[str, Any]) -> Event | None:
    """Read one answer, or one event of a stream; None is one that says nothing."""
    if "task" in said:
        return task_of(object_in(said["task"]))
    if "message" in said:
        return _answered(object_in(said["message"]))
    if "statusUpdate" in said:
        return _turned(object_in(said["statusUpdate"]))
    if "artifactUpdate" in said:
        return _piece(object_in(said["artifactUpdate"]))
    return None


def task_of(task: Mapping[str, Any]) -> PeerTask:
    """Read a whole task."""
    status = object_in(task.get("status"))
    return PeerTask(
        id=text_in(task.get("id")),
        context=text_in(task.get("contextId")),
        state=_state(status.get("state")),
        status=_message_or_none(status.get("message")),
        history=tuple(map(_message, objects_in(task.get("history")))),
        artifacts=tuple(map(_artifact, objects_in(task.get("artifacts")))),
        metadata=object_in(task.get("metadata")),
    )


def _answered(message: Mapping[str, Any]) -> PeerTask:
    """Take a message that came in the place of a task for one that has ended with it."""
    said = _message(message)
    context = text_in(message.get("contextId"))
    return PeerTask(
        context=context, state=TaskState.COMPLETED, history=(said,), metadata=said.metadata
    )


def _turned(update: Mapping[str, Any]) -> Turned:
    status = object_in(update.get("status"))
    return Turned(
        id=text_in(update.get("taskId")),
        context=text_in(update.get("contextId")),
        state=_state(status.get("state")),
        status=_message_or_none(status.get("message")),
        metadata=object_in(update.get("metadata")),
    )


def _piece(update: Mapping[str, Any]) -> Piece:
    return Piece(
        id=text_in(update.get("taskId")),
        context=text_in(update.get("contextId")),
        artifact=_artifact(object_in(update.get("artifact"))),
        append=update.get("append") is True,
    )


def _artifact(artifact: Mapping[str, Any]) -> TaskArtifact:
    id_ = text_in(artifact.get("artifactId"))
    return TaskArtifact(
        id=id_,
        name=text_in(artifact.get("name")) or id_ or "artifact",
        parts=_parts(artifact.get("parts")),
        description=text_in(artifact.get("description")),
        metadata=object_in(artifact.get("metadata")),
    )


def _message_or_none(message: object) -> TaskMessage | None:
    fields = object_in(message)
    return _message(fields) if fields else None


def _message(message: Mapping[str, Any]) -> TaskMessage:
    return TaskMessage(
        id=text_in(message.get("messageId")) or new_id("message"),
        role=Role.USER if message.get("role") == "ROLE_USER" else Role.AGENT,
        parts=_parts(message.get("parts")),
        metadata=object_in(message.get("metadata")),
    )


def _parts(parts: object) -> tuple[Part, ...]:
    return tuple(part for one in objects_in(parts) if (part := _part(one)) is not None)


def _part(part: Mapping[str, Any]) -> Part | None:
    kind, more = part.get("mediaType"), {"metadata": part["metadata"]} if "metadata" in part else {}
    name = text_in(part.get("filename")) or "file"
    file = {"type": "file", "name": name, "mime_type": kind or _BYTES, **more}
    match part:
        case {"text": str(text)}:
            plain = {} if not kind or kind == "text/plain" else {"mime_type": kind}
            return {"type": "text", "text": text, **plain, **more}
        case {"raw": str(raw)}:
            return {**file, "data": raw}
        case {"url": str(url)}:
            return {**file, "uri": url}
        case {"data": data}:
            return {"type": "data", "data": data, **more}
        case _:
            return None


def request_of(sent: Sent) -> dict[str, Any]:
    """Write the request that sends a message."""
    message: dict[str, Any] = {
        "messageId": sent.message.id,
        "role": f"ROLE_{sent.message.role.name}",
        "parts": [_written(part) for part in sent.message.parts],
    }
    if sent.context:
        message["contextId"] = sent.context
    if sent.task:
        message["taskId"] = sent.task
    if sent.message.metadata:
        message["metadata"] = dict(sent.message.metadata)
    request = {"message": message}
    return {**request, "metadata": dict(sent.metadata)} if sent.metadata else request


def _written(part: Part) -> dict[str, Any]:
    kind = part.get("mime_type")
    media = {"mediaType": kind} if isinstance(kind, str) else {}
    more = {**media, **({"metadata": part["metadata"]} if "metadata" in part else {})}
    match part:
        case {"type": "file", "uri": str(uri)}:
            return {"url": uri, "filename": str(part.get("name") or ""), **more}
        case {"type": "file", "data": str(data)}:
            return {"raw": data, "filename": str(part.get("name") or ""), **more}
        case {"type": "data", "data": data}:
            return {"data": data, **more}
        case _:
            return {"text": str(part.get("text", "")), **more}


def _state(word: object) -> TaskState:
    """Take a word that nobody knows for work that goes on."""
    return _STATES.get(str(word), TaskState.WORKING)
