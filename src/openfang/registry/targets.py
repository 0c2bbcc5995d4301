"""Which arguments choose who, where and what (C9.2), read from a tool's JSON Schema.

A target is a dotted path; a list on the way stands for each of its elements.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from openfang.core.values import dataclass
from openfang.registry import tables
from openfang.registry.words import singular, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEEPEST = 5
MOST_NODES = 2_000
_BRANCHES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """All arguments that choose a target, and those among them that name a place to reach.

    `complete` is false for a schema too large to be read to its end.
    """

    chosen: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    complete: bool = True


def targets_of(schema: Mapping[str, Any]) -> Targets:
    """Find the targets. What is too deep to look into is a target as a whole."""
    walk = _Walk(root=schema)
    walk.object(schema, path="", depth=0)
    return Targets(
        chosen=tuple(walk.chosen), places=tuple(walk.places), complete=walk.seen <= MOST_NODES
    )


@dataclass(slots=True)
class _Walk:
    root: Mapping[str, Any]
    chosen: dict[str, None] = field(default_factory=dict[str, None])
    places: dict[str, None] = field(default_factory=dict[str, None])
    seen: int = 0

    def object(self, schema: Mapping[str, Any], *, path: str, depth: int) -> None:
        for branch in self._branches(schema, depth):
            for name, value in _mapping(branch.get("properties")).items():
                self._argument(name, _mapping(value), path=path, depth=depth)

    def _argument(self, name: str, schema: Mapping[str, Any], *, path: str, depth: int) -> None:
        here = f"{path}.{name}" if path else name
        if depth >= DEEPEST:
            self._keep(here, place=True)
            return
        for branch in self._branches(schema, depth):
            self._leaf(name, branch, here)
            self.object(branch, path=here, depth=depth + 1)
            items = _mapping(branch.get("items"))
            if items:
                self._element(name, items, here, depth)

    def _element(self, name: str, items: Mapping[str, Any], here: str, depth: int) -> None:
        for branch in self._branches(items, depth):
            self._leaf(name, branch, here)
            self.object(branch, path=here, depth=depth + 1)

    def _leaf(self, name: str, schema: Mapping[str, Any], here: str) -> None:
        kind = schema.get("type", "string")
        if kind in ("object", "array", "boolean", "null"):
            return
        words = split(name)
        form = str(schema.get("format", ""))
        place = form in tables.WHERE_FORMATS or any(
            singular(word) in tables.WHERE_WORDS for word in words
        )
        if place or form in tables.TARGET_FORMATS or _chooses(words):
            self._keep(here, place=place)

    def _keep(self, here: str, *, place: bool) -> None:
        self.chosen[here] = None
        if place:
            self.places[here] = None

    def _branches(self, schema: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
        """The schema, what it refers to inside this document, and its alternatives."""
        self.seen += 1
        if self.seen > MOST_NODES:
            return
        yield schema
        if depth >= DEEPEST:
            return
        referred = self._resolve(schema.get("$ref"))
        if referred:
            yield from self._branches(referred, depth + 1)
        for key in _BRANCHES:
            for branch in _sequence(schema.get(key)):
                yield from self._branches(_mapping(branch), depth + 1)

    def _resolve(self, reference: object) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        found: Mapping[str, Any] = self.root
        for step in filter(None, unquote(reference[1:]).split("/")):
            found = _mapping(found.get(step.replace("~1", "/").replace("~0", "~")))
        return found


def _chooses(words: tuple[str, ...]) -> bool:
    if not words:
        return False
    return singular(words[-1]) in tables.TARGET_HEADS or any(
        singular(word) in tables.TARGET_WORDS for word in words
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _sequence(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
