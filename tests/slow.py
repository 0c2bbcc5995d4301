"""A database that takes its time: whoever reads gives way, as with one that is not a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from anyio import CapacityLimiter

    from openfang.core.log import Table
    from openfang.storage.ports import Dialect, Look, Storage

T = TypeVar("T")


async def _nothing(sql: str) -> None:
    del sql


@dataclass(slots=True)
class Slow:
    """Gives way before and behind each query; `then` is told of it before the answer is."""

    storage: Storage
    then: Callable[[str], Awaitable[None]] = _nothing

    @property
    def dialect(self) -> Dialect:
        return self.storage.dialect

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        await checkpoint()
        found = await self.storage.read(sql, parameters, most=most)
        await self.then(sql)
        await checkpoint()
        return found

    async def aside(self, look: Look[T], turns: CapacityLimiter | None = None) -> T:
        return await self.storage.aside(look, turns)

    async def query(self, sql: str, *, limit: int) -> list[Table]:
        return await self.storage.query(sql, limit=limit)

    async def aclose(self) -> None:
        await self.storage.aclose()
