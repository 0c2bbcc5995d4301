"""Where pictures and files of a message stay until the agent reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.app.a2a.parcels import put_aside
from openfang.core.values import dataclass
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.results import Part


@dataclass(frozen=True, slots=True)
class HomeShelf:
    """The home's own database."""

    parts: Parts

    async def keep(self, caller: Caller, parts: Sequence[Part]) -> Sequence[Part]:
        """Put the large ones aside for this caller; each comes back as it goes into the call."""
        now, room = self.parts.clock.time_ns(), self.parts.pipeline.shaper.room
        kept, statements = put_aside(parts, caller.id, now, room)
        if statements:
            await self.parts.writer.write(Unit(statements=tuple(statements)))
        return kept
