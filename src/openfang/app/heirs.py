"""Whose records a node passes on: its own, and those that a node which is gone has left behind.

Who takes over from a node is kept in the database: a node that is gone in its turn leaves that to
its own heir, and one that comes back has its records to itself again. A file has one node, and no
heirs.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.storage.chains import own_chain
from openfang.storage.state import put_setting
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader, Writes

_HEIR: Final = "heir:"
_LEFT: Final = (
    f"SELECT substr(name, {len(_HEIR) + 1}) FROM settings "  # noqa: S608 - constants
    f"WHERE substr(name, 1, {len(_HEIR)}) = '{_HEIR}' AND value = ? ORDER BY 1"
)
_PASSED: Final = (
    f"UPDATE settings SET value = ? WHERE substr(name, 1, {len(_HEIR)}) = '{_HEIR}' AND value = ?"  # noqa: S608 - constants
)
_BACK: Final = "DELETE FROM settings WHERE name = ?"


@dataclass(slots=True)
class Heirs:
    """The chains that this node answers for."""

    database: Reader
    writer: Writes
    _left: Sequence[str] | None = field(init=False, default=None)

    async def chains(self) -> Sequence[str]:
        """Name them, its own first."""
        own = own_chain(self.database, self.writer.node)
        if not own:
            return (own,)
        if self._left is None:
            await self.writer.write(Unit(statements=((_BACK, (f"{_HEIR}{own}",)),)))
        if self._left is None or self._left:
            found = await self.database.read(_LEFT, (own,))
            self._left = [node for (node,) in found]
        return (own, *self._left)

    async def back(self) -> None:
        """Have its own records to itself again: others may have taken this node for dead."""
        self._left = None

    async def inherit(self, node: str) -> None:
        """Take over from a node that is gone, with what it had taken over itself."""
        own = self.writer.node
        passed = (_PASSED, (own, node))
        await self.writer.write(Unit(statements=(put_setting(f"{_HEIR}{node}", own), passed)))
        if self._left is not None:
            self._left = (node,)
