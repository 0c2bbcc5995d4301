"""Schedules of a daemon, as its client asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.app.remote.addresses import schedule_path
from openfang.app.remote.objects import an_object
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.remote.asking import Asking

SCHEDULES: Final = "/api/schedules"


@dataclass(frozen=True, slots=True)
class RemoteSchedules:
    """The schedules that one caller sees."""

    daemon: Asking

    async def schedules(self) -> Sequence[Mapping[str, Any]]:
        """List schedules, oldest first: one's own, or all for who watches."""
        return await self.daemon.get(SCHEDULES, _all)

    async def schedule(self, schedule_id: str) -> Mapping[str, Any]:
        """Read one; another caller's does not exist."""
        return await self.daemon.get(schedule_path(schedule_id), an_object)

    async def create_schedule(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have an agent told something at a later time, as the built-in tool does."""
        return await self.daemon.act("POST", SCHEDULES, an_object, dict(wanted))

    async def change_schedule(self, schedule_id: str, act: str) -> Mapping[str, Any]:
        """Delete, pause or resume one, or let it run now."""
        path = schedule_path(schedule_id)
        if act == "delete":
            return await self.daemon.act("DELETE", path, an_object)
        return await self.daemon.act("POST", f"{path}/{act}", an_object, {})


def _all(body: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401 - any JSON
    return [an_object(one) for one in body["schedules"]]
