"""What a request is answered in the light of: who asks, over which way, in which revision."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from openfang.core.ids import new_id
from openfang.core.values import dataclass, value
from openfang.protocols.mcp.versions import OLDEST, is_modern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.ports import Link, Offer


@dataclass(slots=True, kw_only=True)
class Talk:
    """What a client of the handshake era has said of itself, for as long as it is connected.

    One that never said anything (a single POST) is taken for one of the first revision. All calls
    of a lasting one are one run.
    """

    version: str = OLDEST
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    level: str = ""
    lasting: bool = False
    run: str = field(default_factory=lambda: new_id("run"))
    watched: set[str] = field(default_factory=set[str])


@value
class Context:
    """One request's. A modern one stands alone; an older one is part of a talk.

    `number` is the request's own id: what a subscription tells is tagged with it. `run` is that of
    the connection, where there is one.
    """

    offer: Offer
    link: Link
    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    level: str = ""
    number: int | str | None = None
    run: str | None = None
    talk: Talk | None = None

    @property
    def modern(self) -> bool:
        """Whether the request stands alone."""
        return is_modern(self.version)


def in_talk(offer: Offer, link: Link, talk: Talk) -> Context:
    """Make the context of a request that is part of a talk."""
    return Context(
        offer=offer,
        link=link,
        version=talk.version,
        capabilities=talk.capabilities,
        level=talk.level,
        run=talk.run if talk.lasting else None,
        talk=talk,
    )
