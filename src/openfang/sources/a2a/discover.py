"""Finds an agent's card under its address."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openfang.core.errors import SourceFailed
from openfang.sources.a2a.card import read_card, seed_at
from openfang.sources.a2a.shapes import object_in
from openfang.sources.a2a.wire import NoAgent

if TYPE_CHECKING:
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.wire import Wire

_PLACES: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_LARGEST: Final = 1_000_000
_OK: Final = 200
_NOT_MODIFIED: Final = 304


async def discover(wire: Wire, known: Card | None = None) -> Card:
    """Read the card: the current one, else the seed's. One that is `known` may come back as it is.

    An address that ends in `.json` is that of the card itself.
    """
    return await _published(wire, wire.reached.url.rstrip("/"), known)


async def find(wire: Wire) -> Card:
    """Read the card of an agent by any address: that of the card, or the one that it names.

    One that nobody has a card of is spoken to in the first dialect, which can do without.
    """
    base = wire.reached.url.rstrip("/")
    try:
        return await discover(wire)
    except NoAgent:
        if base == wire.origin or base.endswith(".json"):
            raise
    with suppress(SourceFailed):  # what is wrong there is no concern of this agent
        card = await _published(wire, wire.origin)
        if any(one.url.rstrip("/") == base for one in card.interfaces):
            return card
    return seed_at(base)


async def _published(wire: Wire, base: str, known: Card | None = None) -> Card:
    places = [base] if base.endswith(".json") else [f"{base}{place}" for place in _PLACES]
    missed: list[NoAgent] = []
    for place in places:
        try:
            return await _read(wire, place, known)
        except NoAgent as wrong:
            missed.append(wrong)
    raise missed[0]


async def _read(wire: Wire, place: str, known: Card | None) -> Card:
    tag = {"If-None-Match": known.etag} if known is not None and known.etag else {}
    status, found, etag = await wire.ask("GET", place, tag, limit=_LARGEST)
    if status == _NOT_MODIFIED and known is not None and tag:
        return known
    if status != _OK:
        raise NoAgent(f"{place} answered with status {status}", status=status)
    card = object_in(found)
    if not card:
        raise NoAgent(f"{place} holds no card: it is no JSON object")
    return read_card(card, place, etag)
