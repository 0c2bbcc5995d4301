"""How a call leaves this node: one hop deeper, with what the peer is told of its chain.

What comes back may say how its answer came about. Whoever signs that is believed; anybody else can
only add labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from openfang.core.labels import Labels
from openfang.core.trace import Told, abroad
from openfang.core.values import dataclass
from openfang.protocols.hops.labels import labels_beside
from openfang.protocols.hops.words import CHAIN, HEADER, header_of, trace_words, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Admitted
    from openfang.core.results import Result
    from openfang.core.trace import Chain

_UNKNOWN: Final = "unknown"


class Hop(Protocol):
    """One call on its way to a peer."""

    def words(self) -> dict[str, Any]:
        """Write what the peer is told beside the arguments; a second request is told it anew."""
        ...

    def headers(self) -> dict[str, str]:
        """Write what every request of this call says in its headers."""
        ...

    def back(self, result: Result, beside: Mapping[str, Any]) -> Result:
        """Take an answer, with what stood beside it."""
        ...

    def end(self) -> None:
        """Note that the call is over, however it ended."""
        ...


class Hops(Protocol):
    """Sends calls on their way."""

    node: str

    def depart(self, admitted: Admitted, url: str = "") -> Hop:
        """Begin one; `url` is where it goes, if that is an address."""
        ...


@dataclass(frozen=True, slots=True)
class PlainHop:
    """A hop to somebody who is nobody to us: told, and not believed."""

    chain: Chain
    told: Told

    def words(self) -> dict[str, Any]:
        """Write the trace and the chain."""
        return {**trace_words(self.chain), CHAIN: words_of(self.told)}

    def headers(self) -> dict[str, str]:
        """Write the same as headers."""
        return {**trace_words(self.chain), HEADER: header_of(self.told)}

    def back(self, result: Result, beside: Mapping[str, Any]) -> Result:
        """Add the labels that come with an answer."""
        return labelled(result, beside)

    def end(self) -> None:
        """Nothing is to be noted."""


class Alone:
    """Sends calls on their way from a node that knows of no other."""

    node: str = ""

    def depart(self, admitted: Admitted, url: str = "") -> Hop:
        """Begin one."""
        del url
        chain = admitted.call.chain.onward(admitted.tool.id)
        return PlainHop(chain, told_of(chain, "here", admitted.labels))


def told_of(chain: Chain, node: str, labels: Labels) -> Told:
    """Say what there is to tell of a chain, in names that hold on every node."""
    return Told(depth=chain.depth, ancestors=_names(chain, node), labels=labels)


def _names(chain: Chain, node: str) -> tuple[str, ...]:
    """Name who waits; a chain that is deeper than names are known says so by its length."""
    missing = chain.depth - 1 - len(chain.ancestors)
    return (*(_UNKNOWN for _ in range(missing)), *abroad(chain.ancestors, node))


def labelled(result: Result, beside: Mapping[str, Any]) -> Result:
    """Add what somebody says of their own answer; nothing that they say takes anything away."""
    labels = labels_beside(beside) if beside else Labels.NONE
    return replace(result, labels=result.labels | labels) if labels else result
