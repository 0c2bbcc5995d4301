"""The registry's stores on the home's database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openfang.registry.pins import Pin
from openfang.storage.writer import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.database import Database
    from openfang.storage.writer import Writer


@dataclass(frozen=True, slots=True)
class StoredNames:
    """Wire names as they were first given."""

    database: Database
    writer: Writer

    def load(self) -> Mapping[str, str]:
        """Read all of them."""
        return dict(self.database.read("SELECT tool, wire_name FROM names"))

    def save(self, new: Mapping[str, str]) -> None:
        """Keep these, in this order."""
        sql = (
            "INSERT INTO names VALUES (?, ?) "
            "ON CONFLICT (tool) DO UPDATE SET wire_name = excluded.wire_name"
        )
        self.writer.write_blocking(Unit(statements=tuple((sql, item) for item in new.items())))


@dataclass(frozen=True, slots=True)
class StoredPins:
    """Definitions as they were first seen, or last accepted."""

    database: Database
    writer: Writer

    def load(self) -> Mapping[str, Pin]:
        """Read all of them."""
        sql = "SELECT tool, digest, definition, first_seen FROM pins"
        return {
            row[0]: Pin(tool_id=row[0], digest=row[1], definition=row[2], first_seen=row[3])
            for row in self.database.read(sql)
        }

    def save(self, pins: Sequence[Pin]) -> None:
        """Keep these in place of what was there."""
        sql = "INSERT OR REPLACE INTO pins VALUES (?, ?, ?, ?)"
        rows = ((pin.tool_id, pin.digest, pin.definition, pin.first_seen) for pin in pins)
        self.writer.write_blocking(Unit(statements=tuple((sql, row) for row in rows)))
