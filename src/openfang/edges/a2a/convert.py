"""Tasks, messages and what came out of them: ours to A2A 1.0 and back."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.tasks import Role, Task, TaskMessage, TaskState
from openfang.edges.a2a.sdk import MessageToDict, ParseDict, ParseError, errors, pb
from openfang.edges.a2a.telling import Changed
from openfang.edges.a2a.views import last_of, results_of
from openfang.protocols.a2a.extensions import beside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message as Proto

    from openfang.core.results import Part
    from openfang.core.tasks import TaskArtifact
    from openfang.edges.a2a.telling import Event

_STATES: Final = {
    TaskState.SUBMITTED: pb.TASK_STATE_SUBMITTED,
    TaskState.WORKING: pb.TASK_STATE_WORKING,
    TaskState.INPUT_REQUIRED: pb.TASK_STATE_INPUT_REQUIRED,
    TaskState.AUTH_REQUIRED: pb.TASK_STATE_AUTH_REQUIRED,
    TaskState.COMPLETED: pb.TASK_STATE_COMPLETED,
    TaskState.CANCELED: pb.TASK_STATE_CANCELED,
    TaskState.FAILED: pb.TASK_STATE_FAILED,
    TaskState.REJECTED: pb.TASK_STATE_REJECTED,
}
_READ_STATES: Final = {written: state for state, written in _STATES.items()}
_ROLES: Final = {Role.USER: pb.ROLE_USER, Role.AGENT: pb.ROLE_AGENT}
_READ_ROLES: Final = {written: role for role, written in _ROLES.items()}
_EXACT: Final = 2**53
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1000


def read_message(message: pb.Message) -> TaskMessage:
    """Read a message; one that says not who speaks, or has a part of no kind, is none."""
    role = _READ_ROLES.get(message.role)
    if role is None:
        raise errors.InvalidParamsError("message.role is not there, or none that is known.")
    return TaskMessage(
        id=message.message_id,
        role=role,
        parts=tuple([read_part(part) for part in message.parts]),
        metadata=read_metadata(message),
        extensions=tuple(message.extensions),
        references=tuple(message.reference_task_ids),
    )


def write_message(message: TaskMessage, task: Task) -> pb.Message:
    """Write what was said in a task."""
    written = pb.Message(
        message_id=message.id,
        context_id=task.context,
        task_id=task.id,
        role=_ROLES[message.role],
        parts=[write_part(part) for part in message.parts],
        extensions=message.extensions,
        reference_task_ids=message.references,
    )
    _write_metadata(message.metadata, written)
    return written


def read_part(part: pb.Part) -> Part:
    """Read one part, with what stands beside its content."""
    found = _content(part)
    if part.filename:
        found["name"] = part.filename
    if part.media_type:
        found["mime_type"] = part.media_type
    if metadata := read_metadata(part):
        found["metadata"] = metadata
    return found


def _content(part: pb.Part) -> dict[str, Any]:
    match part.WhichOneof("content"):
        case "text":
            return {"type": "text", "text": part.text}
        case "raw":
            return {"type": "file", "name": "", "data": base64.b64encode(part.raw).decode()}
        case "url":
            return {"type": "file", "name": "", "uri": part.url}
        case "data":
            return {"type": "data", "data": _plain(part.data)}
        case _:
            raise errors.InvalidParamsError(
                "A part of the message has none of text, raw, url and data."
            )


def write_part(part: Part) -> pb.Part:
    """Write one part; what is of no kind that the protocol has is written as data."""
    written = _written(part)
    if isinstance(name := part.get("name"), str):
        written.filename = name
    if isinstance(mime := part.get("mime_type"), str):
        written.media_type = mime
    if isinstance(metadata := part.get("metadata"), dict):
        _write_metadata(cast("dict[str, Any]", metadata), written)
    return written


def _written(part: Part) -> pb.Part:
    match part:
        case {"type": "text", "text": str(text)}:
            return pb.Part(text=text)
        case {"type": "file", "data": str(data)}:
            return _file(data)
        case {"type": "file", "uri": str(uri)}:
            return pb.Part(url=uri)
        case {"type": "data", "data": data}:
            return _data(data)
        case _:
            return _data(dict(part))


def _file(data: str) -> pb.Part:
    try:
        return pb.Part(raw=base64.b64decode(data, validate=True))
    except binascii.Error:
        return pb.Part(text=data)


def _data(value: Any) -> pb.Part:  # noqa: ANN401 - any JSON
    written = pb.Part()
    try:
        ParseDict(value, written.data)
    except ParseError:
        return pb.Part(text=json.dumps(value, ensure_ascii=False))
    return written


def read_state(state: int) -> TaskState | None:
    """Read the state of a task, if it is one."""
    return _READ_STATES.get(cast("pb.TaskState", state))


def write_task(task: Task, *, history: int | None = None, with_artifacts: bool = True) -> pb.Task:
    """Write a task as it is, with the last `history` things that were said in it, or with all."""
    written = pb.Task(
        id=task.id,
        context_id=task.context,
        status=_write_status(task),
        history=[write_message(message, task) for message in last_of(task.history, history)],
        artifacts=[write_artifact(made) for made in results_of(task)] if with_artifacts else (),
    )
    _write_metadata(task.metadata, written)
    return written


def _write_status(task: Task) -> pb.TaskStatus:
    """Write how far it has got, and what was said with that."""
    written = pb.TaskStatus(
        state=_STATES[task.state],
        message=write_message(task.status, task) if task.status is not None else None,
    )
    # The protocol's clock has milliseconds.
    milliseconds = task.changed_at // _MILLISECOND
    written.timestamp.seconds = milliseconds // _SECOND
    written.timestamp.nanos = milliseconds % _SECOND * _MILLISECOND
    return written


def write_event(
    event: Event, history: int | None = None
) -> pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent:
    """Write an event of a stream."""
    if isinstance(event, Task):
        return write_task(event, history=history)
    task = event.task
    if isinstance(event, Changed):
        turned = pb.TaskStatusUpdateEvent(
            task_id=task.id, context_id=task.context, status=_write_status(task)
        )
        _write_metadata(beside(task).get("metadata", {}), turned)
        return turned
    return pb.TaskArtifactUpdateEvent(
        task_id=task.id,
        context_id=task.context,
        artifact=write_artifact(event.artifact),
        append=event.append,
        last_chunk=event.last,
    )


def write_artifact(made: TaskArtifact) -> pb.Artifact:
    """Write something that came out of a task."""
    written = pb.Artifact(
        artifact_id=made.id,
        name=made.name,
        description=made.description,
        parts=[write_part(part) for part in made.parts],
    )
    _write_metadata(made.metadata, written)
    return written


def read_metadata(message: pb.Message | pb.Part | pb.SendMessageRequest) -> dict[str, Any]:
    """Read what stands beside it."""
    return _plain(message.metadata) if message.HasField("metadata") else {}


def _write_metadata(
    metadata: Mapping[str, Any],
    message: pb.Message | pb.Part | pb.Artifact | pb.Task | pb.TaskStatusUpdateEvent,
) -> None:
    if metadata:
        ParseDict(dict(metadata), message.metadata)


def _plain(value: Proto) -> Any:  # noqa: ANN401 - any JSON
    return _whole(MessageToDict(value))


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Make integers of those that were written as such: the library has one kind of number."""
    match value:
        case float() if value.is_integer() and abs(value) <= _EXACT:
            return int(value)
        case dict():
            members = cast("dict[str, Any]", value)
            return {key: _whole(member) for key, member in members.items()}
        case list():
            return [_whole(member) for member in cast("list[Any]", value)]
        case _:
            return value
