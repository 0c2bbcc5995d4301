"""What a tool looked like when it was first seen. One that changes waits until it is accepted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from openfang.core.ids import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tools import Tool

PINNED_KINDS = frozenset({Kind.MCP, Kind.EXTENSION, Kind.A2A})
_MOST_LINES = 2_000
_MOST_CHARACTERS = 20_000
_CUT = "\n[the rest of the difference is not shown]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A definition, as it was first seen or last accepted. `first_seen` is in nanoseconds."""

    tool_id: str
    digest: str
    definition: str
    first_seen: int
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """Never met before: remember it."""

    pin: Pin


@dataclass(frozen=True, slots=True)
class Unchanged:
    """As it was."""

    pin: Pin


@dataclass(frozen=True, slots=True)
class Changed:
    """Not what was accepted: hold it back. `diff` is for the person who decides."""

    pin: Pin
    digest: str
    diff: str


Pinned: TypeAlias = FirstSeen | Unchanged | Changed


def definition(tool: Tool) -> str:
    """Write down everything a model or a person reads of a tool, in one way only."""
    return _canonical(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        }
    )


def check(pin: Pin | None, tool: Tool, *, now: int) -> Pinned:
    """Compare a tool with its pin."""
    text = definition(tool)
    found = _digest(text)
    if pin is None:
        return FirstSeen(Pin(tool_id=tool.id, digest=found, definition=text, first_seen=now))
    if pin.accepted and pin.digest == found:
        return Unchanged(pin)
    return Changed(pin, found, difference(pin.definition, text))


def accept(pin: Pin, tool: Tool) -> Pin:
    """Take the tool as it is now; when it was first seen stays."""
    text = definition(tool)
    return Pin(tool_id=tool.id, digest=_digest(text), definition=text, first_seen=pin.first_seen)


def difference(before: str, after: str) -> str:
    """Show two definitions as a unified diff, in ASCII, so that nothing in it is invisible."""
    lines = unified_diff(_lines(before), _lines(after), "accepted", "now", lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + _CUT


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)


def _lines(text: str) -> list[str]:
    """Lay a definition out for reading: indented, its prose line by line."""
    value = cast("dict[str, Any]", json.loads(text))
    prose = value.get("description")
    if isinstance(prose, str):
        value["description"] = prose.splitlines(keepends=True)
    return json.dumps(value, sort_keys=True, indent=2).splitlines()[:_MOST_LINES]
