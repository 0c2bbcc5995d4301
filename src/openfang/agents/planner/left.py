"""What of a request means something to a tool, beside its arguments: the rest is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.agents.planner.words import (
    ARTICLES,
    FILLERS,
    SHOWING,
    Action,
    subject,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from openfang.agents.planner.offer import Offer
    from openfang.agents.planner.reading import Reading

_AFTER_DELETING: Final = frozenset({("for", "good"), ("for", "me")})


def does(offer: Offer, reading: Reading) -> bool:
    """Whether a tool does what a request begins with."""
    if reading.first in SHOWING and not offer.acts:
        return True
    about = subject(reading.first)
    return bool(reading.action & offer.actions) and (not about or about in offer.about)


def means(offer: Offer, reading: Reading, at: int, filled: AbstractSet[str]) -> bool:
    """Whether a word means something to a tool; `filled` are the names that were given a value."""
    word = reading.word(at)
    if offer.destroys:
        return _fits_deletion(offer, reading, at, filled)
    if at == reading.head and (reading.action or reading.meant[at]):
        return does(offer, reading)
    if word in FILLERS or reading.meant[at] & offer.actions:
        return True
    shows = word in SHOWING and not offer.acts
    shows = shows or (word, reading.word(at - 1)) == ("there", "are")
    return shows or reading.topics[at] in offer.about or reading.topics[at] in filled


def _fits_deletion(offer: Offer, reading: Reading, at: int, filled: AbstractSet[str]) -> bool:
    """Whether it is the order itself: next to nothing may stand beside that and its one object."""
    word = reading.word(at)
    if at == reading.head:
        return Action.DELETE in reading.action and does(offer, reading)
    pairs = ((word, reading.word(at + 1)), (reading.word(at - 1), word))
    if word in ARTICLES or word == "please" or not _AFTER_DELETING.isdisjoint(pairs):
        return True
    noun = not reading.meant[at] and reading.topics[at] in offer.named
    return noun or reading.topics[at] in filled
