"""The list of tools that one caller is offered in one place, made once until something changes."""

from __future__ import annotations

import re
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from openfang.agents.planner.words import stems_of
from openfang.core.ranking import Ranking
from openfang.core.values import dataclass
from openfang.policy.selection import plugin_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.offering.terms import Terms
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.edges.mcp.ports import Offered, Place
    from openfang.registry.snapshot import Snapshot

_MOST: Final = 64
_NAME_COUNTS: Final = 3
_DESCRIBED: Final = 2000
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class View:
    """A list that does not change. Whoever is offered the same shares it."""

    tools: tuple[Offered, ...]

    @cached_property
    def named(self) -> Mapping[str, Offered]:
        """Find each by the name it has in the place."""
        return {one.name: one for one in self.tools}

    @cached_property
    def as_plugins(self) -> Mapping[str, Offered]:
        """Find each as `plugin:tool`; of two, the first by id."""
        ordered = sorted(self.tools, key=lambda one: one.tool.id, reverse=True)
        return {plugin_name(one.tool): one for one in ordered}

    def search(self, query: str, most: int) -> list[Offered]:
        """Find what fits some words, best first."""
        return [self.tools[number] for number in self._ranking.best(_terms(query), most)]

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking([_words(one) for one in self.tools])


@dataclass(slots=True)
class _Kept:
    view: View
    terms: Terms
    fresh: bool = True


@dataclass(slots=True)
class Views:
    """Keeps the lists that were asked for last. One that is made anew and is the same stays.

    A tool in it is as it was when the list was made, in all that a client does not see.
    """

    parts: Parts
    _kept: dict[object, _Kept] = field(default_factory=dict[object, _Kept])
    _lately: dict[tuple[int, int], tuple[Caller, Terms, View]] = field(
        default_factory=dict["tuple[int, int]", "tuple[Caller, Terms, View]"]
    )
    _snapshot: Snapshot | None = None

    def of(self, caller: Caller, place: Place, terms: Terms) -> View:
        """List what a caller that is bound to a place can see there."""
        self._look()
        lately = self._lately.get((id(caller), id(terms)))
        if lately is not None:
            return lately[2]
        view = self._found(caller, place, terms)
        if len(self._lately) >= _MOST:
            self._lately.clear()
        # Held, so that no others can have the same identity.
        self._lately[id(caller), id(terms)] = caller, terms, view
        return view

    def _found(self, caller: Caller, place: Place, terms: Terms) -> View:
        key = (place, caller.grants, caller.within, self.parts.catalog.sight(caller))
        kept = self._kept.get(key)
        if kept is not None and kept.fresh and kept.terms is terms:
            return kept.view
        view = View(tuple(terms.naming.offered(self.parts.catalog.list(caller))))
        if kept is not None and same(kept.view, view):
            view = kept.view
        self._keep(key, _Kept(view, terms))
        return view

    def _look(self) -> None:
        """Trust nothing that is kept, once the tools have changed."""
        snapshot = self.parts.registry.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._lately.clear()
            for kept in self._kept.values():
                kept.fresh = False

    def _keep(self, key: object, kept: _Kept) -> None:
        self._kept.pop(key, None)
        if len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = kept


def _words(one: Offered) -> list[str]:
    """Give what a tool is found by; its name counts most."""
    names = _terms(f"{one.name} {one.tool.title or ''}") * _NAME_COUNTS
    return [*names, *_terms(one.description[:_DESCRIBED])]


def _terms(text: str) -> list[str]:
    """Give the words that a text is found by: `createInvoice` is two, and one bill is as many."""
    apart = _CAMEL.sub(" ", text)
    return [stem.removesuffix("e") for stem in stems_of(apart)]


def same(one: View, other: View) -> bool:
    """Whether a client would see no difference."""
    return len(one.tools) == len(other.tools) and all(map(_alike, one.tools, other.tools))


def _alike(one: Offered, other: Offered) -> bool:
    if (one.name, one.description) != (other.name, other.description):
        return False
    return one.tool is other.tool or _shown(one) == _shown(other)


def _shown(one: Offered) -> tuple[object, ...]:
    tool = one.tool
    return (tool.id, tool.title, tool.input_schema, tool.output_schema, tool.annotations)
