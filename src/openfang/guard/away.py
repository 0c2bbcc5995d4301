"""Our calls that are under way at peers, by chain and by who would come back from there (C8.4).

A peer that drops or lowers what it was told of a chain comes in as somebody, or with a trace: that
is enough to find the call of ours that it works on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

    _by_chain: dict[str, list[Departed]] = field(default_factory=dict[str, "list[Departed]"])
    _by_who: dict[str, list[Departed]] = field(default_factory=dict[str, "list[Departed]"])

    def __len__(self) -> int:
        return sum(map(len, self._by_chain.values()))

    def leave(self, one: Departed) -> None:
        """Note that a call is on its way."""
        self._by_chain.setdefault(one.chain.trace, []).append(one)
        if one.who:
            self._by_who.setdefault(one.who, []).append(one)

    def back(self, one: Departed) -> None:
        """Note that it has ended."""
        _dropped(self._by_chain, one.chain.trace, one)
        if one.who:
            _dropped(self._by_who, one.who, one)

    def of_chain(self, trace: str, caller: str) -> Departed | None:
        """Find the deepest of a chain; not for who began it, who may well call twice at once."""
        if trace not in self._by_chain:
            return None
        return _deepest([one for one in self._by_chain[trace] if one.root != caller])

    def of_peer(self, caller: str) -> Departed | None:
        """Find the deepest at whoever comes in as this caller."""
        return _deepest(self._by_who.get(caller, ()))


def _deepest(found: list[Departed] | tuple[()]) -> Departed | None:
    return max(found, key=lambda one: one.chain.depth, default=None)


def _dropped(table: dict[str, list[Departed]], key: str, one: Departed) -> None:
    held = table[key]
    held.remove(one)
    if not held:
        del table[key]
