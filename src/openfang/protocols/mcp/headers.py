"""The HTTP headers that mirror a modern request, and the arguments that a tool wants mirrored.

A value that a header cannot hold travels as `=?base64?...?=`. A tool marks an argument by
`x-mcp-header` in its schema; a mark in a place or form that the protocol forbids makes the whole
tool invalid (`InvalidMark`), and a client over HTTP leaves that tool out.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM: Final = "Mcp-Param-"
SESSION: Final = "Mcp-Session-Id"
LAST_EVENT: Final = "Last-Event-ID"
MARK: Final = "x-mcp-header"

# Which argument of which method `Mcp-Name` mirrors.
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_PLAIN = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_LARGEST: Final = 2**53 - 1
_MOST: Final = 32

Path: TypeAlias = tuple[str, ...]
Marks: TypeAlias = Mapping[str, Path]


class InvalidMark(ValueError):  # noqa: N818 - it reads as what it is
    """A tool's schema marks an argument for a header in a way that the protocol forbids."""


def encode_value(text: str) -> str:
    """Write a text so that a header can hold it."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{b64encode(text.encode(errors='surrogatepass')).decode()}?="


def decode_value(value: str) -> str:
    """Read a header's value back; ValueError when it claims to be base64 and is not.

    There is one way to write a text: two values that differ never mean the same.
    """
    match = _ENCODED.fullmatch(value)
    if match is None:
        return value
    try:
        text = b64decode(match[1], validate=True)
        if b64encode(text).decode() != match[1]:
            raise ValueError(f"{value!r} is base64 in a form of its own")
        return text.decode()
    except (binascii.Error, UnicodeError) as error:
        raise ValueError(f"{value!r} is not base64 of UTF-8") from error


def standard_headers(version: str, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
    """Give the headers that every modern request carries."""
    headers = {VERSION: version, METHOD: method}
    named = NAMED.get(method)
    if named is not None and params is not None and isinstance(params.get(named), str):
        headers[NAME] = encode_value(params[named])
    return headers


def find_marks(schema: object) -> Marks:
    """Find the arguments to mirror: header name to path. Raises `InvalidMark`."""
    marks: dict[str, Path] = {}
    for path, mark, declared in _marked(schema):
        name = _checked(mark, path, declared)
        if any(name.lower() == other.lower() for other in marks):
            raise InvalidMark(f"two arguments are marked {name!r}")
        marks[name] = path
        if len(marks) > _MOST:
            raise InvalidMark(f"more than {_MOST} arguments are marked")
    return marks


def param_headers(marks: Marks, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Mirror the marked arguments of one call; what is absent, null or no plain value has none."""
    found = {f"{PARAM}{name}": mirrored(look_up(arguments, path)) for name, path in marks.items()}
    return {name: encode_value(text) for name, text in found.items() if text is not None}


def mirrored(value: object) -> str | None:
    """Write an argument as its header has it; None if it has none."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() if abs(value) <= _LARGEST:
            return str(value)
        case float() if value.is_integer() and abs(value) <= _LARGEST:
            return str(int(value))
        case str():
            return value
        case _:
            return None


def look_up(arguments: Mapping[str, Any], path: Path) -> object:
    """Find a marked argument; None if it is absent."""
    value: object = arguments
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(step)
    return value


def _marked(schema: object) -> Iterator[tuple[Path, object, object]]:
    """Walk the schema; a path of None is a place that plain `properties` do not lead to."""
    todo: list[tuple[object, Path | None]] = [(schema, ())]
    while todo:
        node, path = todo.pop()
        if isinstance(node, list):
            todo += [(item, None) for item in cast("list[object]", node)]
        elif isinstance(node, dict):
            fields = cast("dict[str, object]", node)
            if MARK in fields:
                yield _reachable(path), fields[MARK], fields.get("type")
            todo += _below(fields, path)


def _below(fields: dict[str, object], path: Path | None) -> Iterator[tuple[object, Path | None]]:
    """Give what a schema holds. Names of properties are names, never keywords."""
    for key, value in fields.items():
        if key in _NAMES and isinstance(value, dict):
            way = path if key == "properties" else None
            for name, inner in cast("dict[str, object]", value).items():
                yield inner, None if way is None else (*way, name)
        elif key not in _DATA:
            yield value, None


# Under these stand schemas by names, which may be those of keywords.
_NAMES: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
# Under these stand examples and values, in which nothing is a schema.
_DATA: Final = frozenset({"const", "default", "enum", "examples", MARK})


def _reachable(path: Path | None) -> Path:
    if not path:
        raise InvalidMark("a mark stands where no plain argument is")
    return path


def _checked(mark: object, path: Path, declared: object) -> str:
    argument = ".".join(path)
    if not isinstance(mark, str) or not _TOKEN.fullmatch(mark):
        raise InvalidMark(f"{mark!r} of {argument} is not the name of a header")
    if declared not in ("string", "integer", "boolean"):
        raise InvalidMark(f"{argument} is marked, and of type {declared!r}")
    return mark
