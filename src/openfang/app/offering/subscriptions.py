"""Which resource of which server somebody has watched, by the address that it named then."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from openfang.core.values import dataclass
from openfang.edges.mcp.ports import Place

Holder: TypeAlias = tuple[str, Place, str]
Watched: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Subscriptions:
    """Remembers them: an address may be another's by the time that it is let go.

    A holder is a caller in a place, with an address. The server's source counts who is left.
    """

    _held: dict[Holder, list[Watched]] = field(default_factory=dict[Holder, list[Watched]])

    def add(self, holder: Holder, watched: Watched) -> None:
        """Note what somebody has watched: a server, and what that calls the resource."""
        self._held.setdefault(holder, []).append(watched)

    def remove(self, holder: Holder) -> Watched | None:
        """Note that it no longer has, and say what it was."""
        held = self._held.get(holder)
        if not held:
            return None
        watched = held.pop()
        if not held:
            del self._held[holder]
        return watched
