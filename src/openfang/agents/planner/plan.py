"""From a request to one call, or to none: the best tool that the whole request can mean.

Deterministic: the same request and tools give the same plan. A tool is chosen only if everything
it needs was said, and if nothing was said that it has no use for. Something destructive needs an
order for it with one object and nothing besides.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from openfang.agents.planner.fill import Filling, is_plain
from openfang.agents.planner.left import does
from openfang.agents.planner.reading import Form, Reading, read
from openfang.agents.planner.sayings import Saying, saying_of
from openfang.agents.planner.tokens import Kind
from openfang.agents.planner.words import Action, bag, meanings, topic
from openfang.core.ranking import Ranking
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.agents.planner.offer import Offer

_LONGEST: Final = 4_000
_MOST_TOKENS: Final = 100
_NEEDED: Final = 1.5
_TELLING: Final = frozenset({Kind.URL, Kind.SQL})
_TYPED: Final = _TELLING | {Kind.EMAIL, Kind.PATH, Kind.PATTERN, Kind.NUMBER}
_SPEAKING: Final = frozenset({Kind.URL, Kind.EMAIL, Kind.PATH})
_TIMELY: Final = bag("what what's whats which tell show give get current time date")


class Why(Enum):
    """Why there is no call."""

    TOO_LONG = auto()
    UNWANTED = auto()
    STATEMENT = auto()
    NOTHING_FITS = auto()
    MISSING = auto()
    LEFT_OVER = auto()
    UNSURE = auto()


_NO_REQUEST: Final = {Form.UNWANTED: Why.UNWANTED, Form.STATEMENT: Why.STATEMENT}


@dataclass(frozen=True, slots=True)
class Planned:
    """One call to make."""

    offer: Offer
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstained:
    """No call: why, the tool that came nearest, and what of the request it could not use."""

    why: Why
    near: Offer | None = None
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """One tool on one request."""

    offer: Offer
    score: float
    arguments: Mapping[str, Any]
    missing: Sequence[str]
    left: tuple[str, ...]
    allowed: bool = True
    loose: bool = False

    @property
    def whole(self) -> bool:
        return self.allowed and not (self.missing or self.left)


@dataclass(slots=True)
class Planner:
    """Chooses among tools that were offered once."""

    offers: Sequence[Offer]
    _ranking: Ranking = field(init=False)

    def __post_init__(self) -> None:
        self._ranking = Ranking([offer.terms for offer in self.offers])

    def plan(self, request: str) -> Planned | Abstained:
        """Choose a tool and fill its arguments, or say why not."""
        if len(request) > _LONGEST:
            return Abstained(why=Why.TOO_LONG)
        reading = read(request)
        if len(reading.tokens) > _MOST_TOKENS:
            return Abstained(why=Why.TOO_LONG)
        saying = saying_of(reading)
        if not saying and reading.form in _NO_REQUEST:
            return Abstained(why=_NO_REQUEST[reading.form])
        return _chosen(self._tries(reading, saying), reading)

    def _tries(self, reading: Reading, saying: Saying | None) -> list[_Try]:
        found: list[_Try] = []
        for number, offer in enumerate(self.offers):
            meant = _is_meant(offer, reading, saying)
            able = not reading.action or does(offer, reading) or _keeps(offer, saying)
            if able and (meant or _takes_types(offer)):
                one = self._try(number, reading, saying)
                found += [one] if meant or one.whole else []
        # Sorting keeps the order of those that are alike.
        return sorted(found, key=lambda one: -one.score)

    def _try(self, number: int, reading: Reading, saying: Saying | None) -> _Try:
        offer = self.offers[number]
        score = self._ranking.score(number, reading.stems)
        if saying and _keeps(offer, saying):
            return _kept(offer, saying, score)
        filling = Filling(offer, reading)
        filling.fill()
        needed = len(offer.required) - len(filling.missing)
        score += _NEEDED * needed
        return _Try(
            offer=offer,
            score=score,
            arguments=_ordered(offer, filling.arguments),
            missing=filling.missing,
            left=tuple(token.text for token in filling.left),
            allowed=_may(filling),
        )


def _is_meant(offer: Offer, reading: Reading, saying: Saying | None) -> bool:
    """Whether the request has a word for it, or what only it can take."""
    if offer.named & reading.stems or offer.named_actions & reading.actions:
        return True
    return _keeps(offer, saying) or any(
        one.kind in _TELLING and one.kind in reading.kinds for one in offer.required
    )


def _takes_types(offer: Offer) -> bool:
    """Whether several typed things may stand for it: `100 EUR in USD`."""
    kinds = [one.kind for one in offer.required]
    return len(kinds) > 1 and _TYPED.issuperset(kinds)


def _may(filling: Filling) -> bool:
    """Whether a request that is put like this may be meant to call it."""
    offer, reading = filling.offer, filling.reading
    if reading.form is Form.WHETHER:
        return reading.word(reading.head + 1) == "it" and bool(filling.taken) and not offer.acts
    if offer.destroys:
        return _ordered_to(offer, reading) and _has_one_object(filling)
    if offer.acts:
        return _ordered_to(offer, reading)
    return Action.TELL not in offer.named_actions or reading.first in _TIMELY


def _has_one_object(filling: Filling) -> bool:
    """Whether one thing is named, by its looks or by what it is and its name."""
    if Action.DELETE not in filling.reading.action or len(filling.taken) != 1:
        return False
    kinds = [one.kind for one in filling.offer.fields if one.name in filling.arguments]
    nouns = {stem for stem in filling.offer.named if not meanings(stem)}
    named = not nouns.isdisjoint(filling.reading.stems)
    return not _SPEAKING.isdisjoint(kinds) or (named and not is_plain(filling.taken[0]))


def _ordered_to(offer: Offer, reading: Reading) -> bool:
    """Whether it is told to do what it does, and is not asked about it."""
    if reading.form is not Form.ORDER or reading.doubtful:
        return False
    return does(offer, reading) or topic(reading.first) in offer.named


def _chosen(tries: Sequence[_Try], reading: Reading) -> Planned | Abstained:
    if len(tries) > 1:
        tries = [one for one in tries if not one.loose]
    whole = [one for one in tries if one.whole]
    if not whole:
        return _nearest(tries, reading)
    if sum(one.offer.destroys for one in whole) > 1:
        return Abstained(why=Why.UNSURE, near=whole[0].offer)
    return Planned(whole[0].offer, whole[0].arguments)


def _nearest(tries: Sequence[_Try], reading: Reading) -> Abstained:
    """Say what would have to be said otherwise, of the tool that lacks least."""
    if not tries:
        undone = [reading.tokens[reading.head].text] if reading.action else []
        return Abstained(why=Why.NOTHING_FITS, left=tuple(undone))
    best = min(tries, key=lambda one: (len(one.left), len(one.missing)))
    why = Why.LEFT_OVER if best.left else Why.MISSING if best.missing else Why.UNSURE
    return Abstained(why=why, near=best.offer, left=best.left)


def _kept(offer: Offer, saying: Saying, score: float) -> _Try:
    values = [saying.key, saying.value] if saying.action is Action.STORE else [saying.key]
    names = ("key", "value") if len(values) > 1 else (_finds_by(offer, saying),)
    arguments = _ordered(offer, dict(zip(names, values, strict=True)))
    return _Try(
        offer=offer,
        score=score,
        arguments=arguments,
        missing=(),
        left=(),
        loose=saying.loose,
    )


def _finds_by(offer: Offer, saying: Saying) -> str:
    free = {one.name for one in offer.fields if one.kind is Kind.FREE}
    return "query" if saying.by_words and "query" in free else offer.required[0].name


def _keeps(offer: Offer, saying: Saying | None) -> bool:
    """Whether it takes what is to be kept, or finds it again."""
    if not saying or saying.action not in offer.named_actions:
        return False
    names = {one.name for one in offer.required}
    if saying.action is Action.STORE:
        return names == {"key", "value"}
    return len(names) == 1 and offer.required[0].kind is Kind.FREE


def _ordered(offer: Offer, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {one.name: arguments[one.name] for one in offer.fields if one.name in arguments}
