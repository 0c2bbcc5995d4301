"""A few connections that many share; what was read on one that broke is read once more."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from openfang.core.values import dataclass
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.errors import Unreachable, explain, is_lost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from openfang.storage.postgres.address import Address

T = TypeVar("T")
CONNECTIONS = 8
"""So many readers at once; one connection more is the writer's."""


@dataclass(slots=True)
class Pool:
    """Lends connections. Who comes while all are lent waits for the first that is given back."""

    address: Address
    size: int = CONNECTIONS
    _free: list[Any] = field(init=False, default_factory=list[Any])
    _lent: set[Any] = field(init=False, default_factory=set[Any])
    _waiting: deque[asyncio.Future[None]] = field(
        init=False, default_factory=deque["asyncio.Future[None]"]
    )
    _count: int = field(init=False, default=0)

    async def read(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do what changes nothing; once more if the connection broke under it."""
        try:
            async with self.connection() as connection:
                return await work(connection)
        except _Broken:
            self.drop_idle()  # one that broke is seldom the only one: the server was restarted
        async with self.connection() as connection:
            return await work(connection)

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Any]:
        """Lend one. What the server says is translated; a broken connection is not given back."""
        connection = await self._take()
        self._lent.add(connection)
        try:
            yield connection
        except Exception as error:
            if is_lost(error) or connection.is_closed():
                connection.terminate()
                said = explain(self.address, error)
                raise _Broken(said.message, way_out=said.way_out) from error
            if _is_servers(error):
                raise explain(self.address, error) from error
            raise
        except BaseException:
            connection.terminate()  # whoever went away left it in the middle of something
            raise
        finally:
            self._lent.discard(connection)
            self._give_back(connection)

    async def _take(self) -> Any:  # noqa: ANN401 - the driver has no types
        while self._count >= self.size and not self._free:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next()
                raise
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
            self._count -= 1
        return await self._open()

    async def _open(self) -> Any:  # noqa: ANN401 - as above
        self._count += 1
        try:
            return await connect(self.address)
        except BaseException:
            self._count -= 1
            self._next()
            raise

    def _give_back(self, connection: Any) -> None:  # noqa: ANN401 - as above
        if connection.is_closed():
            self._count -= 1
        else:
            self._free.append(connection)
        self._next()

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def drop_idle(self) -> None:
        """Throw away those that nobody has: they may be dead, and would be waited for."""
        self._count -= len(self._free)
        for connection in self._free:
            connection.terminate()
        self._free.clear()

    async def aclose(self) -> None:
        """Give all back; who still reads hears of it."""
        free, self._free = self._free, []
        self._count -= len(free)
        for connection in free:
            await _farewell(connection)
        for connection in tuple(self._lent):
            connection.terminate()


class _Broken(Unreachable):
    """The connection is gone, and with it the answer."""


def _is_servers(error: Exception) -> bool:
    return type(error).__module__.startswith("asyncpg")


async def _farewell(connection: Any) -> None:  # noqa: ANN401 - as above
    try:
        await connection.close(timeout=1.0)
    except Exception:  # noqa: BLE001 - of the driver or of the network: it is gone in any case
        connection.terminate()
