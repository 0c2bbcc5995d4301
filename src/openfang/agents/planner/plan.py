"""From a request to one call, or to none: the best tool by its words, if all it needs was said.

Deterministic: the same request and tools give the same plan. Nothing destructive is chosen unless
the request has a word for it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openfang.agents.planner.fill import Filling
from openfang.agents.planner.finds import Finds, find_all
from openfang.agents.planner.offer import Kind, Offer
from openfang.agents.planner.words import (
    Action,
    is_unwanted,
    meanings,
    phrased,
    stems_of,
    straight,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_K1: Final = 1.2
_B: Final = 0.5
_FIRST: Final = 3.0
_MOST: Final = 2
_TYPED: Final = 3.0
_LEAST: Final = 2.5
_MARGIN: Final = 0.15


@dataclass(frozen=True, slots=True)
class Planned:
    """One call to make."""

    offer: Offer
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Abstained:
    """No call, and the tools that came nearest, best first, with what each would need."""

    near: tuple[Offer, ...] = ()
    reason: str = ""


@dataclass(slots=True)
class Planner:
    """Chooses among tools that were offered once."""

    offers: Sequence[Offer]
    _frequency: Counter[str] = field(init=False)
    _average: float = field(init=False)

    def __post_init__(self) -> None:
        self._frequency = Counter(term for offer in self.offers for term in set(offer.terms))
        lengths = [len(offer.terms) for offer in self.offers]
        self._average = sum(lengths) / len(lengths) if lengths else 1.0

    def plan(self, request: str) -> Planned | Abstained:
        """Choose a tool and fill its arguments, or say why not."""
        if is_unwanted(straight(request)):
            return Abstained(reason="unwanted")
        finds = find_all(request)
        scored = sorted(
            ((self._score(offer, finds), number) for number, offer in enumerate(self.offers)),
            key=lambda pair: (-pair[0], pair[1]),
        )
        near = tuple(self.offers[number] for score, number in scored[:3] if score >= _LEAST)
        if not near:
            return Abstained(reason="nothing fits")
        for score, number in scored[:3]:
            if score < _LEAST or score < scored[0][0] * (1 - _MARGIN):
                break
            arguments = Filling(finds).fill(self.offers[number])
            if arguments is not None:
                return Planned(self.offers[number], arguments)
        return Abstained(near, "something is missing")

    def _score(self, offer: Offer, finds: Finds) -> float:
        words = words_of(finds.plain)
        meant = [found for word in words if (found := meanings(word))]
        if phrase := phrased(finds.text):
            meant.insert(0, phrase)
        said = frozenset[Action]().union(*meant)
        if offer.destroys and Action.DELETE not in said:
            return 0.0
        score = self._bm25(offer, stems_of(finds.plain))
        if meant and meant[0] & offer.actions:
            score += _FIRST
        score += min(_MOST, sum(1 for found in meant[1:] if found & offer.actions))
        if Action.DELETE in said and not offer.destroys:
            score *= 0.5
        return score + self._fit(offer, finds)

    def _bm25(self, offer: Offer, query: list[str]) -> float:
        counts, length = Counter(offer.terms), len(offer.terms)
        score = 0.0
        for term in set(query):
            count = counts[term]
            if count:
                many = len(self.offers)
                rare = math.log(
                    1 + (many - self._frequency[term] + 0.5) / (self._frequency[term] + 0.5)
                )
                score += (
                    rare
                    * count
                    * (_K1 + 1)
                    / (count + _K1 * (1 - _B + _B * length / self._average))
                )
        return score

    def _fit(self, offer: Offer, finds: Finds) -> float:
        """How well what was found is what the tool takes."""
        filling, score = Filling(finds), 0.0
        for one in offer.fields:
            if one.required and one.kind in _TELLING:
                worth = _TYPED if one.kind in _PLAIN else _TYPED / 2
                score += worth if filling.typed(one) is not None else -_TYPED
        kinds = {one.kind for one in offer.fields}
        strangers = ((Kind.URL, finds.urls), (Kind.EMAIL, finds.emails), (Kind.SQL, finds.sql))
        return score - sum(_TYPED for kind, found in strangers if found and kind not in kinds)


_PLAIN: Final = frozenset({Kind.URL, Kind.EMAIL, Kind.SQL})
_TELLING: Final = _PLAIN | {Kind.PATH, Kind.PATTERN, Kind.NUMBER}
