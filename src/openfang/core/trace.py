"""The call chain: who called whom on the way here, how deep, until when (C8)."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import replace

from openfang.core.ids import random_hex
from openfang.core.values import value

_TRACEPARENT = re.compile(r"\A([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?\Z")
_VISIBLE = re.compile(r"\A[\x21-\x7e]{1,128}\Z")
_ANCESTOR = re.compile(r"\A[\x21-\x7e]{1,200}\Z")
_MOST_ANCESTORS = 64
_AT = "@"
_INVALID_VERSION = "ff"
CURRENT_TRACE: ContextVar[str] = ContextVar("openfang_trace", default="")


@value
class Chain:
    """Trace, ancestors and depth of one call. The first call has depth 1."""

    trace_id: str
    span_id: str
    depth: int = 1
    ancestors: tuple[str, ...] = ()
    deadline: float | None = None
    starry_id: str | None = None
    shared: bool = False

    @property
    def traceparent(self) -> str:
        """The W3C form."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def deeper(self, ancestor: str, *, deadline: float | None = None) -> Chain:
        """Take one hop: the deadline can only come nearer."""
        known = [moment for moment in (self.deadline, deadline) if moment is not None]
        return replace(
            self,
            span_id=random_hex(8),
            depth=self.depth + 1,
            ancestors=(*self.ancestors, ancestor),
            deadline=min(known) if known else None,
            shared=True,
        )


def new_chain() -> Chain:
    """Start a chain that nobody else knows of."""
    chance = random_hex(24)
    return Chain(trace_id=chance[:32], span_id=chance[32:])


def read_ancestors(text: str) -> tuple[str, ...]:
    """Read who called whom before, from a list with commas; what is no name is dropped."""
    names = (name.strip() for name in text.split(","))
    return tuple(filter(_ANCESTOR.match, names))[:_MOST_ANCESTORS]


def abroad(ancestors: tuple[str, ...], node: str) -> tuple[str, ...]:
    """Name who waits as other nodes should know them: two nodes may have agents of one name."""
    return tuple(name if _AT in name else f"{name}{_AT}{node}" for name in ancestors)


def at_home(ancestors: tuple[str, ...], node: str) -> tuple[str, ...]:
    """Name who waits as this node knows them."""
    return tuple(name.removesuffix(f"{_AT}{node}") for name in ancestors)


def read_chain(
    *,
    traceparent: str | None = None,
    starry_id: str | None = None,
    depth: int = 1,
    ancestors: tuple[str, ...] = (),
) -> Chain:
    """Continue what a peer sent: malformed starts a new chain, depth is never lowered."""
    chain = new_chain()
    match = _TRACEPARENT.match(traceparent.strip().lower()) if traceparent else None
    if match and match[1] != _INVALID_VERSION and int(match[2], 16) and int(match[3], 16):
        chain = replace(chain, trace_id=match[2], shared=True)
    if starry_id and _VISIBLE.match(starry_id):
        chain = replace(chain, starry_id=starry_id, shared=True)
    if depth > 1 or ancestors:
        chain = replace(
            chain, depth=max(depth, len(ancestors) + 1), ancestors=ancestors, shared=True
        )
    return chain
