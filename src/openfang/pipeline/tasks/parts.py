"""What a call brought back, as the messages and artifacts of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import orjson

from openfang.core.artifacts import KEY, artifacts_of
from openfang.core.ids import new_id
from openfang.core.results import text_part
from openfang.core.tasks import Role, TaskArtifact, TaskMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openfang.core.results import Part, Result

_JSON: Final = "application/json"
_OURS: Final = "artifact:"


def agent_says(*parts: Part) -> TaskMessage:
    """Make a message of the agent's."""
    return TaskMessage(id=new_id("message"), role=Role.AGENT, parts=parts)


def agent_writes(text: str) -> TaskMessage:
    """Make one that is a text."""
    return agent_says(text_part(text))


def answer_in(result: Result) -> TaskMessage | None:
    """Find what was answered, beside what was made on the way."""
    parts = tuple(_parts(part for part in result.content if not _is_made(part)))
    return agent_says(*parts) if parts else None


def artifacts_in(result: Result) -> tuple[TaskArtifact, ...]:
    """Find what was made on the way."""
    return tuple(
        TaskArtifact(id=new_id("artifact"), name=made["name"], parts=tuple(_parts(made["parts"])))
        for made in artifacts_of(result.content)
    )


def _is_made(part: Part) -> bool:
    meta = part.get("_meta")
    return isinstance(meta, dict) and KEY in meta


def _parts(content: Iterable[Part]) -> Iterable[Part]:
    return (task_part(part) for part in content if part != text_part(""))


def task_part(part: Part) -> Part:
    """Write a part of a result in the words of tasks; what has none is data."""
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return {"type": "file", "name": kind, **_mime(part), "data": data}
        case {"type": "resource_link", "uri": str(uri)}:
            return {"type": "file", "name": _name(part, uri), **_mime(part), "uri": uri}
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data)} as held}:
            return {"type": "file", "name": _name(held, uri), **_mime(held), "data": data}
        case {"type": "resource", "resource": {"text": str(text)} as held}:
            return _written(text, held)
        case _:
            return {"type": "data", "data": dict(part)}


def _written(text: str, held: Mapping[str, Any]) -> Part:
    """Text of some type; what an agent made as data is data again."""
    mime = _mime(held)
    if mime.get("mime_type") == _JSON and str(held.get("uri", "")).startswith(_OURS):
        try:
            return {"type": "data", "data": orjson.loads(text)}
        except ValueError:
            pass
    return {"type": "text", "text": text, **mime}


def _mime(held: Mapping[str, Any]) -> dict[str, Any]:
    mime = held.get("mimeType")
    return {"mime_type": mime} if isinstance(mime, str) else {}


def _name(held: Mapping[str, Any], uri: str) -> str:
    name = held.get("name")
    if isinstance(name, str) and name:
        return name
    return unquote(uri.removeprefix(_OURS).rstrip("/").rpartition("/")[2]) or uri
