"""A database that answers when the test lets it, as a slow server does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from openfang.storage.database import Database
    from openfang.storage.ports import Dialect


@dataclass(slots=True)
class Patient:
    """Reads from a file. While it is held, what was read is answered only when it is let go."""

    database: Database
    asked: list[str] = field(default_factory=list[str])
    dialect: Dialect = "sqlite"
    _go: anyio.Event | None = None

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        found = self.database.read_now(sql, parameters, most=most)
        if self._go is not None:
            await self._go.wait()
        return found

    @contextmanager
    def held(self) -> Generator[None]:
        """Answer nobody inside; then everybody."""
        self._go = go = anyio.Event()
        try:
            yield
        finally:
            self._go = None
            go.set()
