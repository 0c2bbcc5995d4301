"""Messages as each version writes them, and what comes back, told in one way for all versions."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.peers.a2a.peer import PeerError

RESPONSE: Final = "response"
_ERRORS: Final = {
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
}
_REASON: Final = re.compile(r'"reason": ?"([A-Z_]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message to an agent: text first, then a file and data if there are any."""

    text: str
    task: str = ""
    context: str = ""
    wait: bool = True
    id: str = ""
    file: bytes = b""
    data: Mapping[str, Any] | None = None
    push: Mapping[str, Any] | None = None

    def params(self, version: str) -> dict[str, Any]:
        """Write it as a request of this version."""
        return _current(self) if version == "1.0" else _older(self)


def _named(said: Said) -> dict[str, str]:
    names = {"taskId": said.task, "contextId": said.context}
    return {
        "messageId": said.id or new_id("msg"),
        **{name: value for name, value in names.items() if value},
    }


def _current(said: Said) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": said.text}]
    if said.file:
        raw = base64.b64encode(said.file).decode()
        parts.append({"raw": raw, "filename": "f.bin", "mediaType": "image/x-dot"})
    if said.data is not None:
        parts.append({"data": said.data})
    push = {"taskPushNotificationConfig": said.push} if said.push else {}
    return {
        "message": {**_named(said), "role": "ROLE_USER", "parts": parts},
        "configuration": {"returnImmediately": not said.wait, **push},
    }


def _older(said: Said) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"kind": "text", "text": said.text}]
    if said.file:
        content = base64.b64encode(said.file).decode()
        file = {"bytes": content, "name": "f.bin", "mimeType": "image/x-dot"}
        parts.append({"kind": "file", "file": file})
    if said.data is not None:
        parts.append({"kind": "data", "data": said.data})
    push = {"pushNotificationConfig": said.push} if said.push else {}
    return {
        "message": {**_named(said), "kind": "message", "role": "user", "parts": parts},
        "configuration": {"blocking": said.wait, **push},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as the client has it. `said` is what came with its state."""

    id: str
    context: str
    state: str
    said: str
    history: list[tuple[str, str]]
    artifacts: dict[str, Any]

    @property
    def answer(self) -> str:
        return self.artifacts[RESPONSE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A change of state."""

    task: str
    state: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of something that was made."""

    task: str
    name: str
    content: Any
    append: bool
    last: bool


Event: TypeAlias = Task | Status | Piece


def task_of(body: Mapping[str, Any]) -> Task:
    """Read a task of either version; it may stand in an envelope."""
    body = body.get("task", body)
    status = body["status"]
    return Task(
        id=body["id"],
        context=body["contextId"],
        state=state_of(status["state"]),
        said=text_of(status.get("message")),
        history=[(_word(one["role"]), text_of(one)) for one in body.get("history", ())],
        artifacts={one["name"]: _content(one["parts"]) for one in body.get("artifacts", ())},
    )


def event_of(body: Mapping[str, Any]) -> Event:
    """Read an event of either version."""
    kind = body.get("kind")
    if "task" in body or kind == "task":
        return task_of(body)
    if "statusUpdate" in body or kind == "status-update":
        update = body.get("statusUpdate", body)
        status = update["status"]
        state, said = state_of(status["state"]), text_of(status.get("message"))
        return Status(task=update["taskId"], state=state, said=said)
    update = body.get("artifactUpdate", body)
    return Piece(
        task=update["taskId"],
        name=update["artifact"]["name"],
        content=_content(update["artifact"]["parts"]),
        append=update.get("append", False),
        last=update.get("lastChunk", False),
    )


def made(events: Iterable[Event]) -> dict[str, Any]:
    """Put the pieces together."""
    found: dict[str, Any] = {}
    for event in events:
        if isinstance(event, Task):
            found = dict(event.artifacts)
        elif isinstance(event, Piece):
            before = found.get(event.name) if event.append else None
            found[event.name] = event.content if before is None else before + event.content
    return found


def states(events: Iterable[Event]) -> list[str]:
    """The states in the order in which they were told, each once."""
    told = [event.state for event in events if not isinstance(event, Piece)]
    return [state for n, state in enumerate(told) if n == 0 or told[n - 1] != state]


def state_of(word: str) -> str:
    """`TASK_STATE_INPUT_REQUIRED` is `input-required`."""
    return word.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _word(role: str) -> str:
    return role.removeprefix("ROLE_").lower()


def text_of(message: Mapping[str, Any] | None) -> str:
    """All text of a message, if there is one."""
    parts = message["parts"] if message else ()
    return "\n".join(part["text"] for part in parts if "text" in part)


def _content(parts: Iterable[Mapping[str, Any]]) -> Any:
    """What is in the parts: bytes or data if it is that, otherwise all text."""
    found = list(parts)
    match found:
        case [{"raw": str(raw)}] | [{"file": {"bytes": str(raw)}}]:
            return base64.b64decode(raw)
        case [{"data": data}]:
            return data
        case _:
            return "".join(part["text"] for part in found)


def reason_of(error: PeerError) -> str:
    """The error as the protocol names it, if the client lets us know."""
    if found := _REASON.search(str(error)):
        return found[1]
    if error.code in _ERRORS:
        return _ERRORS[error.code]
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", error.name.removesuffix("Error")).upper()
    return f"HTTP_{error.code}" if name == "A2_A_CLIENT_H_T_T_P" else name
