"""What is wrong with a file: where, at which key, and what was expected instead."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any, cast

from openfang.config.show import HIDDEN, without_credentials
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from openfang.config.lines import Key
    from openfang.config.models import Place
    from openfang.config.schema import Shape

SHOWN_CHARACTERS = 60
_MISSING = object()
_UNTAGGED = frozenset({"union_tag_invalid", "union_tag_not_found"})
_BEFORE_HOST = re.compile(r"(?<=[A-Za-z0-9])(://).*@", re.DOTALL)
_BARE = re.compile(r"\A[A-Za-z0-9_-]+\Z")
_BOUNDS = {
    "greater_than": " greater than {gt:g}",
    "greater_than_equal": " of at least {ge:g}",
    "less_than_equal": " of at most {le:g}",
    "finite_number": " that is finite",
    "string_pattern_mismatch": " that matches {pattern}",
    "string_too_short": " of at least {min_length} characters",
    "string_too_long": " of at most {max_length} characters",
    "too_short": " of at least {min_length} entries",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, as `config.toml:12: key: expected ..., got ...`."""

    place: Place
    key: str
    message: str
    column: int = 0

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        key = f"{self.key}: " if self.key else ""
        return f"{self.place}{column}: {key}{self.message}"

    def as_json(self) -> dict[str, Any]:
        """Say the same to a program."""
        place = self.place
        return {
            "file": place.file,
            "line": place.line,
            "key": self.key,
            "message": self.message,
        }


def explain(error: ErrorDetails, data: Mapping[str, Any], root: Shape) -> tuple[Key, str]:
    """Find the key that a validation error speaks of, and say what was expected there."""
    path, at, parent = _walk(error["loc"], data, root)
    if error["type"] in _UNTAGGED:
        path, at = (*path, "type"), at.child("type", None)
    if error["type"] == "extra_forbidden":
        return path, _unknown(str(path[-1]), parent.keys(_value(data, path[:-1])))
    if error["loc"][-1] == "[key]":
        what = error["msg"] if error["type"] == "expected" else f"a name{_bound(error)}"
        return path, f"expected {what}, got {shown(path[-1])}"
    value = _value(data, path)
    return path, f"expected {_what(error, value, at)}, got {shown(value, secret=at.secret)}" + (
        _nearest(value, at.literals)
    )


def spell(path: Key, data: Mapping[str, Any], naming: str = "name") -> str:
    """Write a key as people do: entries of a list by their name where they have one."""
    words: list[str] = []
    for depth, part in enumerate(path):
        name = _value(data, (*path[: depth + 1], naming)) if isinstance(part, int) else part
        if isinstance(name, str) and name:
            words.append(name if _BARE.match(name) else json.dumps(name, ensure_ascii=False))
        else:
            words[-1] += f"[{part}]"
    return ".".join(words)


def shown(value: object, *, secret: bool = False) -> str:
    """Show a value in a message: short, and never a secret one."""
    if value is _MISSING:
        return "nothing"
    if secret:
        return "a string" if isinstance(value, str) else "something else"
    match value:
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case bool() | None | str():
            text = _hidden(value) if isinstance(value, str) else value
            return _short(json.dumps(text, ensure_ascii=False))
        case _:
            return _short(str(value))


def _hidden(text: str) -> str:
    """Hide credentials. What is wrong is often the password: all before the last @ may be of it."""
    return without_credentials(_BEFORE_HOST.sub(rf"\1{HIDDEN}@", text))


def _walk(
    loc: tuple[str | int, ...], data: Mapping[str, Any], root: Shape
) -> tuple[Key, Shape, Shape]:
    """Follow an error's location; where a form was chosen by its tag, the tag is no key."""
    path: Key = ()
    at = parent = root
    parts = iter(loc)
    for part in parts:
        if part == "[key]":
            continue
        value = _value(data, path)
        parent, at, path = at, at.child(part, value), (*path, part)
        if at.tagged:
            next(parts, None)
    return path, at, parent


def _value(data: object, path: Key) -> object:
    for part in path:
        match data:
            case dict():
                data = cast("dict[str | int, object]", data).get(part, _MISSING)
            case list() | tuple() if isinstance(part, int) and part < len(
                cast("list[object]", data)
            ):
                data = cast("list[object]", data)[part]
            case _:
                return _MISSING
    return data


def _what(error: ErrorDetails, value: object, at: Shape) -> str:
    match error["type"]:
        case "expected":
            return error["msg"]
        case "string_pattern_mismatch" if at.meaning:
            return at.meaning
        case _:
            return at.kind + _bound(error, value)


def _bound(error: ErrorDetails, value: object = None) -> str:
    # Secrets are wrapped texts, whose length the validator reports as that of a list.
    kind = "string_too_short" if isinstance(value, str) else "too_short"
    bound = _BOUNDS.get(kind if error["type"] == "too_short" else error["type"], "")
    return bound.format(**error.get("ctx", {}))


def _unknown(key: str, known: list[str]) -> str:
    if near := difflib.get_close_matches(key, known, n=1):
        return f"unknown key; did you mean {near[0]}?"
    return f"unknown key; expected one of {', '.join(known)}"


def _nearest(value: object, literals: list[str]) -> str:
    near = difflib.get_close_matches(value, literals, n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]}?" if near else ""


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
