"""What files carry: text from outside stays from outside when it comes by way of a file (C9.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.errors import HomeError, SourceFailed
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.safety.paths import components
from openfang.storage.files import drop, grow
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.storage.files import FileLabelStore, Statement
    from openfang.storage.ports import Writes

_KEPT: Final = (
    Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT | Labels.SECRET | Labels.PII | Labels.PRIVATE
)


@dataclass(frozen=True, slots=True)
class Carried:
    """Keeps the labels of what was written into a workspace; `home` may be moved."""

    store: FileLabelStore
    writer: Writes
    home: Path

    async def by(self, root: Path, path: str) -> Labels:
        """What a file carries."""
        return await self.store.of(self._place(root), _plain(root, path))

    async def by_any(self, root: Path) -> Labels:
        """What anything in the workspace carries."""
        return await self.store.of_all(self._place(root))

    async def written(self, root: Path, path: str, labels: Labels) -> None:
        """Keep what a file is about to carry."""
        if kept := labels & _KEPT:
            await self._write(grow(self._place(root), _plain(root, path), kept))

    async def replaced(self, root: Path, path: str, labels: Labels) -> None:
        """Forget what a file carried, if all of it is new and comes from nowhere else."""
        if not labels & _KEPT and await self.by(root, path):
            await self._write(drop(self._place(root), _plain(root, path)))

    def _place(self, root: Path) -> str:
        return str(root.relative_to(self.home) if root.is_relative_to(self.home) else root)

    async def _write(self, statement: Statement) -> None:
        try:
            await self.writer.write(Unit(statements=(statement,)))
        except HomeError as error:
            raise SourceFailed(error.message, way_out=error.way_out) from error


def _plain(root: Path, path: str) -> str:
    return "/".join(components(path, root=str(root)))
