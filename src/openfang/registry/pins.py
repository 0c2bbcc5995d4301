"""What somebody said of itself when it was first seen. What changes waits until it is accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from difflib import unified_diff
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.registry.differences import changes
from openfang.safety.definitions import ABOUT, Finding, serious

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.tools import Tool
    from openfang.registry.differences import Change

PINNED_KINDS = frozenset({Kind.MCP, Kind.EXTENSION, Kind.A2A})
_MOST_LINES = 2_000
_MOST_CHARACTERS = 20_000
_CUT = "\n[the rest of the difference is not shown]"
_CHANGED: Final = "Its definition changed after it was first seen"
_SUSPECT: Final = "Its definition speaks to the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A definition, as it was first seen or last accepted. `first_seen` is in nanoseconds.

    One that nobody `accepted` was held back at first sight, for its `findings`.
    """

    id: str
    digest: str
    definition: str
    first_seen: int
    accepted: bool = True
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Said:
    """What is said of one thing now. Of what does not `last` only a suspicion is remembered.

    `former` is the digest that it had while less of it was pinned.
    """

    id: str
    definition: str
    lasts: bool = True
    former: str = ""

    @cached_property
    def digest(self) -> str:
        """What it is known again by."""
        return _digest(self.definition)

    @cached_property
    def value(self) -> Mapping[str, Any]:
        """The definition as JSON."""
        return cast("dict[str, Any]", json.loads(self.definition))


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """Not met before, and offered: remember it, and what was found in it."""

    pin: Pin


@dataclass(frozen=True, slots=True)
class Unchanged:
    """As it was."""

    pin: Pin


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Not what a person accepted: hold it back. All but `pin` is for the person who decides."""

    pin: Pin
    said: Said
    findings: tuple[Finding, ...] = ()
    fresh: bool = False

    @property
    def changed(self) -> bool:
        """Whether it was something else before."""
        return self.pin.digest != self.said.digest

    @property
    def digest(self) -> str:
        """What would be accepted."""
        return self.said.digest

    @property
    def reason(self) -> str:
        """Why it waits."""
        return _CHANGED if self.changed else _SUSPECT

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is not as it was."""
        if not self.changed:
            return ()
        return changes(json.loads(self.pin.definition), self.said.value)

    @property
    def diff(self) -> str:
        """The same for programs that show a unified diff."""
        return difference(self.pin.definition, self.said.definition) if self.changed else ""

    def body(self) -> dict[str, Any]:
        """All that a person needs to decide, as JSON."""
        return {
            "id": self.pin.id,
            "reason": self.reason,
            "digest": self.digest,
            "accepted_digest": self.pin.digest if self.changed else None,
            "changes": [change.body() for change in self.changes],
            "findings": finding_bodies(self.findings),
            "diff": self.diff,
        }


Pinned: TypeAlias = FirstSeen | Unchanged | Held
Look: TypeAlias = "Callable[[Said], tuple[Finding, ...]]"


def finding_bodies(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """Findings as JSON, each with what it means."""
    return [{**one.body(), "meaning": ABOUT[one.code]} for one in findings]


def said_of(tool: Tool) -> Said:
    """Write down everything a model or a person reads of a tool, in one way only."""
    plain = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    if tool.card is None:
        return Said(tool.id, canonical(plain))
    whole = canonical({**plain, "card": tool.card})
    return Said(tool.id, whole, former=_digest(canonical(plain)))


def check(pin: Pin | None, said: Said, *, now: int, look: Look, hold: bool = True) -> Pinned:
    """Compare what is said with its pin; what is new is looked at, and held if it is `hold`."""
    if pin is not None and pin.digest == said.digest:
        if pin.accepted or not hold:
            return Unchanged(pin)
        return Held(pin=pin, said=said, findings=pin.findings)
    if pin is None or not pin.accepted or not said.lasts:
        return _first(said, look(said), now=now, hold=hold)
    if pin.digest == said.former:
        return FirstSeen(replace(pin, digest=said.digest, definition=said.definition))
    return Held(pin=pin, said=said, findings=look(said))


def _first(said: Said, findings: tuple[Finding, ...], *, now: int, hold: bool) -> FirstSeen | Held:
    held = serious(findings)
    pin = Pin(
        id=said.id,
        digest=said.digest,
        definition=said.definition,
        first_seen=now,
        accepted=not held,
        findings=findings,
    )
    if held and hold:
        return Held(pin=pin, said=said, findings=findings, fresh=True)
    return FirstSeen(pin)


def accept(held: Held) -> Pin:
    """Take it as it is now; when it was first seen stays."""
    return replace(
        held.pin,
        digest=held.said.digest,
        definition=held.said.definition,
        findings=held.findings,
        accepted=True,
    )


def difference(before: str, after: str) -> str:
    """Show two definitions as a unified diff, in ASCII, so that nothing in it is invisible."""
    lines = unified_diff(_lines(before), _lines(after), "accepted", "now", lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + _CUT


def canonical(value: Mapping[str, Any]) -> str:
    """Write JSON in one way only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _lines(text: str) -> list[str]:
    """Lay a definition out for reading: indented, its prose line by line."""
    value = cast("dict[str, Any]", json.loads(text))
    prose = value.get("description")
    if isinstance(prose, str):
        value["description"] = prose.splitlines(keepends=True)
    return json.dumps(value, sort_keys=True, indent=2).splitlines()[:_MOST_LINES]
