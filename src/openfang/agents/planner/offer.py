"""A tool as the planner sees it, prepared once: its words, its actions, its fields by type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final, cast

from openfang.agents.planner.words import Action, meanings, stems_of, words_of

_CHANGES: Final = frozenset({Action.DELETE})


class Kind(Enum):
    """Of what type a field is; all but FREE are filled by what has that type, or not at all."""

    URL = auto()
    EMAIL = auto()
    PATH = auto()
    ZONE = auto()
    SQL = auto()
    NUMBER = auto()
    CHOICE = auto()
    PATTERN = auto()
    COMMAND = auto()
    LIST = auto()
    FREE = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a tool."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def kind(self) -> Kind:
        """Its type, by schema first and name last."""
        return _by_schema(self.schema) or _by_name(self.name, self.schema)

    @property
    def words(self) -> list[str]:
        """The words of its name."""
        return words_of(self.name)


@dataclass(frozen=True)
class Offer:
    """One tool. `name` is what a call of it is made by."""

    name: str
    description: str
    schema: Mapping[str, Any]
    destructive: bool = False

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Its arguments, in the order of the schema."""
        properties = _mapping(self.schema.get("properties"))
        required = self.schema.get("required", ())
        return tuple(
            Field(name, _mapping(one), name in required) for name, one in properties.items()
        )

    @cached_property
    def terms(self) -> list[str]:
        """What it is found by; its name counts most."""
        described = stems_of(self.description)
        fields = [word for field in self.fields for word in stems_of(field.name)]
        return stems_of(self.name) * 3 + described + fields

    @cached_property
    def actions(self) -> frozenset[Action]:
        """What it does, by its name; by its description if the name does not tell."""
        named = [meanings(word) for word in words_of(self.name)]
        found = frozenset[Action]().union(*named)
        return found or frozenset[Action]().union(*map(meanings, words_of(self.description)[:3]))

    @cached_property
    def destroys(self) -> bool:
        """Whether something is gone after it."""
        return self.destructive or bool(self.actions & _CHANGES)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _by_schema(schema: Mapping[str, Any]) -> Kind | None:
    if isinstance(schema.get("enum"), list):
        return Kind.CHOICE
    if isinstance(schema.get("pattern"), str):
        return Kind.PATTERN
    by_format = _FORMATS.get(schema.get("format", ""))
    return by_format or _TYPES.get(schema.get("type", "string"), Kind.OTHER)


_FORMATS: Final = {"uri": Kind.URL, "url": Kind.URL, "email": Kind.EMAIL}
_TYPES: Final[Mapping[str, Kind | None]] = {
    "integer": Kind.NUMBER,
    "number": Kind.NUMBER,
    "string": None,
    "array": None,
}
_NAMED: Final = (
    (Kind.URL, re.compile(r"ur[il]s?\b|link|href|website", re.IGNORECASE)),
    (Kind.EMAIL, re.compile(r"e-?mail|recipient", re.IGNORECASE)),
    (Kind.ZONE, re.compile(r"time_?zone|\btz\b", re.IGNORECASE)),
    (Kind.SQL, re.compile(r"sql", re.IGNORECASE)),
    (Kind.PATH, re.compile(r"path|file(?:name)?$|folder|director|^source$|^dest", re.IGNORECASE)),
)
_COMMAND = re.compile(r"command|argv|program", re.IGNORECASE)


def _by_name(name: str, schema: Mapping[str, Any]) -> Kind:
    if schema.get("type") == "array":
        return Kind.COMMAND if _COMMAND.search(name) else Kind.LIST
    if _COMMAND.search(name):
        return Kind.COMMAND
    return next((kind for kind, pattern in _NAMED if pattern.search(name)), Kind.FREE)
