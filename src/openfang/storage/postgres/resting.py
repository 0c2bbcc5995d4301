"""A database on a server for a command that runs no event loop: what is read is waited for."""

from __future__ import annotations

import asyncio
from dataclasses import field
from typing import TYPE_CHECKING, Any

from openfang.core.values import dataclass
from openfang.storage.postgres.dialect import storable
from openfang.storage.postgres.pool import Pool
from openfang.storage.postgres.reading import read_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Dialect
    from openfang.storage.postgres.address import Address


@dataclass(slots=True)
class Resting:
    """One connection, on a loop that goes round only while something is read."""

    path: Address
    dialect: Dialect = "postgres"
    _pool: Pool = field(init=False)
    _runner: asyncio.Runner = field(init=False, default_factory=asyncio.Runner)

    def __post_init__(self) -> None:
        self._pool = Pool(self.path, size=1)

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query."""
        return self.read_now(sql, parameters, most=most)

    def read_now(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query."""
        given = storable(parameters)
        return self._runner.run(self._pool.read(lambda one: read_on(one, sql, given, most)))

    def close(self) -> None:
        """Give the connection back."""
        self._runner.run(self._pool.aclose())
        self._runner.close()
