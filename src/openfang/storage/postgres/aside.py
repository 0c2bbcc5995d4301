"""A connection on a loop of its own, in a thread, for whoever looks something up without awaiting.

Keys and frozen specs are looked up so: seldom, since who looked remembers it for a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from openfang.storage.postgres.address import CONNECT_SECONDS, STATEMENT_SECONDS
from openfang.storage.postgres.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

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
