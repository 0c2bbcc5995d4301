"""How much work a JSON Schema makes, found before it is ever run.

References and recursion let a small schema visit one place of a small document millions of times.
This module bounds those visits from the schema alone; nothing here validates.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Node: TypeAlias = "dict[str, Any]"

_SAME_ONE = ("not", "if", "then", "else")
_SAME_LIST = ("allOf", "anyOf", "oneOf")
_SAME_MAP = ("dependentSchemas", "dependencies")
_EVERY_CHILD = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_EVERY_CHILD_MAP = ("patternProperties",)
_KEPT_ASIDE = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_META_SCHEMAS = ("https://json-schema.org/draft/", "http://json-schema.org/draft-")
_META_SCHEMA_VISITS = 64
_MAX_REACH = 20_000
_ENOUGH = 1 << 40
_ANY = "*"
_OPEN, _DONE = 1, 2
_NOTHING = object()


class Unbounded(Exception):  # noqa: N818 - it reads as what it is
    """The work cannot be bounded; the message says why."""


@dataclass(slots=True, eq=False)
class _Place:
    """A subschema: those that look at the same value, and those that look at its children."""

    own: int = 1
    same: list[_Place] = field(default_factory=list["_Place"])
    below: dict[str, list[_Place]] = field(default_factory=dict[str, "list[_Place]"])


def visits_by_depth(schema: Mapping[str, Any], depth: int) -> list[int]:
    """Bound how often one value is visited, for documents of 1 to `depth` levels.

    Raises Unbounded where that cannot be said.
    """
    places = _Reader(cast("Node", schema)).places
    reach = _reach_of_all(places)
    now = {id(place): _own(reach[id(place)]) for place in places}
    table = [now[id(places[0])]]
    while len(table) < depth:
        deeper = {id(place): _below(reach[id(place)], now) for place in places}
        if deeper == now:
            break
        now = deeper
        table.append(now[id(places[0])])
    return table + [table[-1]] * (depth - len(table))


_Reach: TypeAlias = "list[tuple[_Place, int]]"


def _reach_of_all(places: list[_Place]) -> dict[int, _Reach]:
    reach: dict[int, _Reach] = {}
    total = 0
    for place in places:
        reach[id(place)] = _reach(place)
        total += len(reach[id(place)])
        if total > _MAX_REACH:
            raise Unbounded("its references lead to too many places")
    return reach


def _reach(place: _Place) -> _Reach:
    """Find what looks at the same value as `place`, and how often."""
    ways: dict[int, int] = {id(place): 1}
    members = _before_their_parts(place)
    for member in members:
        for part in member.same:
            ways[id(part)] = min(ways.get(id(part), 0) + ways[id(member)], _ENOUGH)
    return [(member, ways[id(member)]) for member in members]


def _before_their_parts(start: _Place) -> list[_Place]:
    """Order everything at one value so that each comes before its parts; refuse a circle."""
    done: list[_Place] = []
    state = {id(start): _OPEN}
    stack = [(start, iter(start.same))]
    while stack:
        place, parts = stack[-1]
        part = next(parts, None)
        if part is None:
            state[id(place)] = _DONE
            done.append(place)
            stack.pop()
        elif id(part) not in state:
            state[id(part)] = _OPEN
            stack.append((part, iter(part.same)))
        elif state[id(part)] == _OPEN:
            raise Unbounded("its references go round in a circle without going deeper")
    return done[::-1]


def _own(reach: _Reach) -> int:
    return min(sum(member.own * count for member, count in reach), _ENOUGH)


def _below(reach: _Reach, now: dict[int, int]) -> int:
    """Visits here and along the worst way down: a child is reached by its name or as any child."""
    steps: dict[str, int] = {}
    for member, count in reach:
        for step, children in member.below.items():
            visits = count * sum(now[id(child)] for child in children)
            steps[step] = steps.get(step, 0) + visits
    anyway = steps.pop(_ANY, 0)
    return min(_own(reach) + anyway + max(steps.values(), default=0), _ENOUGH)


class _Reader:
    """Turns a schema into places, following references by pointer, anchor and own id."""

    def __init__(self, schema: Node) -> None:
        self._root = schema
        self._anchors: dict[str, Node] = {}
        self._made: dict[int, _Place] = {}
        self.places: list[_Place] = []
        self._pending: list[tuple[Node, _Place]] = []
        self._find_anchors(schema)
        self._place(schema)
        while self._pending:
            self._fill(*self._pending.pop())

    def _place(self, schema: object) -> _Place:
        """Make or find the place of a subschema; `true` and `false` are places without parts."""
        if not isinstance(schema, dict):
            place = _Place()
            self.places.append(place)
            return place
        node = cast("Node", schema)
        place = self._made.get(id(node))
        if place is None:
            place = self._made[id(node)] = _Place()
            self.places.append(place)
            self._pending.append((node, place))
        return place

    def _fill(self, node: Node, place: _Place) -> None:
        place.own += len(_items(node.get("enum")))
        for keyword in _REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str):
                self._refer(target, place)
        place.same.extend(self._place(part) for part in _same(node))
        for step, child in _children(node):
            place.below.setdefault(step, []).append(self._place(child))

    def _refer(self, target: str, place: _Place) -> None:
        if target.startswith(_META_SCHEMAS):
            place.own += _META_SCHEMA_VISITS
        else:
            place.same.append(self._place(self._resolve(target)))

    def _resolve(self, target: str) -> object:
        base, _, fragment = target.partition("#")
        own = self._root.get("$id", self._root.get("id", ""))
        if base and base != str(own).rstrip("#"):
            raise _unknown(target)
        if fragment in self._anchors:
            return self._anchors[fragment]
        if fragment and not fragment.startswith("/"):
            raise _unknown(target)
        return self._point(target, unquote(fragment).split("/")[1:])

    def _point(self, target: str, steps: list[str]) -> object:
        here: object = self._root
        for step in steps:
            here = _child(here, step.replace("~1", "/").replace("~0", "~"))
            if here is _NOTHING:
                raise _unknown(target)
        return here

    def _find_anchors(self, schema: Node) -> None:
        """Collect the anchors; a schema inside with an id of its own is one we do not follow."""
        pending: list[object] = [schema]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            known = cast("Node", node)
            if known is not schema and isinstance(known.get("$id"), str):
                raise Unbounded(
                    f"it holds another schema with an id of its own, {known['$id']!r:.100}"
                )
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(known.get(keyword), str):
                    self._anchors[known[keyword]] = known
            pending.extend(_same(known))
            pending.extend(child for _, child in _children(known))
            pending.extend(part for word in _KEPT_ASIDE for part in _values(known.get(word)))


def _unknown(target: str) -> Unbounded:
    return Unbounded(f"it refers to {target!r:.100}, which is not in it")


def _child(here: object, name: str) -> object:
    if isinstance(here, dict):
        return cast("Node", here).get(name, _NOTHING)
    items = _items(here)
    return items[int(name)] if name.isdecimal() and int(name) < len(items) else _NOTHING


def _same(node: Node) -> Iterator[object]:
    """Subschemas that look at the same value."""
    yield from (node[word] for word in _SAME_ONE if word in node)
    for word in _SAME_LIST:
        yield from _items(node.get(word))
    for word in _SAME_MAP:
        yield from (part for part in _values(node.get(word)) if isinstance(part, dict))


def _children(node: Node) -> Iterator[tuple[str, object]]:
    """Subschemas that look at a child, with the name by which the child is reached."""
    properties = node.get("properties")
    if isinstance(properties, dict):
        for name, child in cast("Node", properties).items():
            yield f".{name}", child
    for number, child in enumerate(_items(node.get("prefixItems"))):
        yield f"[{number}]", child
    for number, child in enumerate(_items(node.get("items"))):
        yield f"[{number}]", child
    for word in _EVERY_CHILD:
        if isinstance(node.get(word), dict | bool):
            yield _ANY, node[word]
    for word in _EVERY_CHILD_MAP:
        yield from ((_ANY, child) for child in _values(node.get(word)))


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _values(value: object) -> list[Any]:
    return list(cast("Node", value).values()) if isinstance(value, dict) else []
