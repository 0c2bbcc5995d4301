"""How far somebody has read in a log that has a chain for each node. No I/O.

A record is known by its node and its number there. Where one node writes, the number is enough: a
bookmark is that number then, as `12`. Where several write it names the last record of each, as
`a:12,b:40`. A node that it does not name has written nothing yet that was read.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

ALONE: Final = ""
"""Stands for the node where the number alone is the key of a record."""
LAST: Final = 10**18 - 1
"""A number that no record has."""
_DIGITS: Final = 18
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Bookmark:
    """The last record that was read of each node; `rest` is that of all that are not named."""

    places: Mapping[str, int] = field(default_factory=dict[str, int])
    rest: int = 0

    def of(self, node: str) -> int:
        """The number of the last record of this node."""
        if node in self.places:
            return self.places[node]
        # Where the number alone is the key, that of any node says as much.
        alone = min(self.places.values(), default=self.rest)
        return alone if node == ALONE else self.places.get(ALONE, self.rest)

    def has(self, node: str, number: int) -> bool:
        """Whether this record was read."""
        return number <= self.of(node)

    def moved(self, node: str, number: int) -> Bookmark:
        """The same, with this record of the node as the last."""
        lane = ALONE if ALONE in self.places else node
        return Bookmark({**self.places, lane: number}, self.rest)

    def at(self, heads: Bookmark) -> Bookmark:
        """The same in a log that ends there: nothing of it is beyond its end."""
        return Bookmark({node: min(self.of(node), end) for node, end in heads.places.items()})

    def one_less(self) -> Bookmark:
        """The same, but for the last record of each node."""
        return Bookmark({node: last - 1 for node, last in self.places.items()}, self.rest - 1)

    def without(self, nodes: Collection[str]) -> Bookmark:
        """The same, but of these nodes."""
        if not nodes:
            return self
        kept = {node: last for node, last in self.places.items() if node not in nodes}
        return Bookmark(kept, self.rest)

    def behind(self, other: Bookmark) -> Iterator[tuple[str, int, int]]:
        """Name what the other has beyond this one: node, the last number here, and there."""
        for node, end in other.places.items():
            if end > self.of(node):
                yield node, self.of(node), end

    def misses(self, other: Bookmark) -> bool:
        """Whether the other has anything beyond this one."""
        return any(self.behind(other))

    def __or__(self, other: Bookmark) -> Bookmark:
        """The further one, for each node."""
        nodes = {**self.places, **other.places}
        return Bookmark({node: max(self.of(node), other.of(node)) for node in nodes})

    def __str__(self) -> str:
        """Write it so that it can be read again."""
        named = [f"{quote(node, safe='')}:{last}" for node, last in self.places.items() if node]
        alone = self.places.get(ALONE, self.rest)
        return ",".join([str(alone), *named] if alone or not named else named)


START: Final = Bookmark()


def bookmark(given: int | Bookmark) -> Bookmark:
    """Take a number for that of each node."""
    return Bookmark(rest=given) if isinstance(given, int) else given


def read_bookmark(text: str) -> Bookmark | None:
    """Read what was written so; anything else is none."""
    places: dict[str, int] = {}
    rest = 0
    for item in text.split(",", _MOST):
        node, colon, digits = item.rpartition(":")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            return None
        if bool(colon) != bool(node):
            return None
        if node:
            places[unquote(node)] = int(digits)
        else:
            rest = int(digits)
    return Bookmark(places, rest)
