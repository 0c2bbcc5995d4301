"""What may come with a message to a peer: text, data and files, each of its one shape. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT: Final = {"type": "string"}
# A peer would decode anything else to other bytes, or not at all.
_BASE64: Final = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def _shape(kind: str, required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    known = {"type": {"const": kind}, **properties}
    return {"type": "object", "properties": known, "required": ["type", required]}


PART: Final[Mapping[str, Any]] = {
    "anyOf": [
        _shape("text", "text", text=_TEXT),
        _shape("data", "data", data={}),
        _shape("file", "data", data={**_TEXT, "pattern": _BASE64}, name=_TEXT, mime_type=_TEXT),
        _shape("file", "uri", uri=_TEXT, name=_TEXT, mime_type=_TEXT),
    ]
}
"""The schema of one."""
