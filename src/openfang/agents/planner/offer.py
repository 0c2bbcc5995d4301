"""A tool as the planner sees it, prepared once: its words, its actions, its fields by type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, cast

from openfang.agents.planner.tokens import Kind
from openfang.agents.planner.words import READING, Action, meanings, stems_of, words_of
from openfang.core.values import dataclass

_DESCRIBED: Final = 2000
_FIRST_WORDS: Final = 3


@dataclass(frozen=True)
class Field:
    """One argument of a tool."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @cached_property
    def kind(self) -> Kind:
        """Its type, by schema first and name last."""
        return _by_schema(self.schema) or _by_name(self.name, self.schema)

    @cached_property
    def stems(self) -> frozenset[str]:
        """What its name is about."""
        return frozenset(stems_of(self.name))


@dataclass(frozen=True)
class Offer:
    """One tool, called by its `name`. If it `changes`, more than a result comes of it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    destructive: bool = False
    changes: bool = False

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Its arguments, in the order of the schema."""
        properties = _mapping(self.schema.get("properties"))
        # Where anything will do, the first of them is what is usually given.
        anything = list(properties)[:1] if self.schema.get("minProperties") else ()
        required = self.schema.get("required") or anything
        return tuple(
            Field(name, _mapping(one), name in required) for name, one in properties.items()
        )

    @cached_property
    def required(self) -> tuple[Field, ...]:
        """The arguments that it cannot do without."""
        return tuple(one for one in self.fields if one.required)

    @cached_property
    def terms(self) -> list[str]:
        """What it is found by; its name counts most."""
        fields = [word for field in self.fields for word in stems_of(field.name)]
        return stems_of(self.name) * 3 + self._described + fields

    @cached_property
    def named(self) -> frozenset[str]:
        """What its name is about."""
        return frozenset(stems_of(self.name))

    @cached_property
    def about(self) -> frozenset[str]:
        """What it is about, in all that is said of it."""
        return self.named.union(self._described)

    @cached_property
    def named_actions(self) -> frozenset[Action]:
        """What it does, by its name."""
        return frozenset[Action]().union(*map(meanings, words_of(self.name)))

    @cached_property
    def actions(self) -> frozenset[Action]:
        """What it does, by its name; by its description if the name does not tell."""
        first = words_of(self.description[:_DESCRIBED])[:_FIRST_WORDS]
        return self.named_actions or frozenset[Action]().union(*map(meanings, first))

    @cached_property
    def acts(self) -> bool:
        """Whether it is done for what it changes, and not for what it tells."""
        return bool(self.named_actions - READING) or (self.changes and not self.named_actions)

    @cached_property
    def destroys(self) -> bool:
        """Whether something is gone after it."""
        return self.destructive or Action.DELETE in self.actions

    @cached_property
    def _described(self) -> list[str]:
        return stems_of(self.description[:_DESCRIBED])


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _by_schema(schema: Mapping[str, Any]) -> Kind | None:
    if isinstance(schema.get("enum"), list):
        return Kind.CHOICE
    if isinstance(schema.get("pattern"), str):
        return Kind.PATTERN
    by_format = _FORMATS.get(str(schema.get("format")))
    return by_format or _TYPES.get(type_of(schema), Kind.OTHER)


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a value; of several, the first that holds anything."""
    said: object = schema.get("type", "string")
    several = cast("list[object]", said) if isinstance(said, list) else [said]
    return next((str(one) for one in several if one != "null"), "")


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
    if type_of(schema) == "array":
        return Kind.COMMAND if _COMMAND.search(name) else Kind.LIST
    if _COMMAND.search(name):
        return Kind.COMMAND
    return next((kind for kind, pattern in _NAMED if pattern.search(name)), Kind.FREE)
