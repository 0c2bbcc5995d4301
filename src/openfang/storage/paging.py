"""One page of what several chains hold, the newest first: which of it, and where the next begins.

Each chain is looked at from its end, as far as a page can wait for. What is older than where one of
them was left is for a later page: it would come before something newer else. No I/O.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from openfang.core.bookmarks import Bookmark
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.storage.chains import Part


class Found(NamedTuple):
    """What was found in a chain: when its newest record was written, the record, and its name."""

    at: int
    node: str
    number: int
    name: str


@dataclass(slots=True)
class Page:
    """The newest of what is found, so many at most."""

    limit: int
    parts: list[Part] = field(default_factory=list["Part"])
    _found: list[Found] = field(default_factory=list[Found])
    _bounds: dict[str, int] = field(default_factory=dict[str, int])
    _left: set[str] = field(default_factory=set[str])
    _since: tuple[int, str] = (0, "")
    _taken: list[Found] = field(default_factory=list[Found])

    def full_by(self, at: int) -> bool:
        """Whether a chain that ends then has nothing for this page."""
        self._found.sort(reverse=True)
        return len(self._found) > self.limit and at < self._found[self.limit].at

    def leave(self, node: str, last: int) -> None:
        """Leave a chain for a later page."""
        self._bounds[node] = last + 1
        self._left.add(node)

    def add(self, part: Part, found: Sequence[Found]) -> None:
        """Take what was found in a part: one more than a page holds, if there is so much."""
        self.parts.append(part)
        self._found += found
        self._bounds[part.node] = part.last + 1
        if len(found) > self.limit:
            self._left.add(part.node)

    @property
    def cut(self) -> Iterator[Part]:
        """Name the parts behind which more may be that stands between what the others have."""
        if len(self.parts) > 1:
            yield from (
                part for part in self.parts if part.after > 0 and part.node not in self._left
            )

    def end(self, at: int, node: str) -> None:
        """Take nothing of the others that is older than where this one was left."""
        self._since = max(self._since, (at, node))

    def taken(self) -> list[str]:
        """Name what is on the page."""
        names, (since, by) = dict[str, None](), self._since
        for one in sorted(self._found, reverse=True):
            if one.at < since and one.node != by:
                continue
            if one.name not in names and len(names) == self.limit:
                break
            names[one.name] = None
            self._taken.append(one)
        return list(names)

    @property
    def since(self) -> int:
        """When the oldest was written that is on the page."""
        return min((one.at for one in self._taken), default=0)

    def older(self) -> Bookmark | None:
        """Say before which records the next page begins, unless all has been looked at."""
        bounds = dict(self._bounds)
        for part in self.parts:
            here = [one.number for one in self._taken if one.node == part.node]
            rest = sum(one.node == part.node for one in self._found) - len(here)
            whole = not rest and part.node not in self._left
            if whole:
                bounds[part.node] = part.after + 1
            elif here:
                bounds[part.node] = min(here)
        return Bookmark(bounds) if any(bound > 1 for bound in bounds.values()) else None
