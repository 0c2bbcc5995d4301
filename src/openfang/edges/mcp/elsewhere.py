"""What other nodes have of a client, where several share a database: its session, a parked call.

Whatever lives between two requests lives in one process. A request for what another node has is
handed to it whole; what a node had that is gone is taken over by whoever is asked for it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from openfang.core.errors import Rejected
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.context import Talk
    from openfang.edges.mcp.ports import Place

MISDIRECTED: Final = 421


@value
class Known:
    """A session as all nodes know it. `generation` counts those that have had it."""

    id: str
    caller: str
    place: Place
    talk: Talk
    generation: int = 0


class Handed(Enum):
    """What became of a request that another node was to answer."""

    ANSWERED = auto()
    LOST = auto()
    """It was sent, and that node has gone: it may have had an effect."""
    GONE = auto()
    """That node is not there; nothing was sent."""


class Elsewhere(Protocol):
    """The other nodes."""

    @property
    def leaving(self) -> bool:
        """Whether this node is to have nothing any more that another one could have."""
        ...

    def passed(self, came: Came) -> bool:
        """Whether another node handed this request to us; a false claim of that is refused."""
        ...

    async def hand(self, came: Came, node: str) -> Handed:
        """Have another node answer a request that was not handed on before."""
        ...

    async def seek(self, came: Came, number: str, place: Place) -> Known | Handed | None:
        """Have the node answer that has this session, or take it over; nothing if it has ended."""
        ...

    async def keep(self, known: Known) -> None:
        """Note a session of ours as it is now."""
        ...

    async def release(self, known: Known) -> None:
        """Let another node have a session of ours."""
        ...

    async def drop(self, number: str) -> None:
        """Note that a session of ours has ended."""
        ...

    async def moved(self) -> Sequence[str]:
        """Wait until another node may have taken over some of ours, and name those that it has."""
        ...

    async def renew(self, used: Sequence[str]) -> None:
        """Note that sessions of ours are used, and forget those of anybody that are not."""
        ...


def misdirected() -> Rejected:
    """Tell the node that handed a request to us that it has to look again."""
    return Rejected(
        "What this request belongs to is on another node.",
        status=MISDIRECTED,
        rule="misdirected",
        way_out="send it again: it was not worked on",
    )
