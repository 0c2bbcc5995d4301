"""The audit log, for the administrator who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openfang.app.identify import require_admin
from openfang.core.events import AuditEvent
from openfang.storage.log import QUERY_ROWS, Search, Table, query, rows, search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.app.build import Parts
    from openfang.app.verify import Verification
    from openfang.core.calls import Caller

__all__ = ["QUERY_ROWS", "Log", "Search", "Table"]


@dataclass(frozen=True, slots=True)
class Log:
    """Reads for one caller, who must be an administrator. All of it blocks: use a thread."""

    parts: Parts
    caller: Caller

    def __post_init__(self) -> None:
        require_admin(self.parts, self.caller)

    def search(self, wanted: Search) -> list[AuditEvent]:
        """Find the newest entries that match, oldest first."""
        return [AuditEvent.of(row) for row in search(self.parts.database, wanted)]

    def after(self, seq: int) -> Iterator[AuditEvent]:
        """Read every entry after this one, in order."""
        return map(AuditEvent.of, rows(self.parts.database.path, after=seq))

    def sql(self, text: str) -> list[Table]:
        """Run queries that only read: of each the columns' names, and at most `QUERY_ROWS` rows."""
        return query(self.parts.database.path, text)

    def verify(self) -> Verification:
        """Check the whole log against its hashes and its signed checkpoints."""
        from openfang.app.verify import verify  # noqa: PLC0415 - it needs the signing library

        return verify(self.parts)
