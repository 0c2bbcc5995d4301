"""What people do with schedules: list, make, change and run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.app.calling import Calling
from openfang.app.schedules.shown import CREATE, made_by, schedule_body
from openfang.core.session import NO_OPTIONS
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Scheduling(Calling):
    """The schedules that one caller sees."""

    async def schedules(self) -> Sequence[Mapping[str, Any]]:
        """List schedules, oldest first: one's own, or all for who watches."""
        found = await self.parts.schedules.seen_by(self.caller)
        return [await schedule_body(self.parts, one) for one in found]

    async def schedule(self, schedule_id: str) -> Mapping[str, Any]:
        """Read one; another caller's does not exist."""
        found = await self.parts.schedules.find(self.caller, schedule_id)
        return await schedule_body(self.parts, found)

    async def create_schedule(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have an agent told something at a later time, as the built-in tool does."""
        return made_by(await self.parts.invoke(self.make(CREATE, wanted, NO_OPTIONS)))

    async def change_schedule(self, schedule_id: str, act: str) -> Mapping[str, Any]:
        """Delete, pause or resume one, or let it run now."""
        changed = await self.parts.schedules.act(self.caller, schedule_id, act)
        return await schedule_body(self.parts, changed)
