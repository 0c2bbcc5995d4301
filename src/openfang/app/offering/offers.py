"""Finding out what is offered to whom: one of these for each node, and what it keeps at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.app.auth.identify import note_refusal_soon
from openfang.app.offering.federation import Federations
from openfang.app.offering.offer import PlacedOffer
from openfang.app.offering.prospects import may_hold_any
from openfang.app.offering.search import SearchSource
from openfang.app.offering.settling import Settling
from openfang.app.offering.subscriptions import Subscriptions
from openfang.app.offering.terms import WHOLE, Places, no_toolset
from openfang.app.offering.views import Views
from openfang.app.offering.watching import Watchers
from openfang.core.errors import NotFound
from openfang.core.ids import Kind
from openfang.edges.mcp.ports import Place

if TYPE_CHECKING:
    from openfang.app.offering.terms import Terms
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.trace import Chain

_EVERYWHERE: Final = Place()
_LONGEST: Final = 300


class Offers:
    """Says what a caller is offered in a place. With it the search of tools is there."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.places = Places(parts)
        self.views = Views(parts)
        self.federations = Federations(parts)
        self.subscriptions = Subscriptions()
        self.settling = Settling(parts)
        self.watchers = Watchers(parts)
        source = SearchSource(
            parts.pipeline.stamper.check,
            lambda caller: self.views.of(caller, _EVERYWHERE, WHOLE),
            lambda: parts.config.results.max_chars,
        )
        parts.add(Kind.BUILTIN, source)

    def __call__(self, caller: Caller, place: Place, chain: Chain) -> PlacedOffer:
        """Say what this caller is offered in this place; one that is not there is on record."""
        try:
            terms = self.places.terms(caller, place)
            if place.toolset and not self._shows(caller, place, terms):
                raise no_toolset(place.toolset)
        except NotFound as error:
            rule = "unknown_agent" if place.agent else "unknown_toolset"
            note_refusal_soon(self.parts, caller.id, rule, error.message[:_LONGEST])
            raise
        return PlacedOffer(self, caller, place, chain)

    def _shows(self, caller: Caller, place: Place, terms: Terms) -> bool:
        """Whether anything in a toolset is there for this caller."""
        view = self.views.of(self.places.bound_to_tools(caller, terms), place, terms)
        return bool(view.tools) or may_hold_any(self.parts, caller, terms)
