"""The first dialect of A2A: its words for tasks, messages and parts, written and read. No I/O.

What is written is what OpenFang always wrote. Reading takes the spellings of its neighbours too.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.ids import new_id
from openfang.core.tasks import Role, TaskArtifact, TaskMessage, TaskState
from openfang.core.values import dataclass
from openfang.protocols.a2a.extensions import signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import Task

VERSION: Final = "0.1.0"
_BYTES: Final = "application/octet-stream"
_JSON: Final = "application/json"
_SHOWN: Final = 60
_WORDS: Final[Mapping[TaskState, str]] = {
    TaskState.SUBMITTED: "submitted",
    TaskState.WORKING: "working",
    TaskState.INPUT_REQUIRED: "inputRequired",
    TaskState.AUTH_REQUIRED: "inputRequired",
    TaskState.COMPLETED: "completed",
    TaskState.CANCELED: "cancelled",
    TaskState.FAILED: "failed",
    TaskState.REJECTED: "failed",
}
_STATES: Final[Mapping[str, TaskState]] = {
    **{state.value.replace("-", ""): state for state in TaskState},
    "cancelled": TaskState.CANCELED,
}


class Unreadable(ValueError):  # noqa: N818 - it reads as what it is
    """It is not what this dialect says. The text says where, and what would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedTask:
    """A task of somebody else, as it was read. `status` is what was said with the state, if any."""

    id: str
    context: str
    state: TaskState
    status: TaskMessage | None = None
    messages: tuple[TaskMessage, ...] = ()
    artifacts: tuple[TaskArtifact, ...] = ()


def write_task(task: Task) -> dict[str, Any]:
    """Write a task: what was said with its state is its last message."""
    said = task.history if task.status is None else (*task.history, task.status)
    return {
        "id": task.id,
        "sessionId": task.context,
        "status": write_state(task.state),
        "messages": [write_message(message) for message in said],
        "artifacts": [_write_artifact(artifact) for artifact in task.artifacts],
        **signed(task),
    }


def write_state(state: TaskState) -> str:
    """Write a state; of the newer ones the nearest."""
    return _WORDS[state]


def write_message(message: TaskMessage) -> dict[str, Any]:
    """Write something that was said."""
    return {"role": message.role.value, "parts": _write_parts(message.parts)}


def _write_artifact(artifact: TaskArtifact) -> dict[str, Any]:
    return {"name": artifact.name, "parts": _write_parts(artifact.parts)}


def _write_parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [_write_part(part) for part in parts]


def _write_part(part: Part) -> dict[str, Any]:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "file"}:
            written = {
                "type": "file",
                "name": part.get("name") or "",
                "mime_type": part.get("mime_type") or _BYTES,
                "data": part.get("data") or "",
            }
            return {**written, "uri": part["uri"]} if part.get("uri") else written
        case {"type": "data", "data": data}:
            return {"type": "data", "mime_type": part.get("mime_type") or _JSON, "data": data}
        case _:
            return {"type": "data", "mime_type": _JSON, "data": dict(part)}


def read_task(value: object) -> SeedTask:
    """Read a task as a peer wrote it."""
    fields = _object(value, "The task")
    state, said = _status(fields.get("status"))
    spoken = _list(fields.get("messages") or fields.get("history"), "messages")
    made = _list(fields.get("artifacts"), "artifacts")
    return SeedTask(
        id=_text(fields, "id"),
        context=_optional(fields, "sessionId", "session_id", "contextId"),
        state=state,
        status=said,
        messages=tuple(_read_said(message) for message in spoken),
        artifacts=tuple(_read_artifact(artifact, at) for at, artifact in enumerate(made)),
    )


def read_state(word: object) -> TaskState:
    """Read a state in any spelling: `inputRequired`, `InputRequired`, `input-required`."""
    plain = word.replace("-", "").replace("_", "").lower() if isinstance(word, str) else ""
    state = _STATES.get(plain.removeprefix("taskstate"))
    if state is None:
        raise Unreadable(f"The status {_shown(word)} is none of {', '.join(_WORDS.values())}.")
    return state


def _status(value: object) -> tuple[TaskState, TaskMessage | None]:
    if not isinstance(value, dict):
        return read_state(value), None
    fields = cast("dict[str, Any]", value)
    said = fields.get("message")
    return read_state(fields.get("state")), None if said is None else _read_said(said)


def read_message(value: object) -> TaskMessage:
    """Read a message to an agent; one without an id gets one."""
    message = _read_said(value)
    if not message.parts:
        raise Unreadable("The message has no parts.")
    return message


def _read_said(value: object) -> TaskMessage:
    fields = _object(value, "The message")
    parts = _list(fields.get("parts"), "parts")
    return TaskMessage(
        id=_optional(fields, "messageId", "message_id") or new_id("message"),
        role=_role(fields.get("role")),
        parts=tuple(_read_part(part, at) for at, part in enumerate(parts)),
        metadata=_object(fields.get("metadata") or {}, "The message's metadata"),
    )


def _role(word: object) -> Role:
    plain = word.lower().removeprefix("role_") if isinstance(word, str) else ""
    try:
        return Role(plain)
    except ValueError:
        raise Unreadable(f"The role {_shown(word)} is neither user nor agent.") from None


def _read_artifact(value: object, at: int) -> TaskArtifact:
    fields = _object(value, f"The artifact {at}")
    parts = _list(fields.get("parts"), "parts")
    name = _optional(fields, "name")
    return TaskArtifact(
        id=_optional(fields, "artifactId") or name or f"artifact-{at}",
        name=name,
        description=_optional(fields, "description"),
        parts=tuple(_read_part(part, number) for number, part in enumerate(parts)),
    )


def _read_part(value: object, at: int) -> Part:
    where = f"The part {at}"
    fields = _object(value, where)
    kind = fields.get("type", fields.get("kind"))
    match kind:
        case "text":
            part: dict[str, Any] = {"type": "text", "text": _text(fields, "text", where)}
        case "file":
            part = _read_file(fields, where)
        case "data" if "data" in fields:
            part = {"type": "data", "data": fields["data"]}
        case "data":
            raise Unreadable(f"{where} has no data.")
        case _:
            raise Unreadable(f"{where} has the type {_shown(kind)}, not text, file or data.")
    if mime := _optional(fields, "mime_type", "mimeType"):
        part["mime_type"] = mime
    if metadata := fields.get("metadata"):
        part["metadata"] = _object(metadata, f"{where}'s metadata")
    return part


def _read_file(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read a file: its content beside its name, or in `file` as the later dialects have it."""
    if "file" in fields:
        fields = _object(fields["file"], f"{where}'s file")
    part: dict[str, Any] = {"type": "file"}
    if name := _optional(fields, "name"):
        part["name"] = name
    if mime := _optional(fields, "mime_type", "mimeType"):
        part["mime_type"] = mime
    content, uri = _optional(fields, "data", "bytes"), _optional(fields, "uri")
    if uri and not content:
        return {**part, "uri": uri}
    if not content and "data" not in fields and "bytes" not in fields:
        raise Unreadable(f"{where} is a file with neither data nor uri.")
    _check_base64(content, where)
    return {**part, "data": content}


def _check_base64(content: str, where: str) -> None:
    try:
        binascii.a2b_base64(content, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable(f"{where} has data that is not base 64: {error}.") from None


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is no object.")
    return cast("dict[str, Any]", value)


def _list(value: object, name: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unreadable(f"`{name}` is no list.")
    return cast("list[object]", value)


def _text(fields: Mapping[str, Any], name: str, where: str = "It") -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unreadable(f"{where} has no `{name}` that is a string.")
    return value


def _optional(fields: Mapping[str, Any], *names: str) -> str:
    """Read a string under one of its spellings; nothing and null are the same."""
    for name in names:
        value = fields.get(name)
        if value is not None:
            return _text(fields, name)
    return ""


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]
