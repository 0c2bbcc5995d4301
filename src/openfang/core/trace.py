"""The call chain: who called whom on the way here, how deep, until when (C8)."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import field, replace
from typing import TYPE_CHECKING

from openfang.core.ids import random_hex
from openfang.core.labels import Labels
from openfang.core.values import dataclass, value

if TYPE_CHECKING:
    from openfang.core.purse import Purse

_TRACEPARENT = re.compile(r"\A([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?\Z")
_VISIBLE = re.compile(r"\A[\x21-\x7e]{1,128}\Z")
_ANCESTOR = re.compile(r"\A[\x21-\x7e]{1,200}\Z")
_MOST_ANCESTORS = 64
_AT = "@"
_INVALID_VERSION = "ff"
CURRENT_TRACE: ContextVar[str] = ContextVar("openfang_trace", default="")


@value
class Told:
    """What somebody says of the chain that their call is part of. None is not said.

    `token` is the same under a signature, which nobody has looked at yet.
    """

    depth: int = 1
    ancestors: tuple[str, ...] = ()
    seconds: float | None = None
    calls: int | None = None
    usd: float | None = None
    labels: Labels = Labels.NONE
    token: str = ""

    @property
    def inside(self) -> bool:
        """Whether the call is said to be made inside another."""
        return self.depth > 1 or bool(self.ancestors)


@value
class Judged:
    """What is believed of a claim: `node` signed it, or nobody did. `asks` is its own number.

    `purse` holds what it leaves of the budgets, until `ends` by our clock.
    """

    told: Told
    node: str = ""
    asks: str = ""
    purse: Purse | None = None
    ends: float | None = None


@dataclass(slots=True)
class Claim:
    """What one request says of its chain. It is judged once: a signature is good for one look."""

    told: Told
    judged: Judged | None = None


@value
class Chain:
    """Trace, ancestors and depth of one call. The first call has depth 1.

    `parent` is the span that this one was begun in, here or wherever it comes from. `purse` is what
    whoever sent it left of its budgets. `counted` names the chain that it counts
    in, where that is another than it says. `claims` are what was said of it, judged further in.
    """

    trace_id: str
    span_id: str
    depth: int = 1
    ancestors: tuple[str, ...] = ()
    deadline: float | None = None
    starry_id: str | None = None
    shared: bool = False
    counted: str = ""
    parent: str = ""
    purse: Purse | None = field(default=None, compare=False, repr=False)
    claims: tuple[Claim, ...] = field(default=(), compare=False, repr=False)

    @property
    def trace(self) -> str:
        """What every hop keeps."""
        return self.starry_id or self.trace_id

    @property
    def key(self) -> str:
        """What the chain is counted by."""
        return self.counted or self.starry_id or self.trace_id

    @property
    def traceparent(self) -> str:
        """The W3C form."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def later(self, seconds: float) -> Chain:
        """Give the chain back the time in which it waited for a person."""
        if not seconds or self.deadline is None:
            return self
        return replace(self, deadline=self.deadline + seconds)

    def deeper(self, ancestor: str, *, deadline: float | None = None) -> Chain:
        """Take one hop: the deadline can only come nearer."""
        known = [moment for moment in (self.deadline, deadline) if moment is not None]
        return replace(
            self,
            span_id=random_hex(8),
            parent=self.span_id,
            depth=self.depth + 1,
            ancestors=(*self.ancestors, ancestor),
            deadline=min(known) if known else None,
            shared=True,
        )

    def onward(self, ancestor: str) -> Chain:
        """Take the hop to a peer: what it does is begun in the span of the call itself."""
        return replace(
            self, depth=self.depth + 1, ancestors=(*self.ancestors, ancestor), shared=True
        )


def new_chain() -> Chain:
    """Start a chain that nobody else knows of."""
    chance = random_hex(24)
    return Chain(trace_id=chance[:32], span_id=chance[32:])


def read_ancestors(text: str) -> tuple[str, ...]:
    """Read who called whom before, from a list with commas; what is no name is dropped."""
    return tuple(filter(_ANCESTOR.match, map(str.strip, text.split(","))))[:_MOST_ANCESTORS]


def abroad(ancestors: tuple[str, ...], node: str) -> tuple[str, ...]:
    """Name who waits as other nodes should know them: two nodes may have agents of one name."""
    return tuple(name if _AT in name else f"{name}{_AT}{node}" for name in ancestors)


def at_home(ancestors: tuple[str, ...], node: str) -> tuple[str, ...]:
    """Name who waits as this node knows them."""
    here = f"{_AT}{node}"
    if not any(name.endswith(here) for name in ancestors):
        return ancestors
    return tuple(name.removesuffix(here) for name in ancestors)


def both_known(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Name all who wait where two say it: nobody is forgotten because another list is longer."""
    if not (one and other):
        return one or other
    most, rest = (one, other) if len(one) >= len(other) else (other, one)
    return (*(name for name in rest if name not in most), *most)


def read_chain(
    *,
    traceparent: str | None = None,
    starry_id: str | None = None,
    depth: int = 1,
    ancestors: tuple[str, ...] = (),
    told: Told | None = None,
) -> Chain:
    """Continue what a peer sent: malformed starts a new chain, depth is never lowered."""
    chance, (trace_id, parent) = random_hex(24), _trace_in(traceparent) if traceparent else ("", "")
    starry = starry_id if starry_id and _VISIBLE.match(starry_id) else None
    if told is None and (depth > 1 or ancestors):
        told = Told(depth=depth, ancestors=ancestors)
    waiting = told.ancestors[:_MOST_ANCESTORS] if told else ()
    return Chain(
        trace_id=trace_id or chance[:32],
        span_id=chance[32:],
        depth=max(told.depth, len(waiting) + 1) if told else 1,
        ancestors=waiting,
        starry_id=starry,
        shared=bool(trace_id or starry or told),
        parent=parent,
        claims=(Claim(told),) if told else (),
    )


def _trace_in(traceparent: str) -> tuple[str, str]:
    """Read the trace and the span that something was begun in; nothing, where it makes no sense."""
    match = _TRACEPARENT.match(traceparent.strip().lower())
    if not match or match[1] == _INVALID_VERSION:
        return "", ""
    return (match[2], match[3]) if int(match[2], 16) and int(match[3], 16) else ("", "")


def joined(chain: Chain, other: Chain) -> Chain:
    """Go on with a chain of which something is told in another place as well: both count."""
    if chain is other or not other.shared:
        return chain
    ancestors = both_known(chain.ancestors, other.ancestors)
    return replace(
        chain,
        trace_id=chain.trace_id if chain.shared else other.trace_id,
        parent=chain.parent if chain.shared else other.parent,
        starry_id=chain.starry_id or other.starry_id,
        ancestors=ancestors,
        depth=max(chain.depth, other.depth, len(ancestors) + 1),
        shared=True,
        claims=(*chain.claims, *other.claims),
    )
