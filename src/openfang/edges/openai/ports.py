"""What the edge is handed besides the node: where what is large is kept until it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Caller
    from openfang.core.results import Part


class Shelf(Protocol):
    """Keeps what travels beside a call."""

    async def keep(self, caller: Caller, parts: Sequence[Part]) -> Sequence[Part]:
        """Put the large ones aside for this caller; each comes back as it goes into the call."""
        ...
