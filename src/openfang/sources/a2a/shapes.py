"""Takes of others' JSON what has the shape that it should have, and nothing else. No I/O."""

from __future__ import annotations

from typing import Any, cast


def text_in(value: object, longest: int = 8_192) -> str:
    """Give a text, cut; what is none is empty."""
    return value[:longest] if isinstance(value, str) else ""


def object_in(value: object) -> dict[str, Any]:
    """Give an object; what is none has no members."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """Give the objects of a list."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
