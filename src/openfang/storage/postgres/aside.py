"""A connection on a loop of its own, in a thread, for whoever looks something up without awaiting.

Keys and frozen specs are looked up so: seldom, since who looked remembers it for a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from openfang.storage.postgres.address import CONNECT_SECONDS, STATEMENT_SECONDS
from openfang.storage.postgres.dialect import storable
from openfang.storage.postgres.pool import Pool
from openfang.storage.postgres.reading import read_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from openfang.storage.ports import Dialect
    from openfang.storage.postgres.address import Address

T = TypeVar("T")
_SECONDS = 2 * CONNECT_SECONDS + STATEMENT_SECONDS


@dataclass(slots=True)
class Aside:
    """One reader in a thread, which begins with the first look."""

    address: Address
    _pool: Pool = field(init=False)
    _loop: asyncio.AbstractEventLoop | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._pool = Pool(self.address, size=1)

    def read(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do it there, and wait here."""
        return self._do(self._pool.read(work))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(target=self._loop.run_forever, name="openfang-postgres", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def close(self) -> None:
        """End it."""
        if self._loop is not None:
            self._do(self._pool.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


@dataclass(slots=True)
class Resting:
    """A database on a server for a command that runs no loop: what is read is waited for."""

    path: Address
    dialect: Dialect = "postgres"
    _aside: Aside = field(init=False)

    def __post_init__(self) -> None:
        self._aside = Aside(self.path)

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query."""
        return self.read_now(sql, parameters, most=most)

    def read_now(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query."""
        return self._aside.read(lambda one: read_on(one, sql, storable(parameters), most))

    def close(self) -> None:
        """Give the connection back."""
        self._aside.close()
