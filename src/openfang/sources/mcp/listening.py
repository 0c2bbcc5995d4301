"""The long request by which a modern server is asked to tell what changes.

When that is to be something else, another request takes its place before the first one ends. One
that the server ends is made again after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from anyio import CancelScope

from openfang.protocols.mcp.errors import RpcError
from openfang.sources.mcp.events import first_of
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.sources.mcp.connection import Connection

_AGREED_SECONDS: Final = 10.0
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 300.0
_STEADY: Final = 60.0


class Listening:
    """Keeps such a request open on one connection, for these addresses among others."""

    def __init__(self, connection: Connection, addresses: Callable[[], Sequence[str]]) -> None:
        self._connection = connection
        self._addresses = addresses
        self._changed = anyio.Event()
        self._moved = anyio.Event()
        self._current: _Round | None = None

    def change(self) -> None:
        """Listen to something else from now on."""
        self._changed.set()

    def acknowledged(self) -> None:
        """Hear that the server has begun to tell."""
        if self._current is not None:
            self._current.settled.set()

    async def names(self, uri: str) -> None:
        """Wait until an address is listened to. Raises what the server says to that."""
        lost = self._connection.lost
        while (current := self._current) is None or uri not in current.addresses:
            await first_of(self._moved, lost)
            self._check()
        await first_of(current.settled, lost)
        self._check()
        if current.refused is not None:
            raise current.refused

    def _check(self) -> None:
        if self._connection.lost.is_set():
            raise Lost(self._connection.reason)

    async def run(self) -> None:
        """Listen for as long as the connection lasts."""
        former, pause = None, _FIRST_PAUSE
        async with anyio.create_task_group() as group:
            while True:
                self._changed = anyio.Event()
                current = self._current = _Round(tuple(self._addresses()))
                self._moved.set()
                self._moved = anyio.Event()
                group.start_soon(current.listen, self._connection)
                with anyio.move_on_after(_AGREED_SECONDS):
                    await current.settled.wait()
                current.settled.set()
                if former is not None:
                    former.scope.cancel()
                former = current
                pause = await self._until_due(current, pause)

    async def _until_due(self, current: _Round, pause: float) -> float:
        """Wait until there is a reason to ask anew; give how long to wait at the next end."""
        began = anyio.current_time()
        if current.refused is not None:
            await self._changed.wait()
            return _FIRST_PAUSE
        await first_of(self._changed, current.ended)
        if self._changed.is_set():
            return pause
        steady = anyio.current_time() - began >= _STEADY
        pause = _FIRST_PAUSE if steady else pause
        with anyio.move_on_after(pause):
            await self._changed.wait()
        return min(_LONGEST_PAUSE, 2 * pause)


class _Round:
    """One request. `settled` once it is agreed to, refused, or not heard of again."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self.addresses = frozenset(addresses)
        self.scope = CancelScope()
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.refused: RpcError | None = None

    async def listen(self, connection: Connection) -> None:
        """Make the request, and wait for its end; nothing to hear has none."""
        try:
            with self.scope:
                if not await connection.listen(sorted(self.addresses)):
                    self.settled.set()
                    await anyio.sleep_forever()
        except RpcError as error:
            self.refused = error
        except Lost:
            pass
        finally:
            self.settled.set()
            self.ended.set()
