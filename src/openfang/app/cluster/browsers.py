"""Browsers that are signed in, among several nodes: whoever is asked knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.edges.web.signed import IDLE, MOST, Open
from openfang.storage import browsers
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.storage.state import Statement

_PURPOSE: Final = "web-browsers"


class SharedBrowsers:
    """Those of all nodes."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.pepper = parts.master.derive(_PURPOSE)

    async def find(self, mark: bytes) -> Open | None:
        """Find one."""
        found = await browsers.find(self._parts.database, mark.hex())
        return None if found is None else Open(bytes.fromhex(found[0]), found[1], found[2])

    async def keep(self, mark: bytes, signed: Open) -> None:
        """Keep one as it is now, and none that is over."""
        kept = browsers.keep(mark.hex(), signed.masked.hex(), signed.used, signed.ends)
        await self._write(kept, browsers.drop_over(self._parts.clock.time_ns(), IDLE, MOST))

    async def drop(self, mark: bytes) -> None:
        """Forget one."""
        await self._write(browsers.drop(mark.hex()))

    async def _write(self, *statements: Statement) -> None:
        await self._parts.writer.write(Unit(statements=statements))
