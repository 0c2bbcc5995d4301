"""A tool's JSON Schema as the fields of a form, and a form as arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "arg."
MORE: Final = "more"
_LONG: Final = ("content", "text", "body", "message", "code", "command", "query", "prompt")


def fields(schema: Mapping[str, Any], given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Make a field of each property; what a form has no field for is written as JSON."""
    required = set(_words(schema.get("required")))
    return [
        _field(name, _object(one), given, required=name in required)
        for name, one in _object(schema.get("properties")).items()
    ]


def _object(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _words(found: object) -> list[str]:
    return [str(one) for one in cast("list[object]", found)] if isinstance(found, list) else []


def _field(
    name: str, schema: Mapping[str, Any], given: Mapping[str, str], *, required: bool
) -> dict[str, Any]:
    usual = schema.get("default")
    return {
        "name": name,
        "required": required,
        "kind": _kind(name, schema),
        "choices": _words(schema.get("enum")),
        "description": str(schema.get("description", "")),
        "usual": "" if usual is None else json.dumps(usual, ensure_ascii=False),
        "value": given.get(PREFIX + name, ""),
    }


def _kind(name: str, schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return "choice"
    match schema.get("type"):
        case "string":
            return "long" if name in _LONG else "text"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "truth"
        case _:
            return "json"


def arguments(schema: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """Read the arguments that a form has; an empty field is not passed on."""
    found = dict[str, Any]()
    for one in fields(schema, form):
        text = one["value"]
        if text or (one["required"] and one["kind"] in {"text", "long"}):
            found[one["name"]] = _read(one, text)
    if more := form.get(MORE, "").strip():
        rest = _json(MORE, more)
        if not isinstance(rest, dict):
            raise _wrong(MORE, "an object", more)
        found |= rest
    return found


def _read(one: Mapping[str, Any], text: str) -> Any:  # noqa: ANN401 - any JSON
    match one["kind"]:
        case "text" | "long":
            return text.replace("\r\n", "\n")
        case "choice":
            return _chosen(text)
        case _:
            return _json(one["name"], text)


def _chosen(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Read a choice: it may be a number, and is a text otherwise."""
    try:
        number: Any = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) and not isinstance(number, bool) else text


def _json(name: str, text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError:
        raise _wrong(name, "JSON", text) from None


def _wrong(name: str, wanted: str, text: str) -> Rejected:
    return Rejected(
        f"{name} must be {wanted}: {text[:60]!r} is not.",
        status=422,
        rule="arguments",
        way_out='write text in quotes, lists as [1, 2], objects as {"a": 1}',
    )
