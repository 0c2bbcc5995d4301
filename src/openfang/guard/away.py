"""Our calls that are under way at peers, by chain and by who would come back from there (C8.4).

A peer that drops or lowers what it was told of a chain comes in as somebody, or with a trace: that
is enough to find the call of ours that it works on.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.core.labels import Labels
    from openfang.core.trace import Chain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Departed:
    """One call at a peer: the chain as it was told there, for whom, and what it carries."""

    chain: Chain
    root: str
    labels: Labels
    who: str = ""


@dataclass(slots=True)
class Away:
    """Finds the deepest of them. There are never more than calls."""

    _by_trace: dict[str, list[Departed]] = field(default_factory=dict[str, "list[Departed]"])
    _by_starry: dict[str, list[Departed]] = field(default_factory=dict[str, "list[Departed]"])
    _by_who: dict[str, list[Departed]] = field(default_factory=dict[str, "list[Departed]"])

    def __len__(self) -> int:
        return sum(map(len, self._by_trace.values()))

    def leave(self, one: Departed) -> None:
        """Note that a call is on its way."""
        for table, key in self._places(one):
            table.setdefault(key, []).append(one)

    def back(self, one: Departed) -> None:
        """Note that it has ended."""
        for table, key in self._places(one):
            _dropped(table, key, one)

    def _places(self, one: Departed) -> Iterator[tuple[dict[str, list[Departed]], str]]:
        yield self._by_trace, one.chain.trace_id
        if one.chain.starry_id:
            yield self._by_starry, one.chain.starry_id
        if one.who:
            yield self._by_who, one.who

    def of_chain(self, chain: Chain, caller: str) -> Departed | None:
        """Find the deepest of a chain; not for who began it, who may well call twice at once.

        A peer may hand on one of the two names of a trace, and drop or make up the other.
        """
        found = [*self._by_trace.get(chain.trace_id, ())]
        if chain.starry_id:
            found += self._by_starry.get(chain.starry_id, ())
        return _deepest([one for one in found if one.root != caller])

    def of_peer(self, caller: str) -> Departed | None:
        """Find the deepest at whoever comes in as this caller."""
        return _deepest(self._by_who.get(caller, ()))


def _deepest(found: Sequence[Departed]) -> Departed | None:
    return max(found, key=lambda one: one.chain.depth, default=None)


def _dropped(table: dict[str, list[Departed]], key: str, one: Departed) -> None:
    held = table[key]
    held.remove(one)
    if not held:
        del table[key]
