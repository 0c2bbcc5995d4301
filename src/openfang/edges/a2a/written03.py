"""Tasks as the JSON of A2A 0.3, made of that of 1.0: no value in a part or beside it is looked at.

It is what the library makes of what `convert` writes; numbers stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.edges.a2a.written import task_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.tasks import Task

Json: TypeAlias = "dict[str, Any]"


def task_json03(task: Task) -> Json:
    """Write a task as it is, with all that was said in it."""
    written = task_json(task)
    status: Json = written["status"]
    said = {"message": _message(status["message"])} if "message" in status else {}
    return {
        **written,
        "kind": "task",
        "status": {**status, **said, "state": task.state.value},
        **_each(written, "artifacts", _artifact),
        **_each(written, "history", _message),
    }


def _each(written: Json, name: str, change: Callable[[Json], Json]) -> Json:
    return {name: [change(one) for one in written[name]]} if name in written else {}


def _message(message: Json) -> Json:
    return {
        "messageId": "",
        **message,
        "kind": "message",
        "role": "user" if message["role"] == "ROLE_USER" else "agent",
        **_parts(message),
    }


def _artifact(made: Json) -> Json:
    return {**made, **_parts(made)}


def _parts(holder: Json) -> Json:
    """Change the parts; unlike in 1.0 they are said also where there are none."""
    return {"parts": [_part(part) for part in holder.get("parts", ())]}


def _part(part: Json) -> Json:
    beside = {"metadata": part["metadata"]} if "metadata" in part else {}
    match part:
        case {"text": text}:
            return {"kind": "text", "text": text, **beside}
        case {"data": dict()}:
            return {"kind": "data", "data": part["data"], **beside}
        case {"data": data}:
            # In 0.3 data are an object: the library knows by this mark what to take out of it.
            marked = {**part.get("metadata", {}), "data_part_compat": True}
            return {"kind": "data", "data": {"value": data}, "metadata": marked}
        case _:
            return {"kind": "file", "file": _file(part), **beside}


def _file(part: Json) -> Json:
    names = (("raw", "bytes"), ("url", "uri"), ("mediaType", "mimeType"), ("filename", "name"))
    return {older: part[name] for name, older in names if name in part}
