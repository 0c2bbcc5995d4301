"""The labels of files that calls have written, by workspace and path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.labels import Labels
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]


@dataclass(frozen=True, slots=True)
class FileLabelStore:
    """Reads them; the statements below change them."""

    database: Reader

    async def of(self, place: str, path: str) -> Labels:
        """What one file carries."""
        sql = "SELECT labels FROM file_labels WHERE place = ? AND path = ?"
        rows = await self.database.read(sql, (place, path))
        return Labels(rows[0][0]) if rows else Labels.NONE

    async def of_all(self, place: str) -> Labels:
        """What the files of a workspace carry together."""
        found = Labels.NONE
        sql = "SELECT DISTINCT labels FROM file_labels WHERE place = ?"
        for (labels,) in await self.database.read(sql, (place,)):
            found |= labels
        return found


def grow(place: str, path: str, labels: Labels) -> Statement:
    """Add labels to a file."""
    sql = (
        "INSERT INTO file_labels VALUES (?, ?, ?) ON CONFLICT (place, path) DO UPDATE "
        "SET labels = file_labels.labels | excluded.labels"
    )
    return sql, (place, path, int(labels))


def drop(place: str, path: str) -> Statement:
    """Forget what a file carried: it was written anew."""
    return "DELETE FROM file_labels WHERE place = ? AND path = ?", (place, path)
