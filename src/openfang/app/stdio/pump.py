"""Carries messages between the client on standard input and output and whoever serves the home.

When the server goes away, another is found and told what it has to know; what the client says
meanwhile waits. Nothing heavy is imported here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openfang.app.stdio.hello import FAREWELL
from openfang.core.errors import OpenFangError
from openfang.core.ids import random_hex
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.framing import Frame, Unframer
from openfang.protocols.mcp.relay import Relay, Up

if TYPE_CHECKING:
    from openfang.app.stdio.reach import Connection, Reach
    from openfang.host.standard import Standard
    from openfang.protocols.mcp.framing import Framed

_CHUNK: Final = 65_536
_FULL: Final = 16 << 20


class _Gone(Exception):  # noqa: N818 - it reads as what it is
    """The client takes nothing any more."""


class Pump:
    """One client, and one server after the other."""

    def __init__(self, client: Standard, reach: Reach) -> None:
        self._client = client
        self._reach = reach
        self._relay = Relay(f"openfang-{random_hex(8)}")
        self._inbox = _Inbox()

    async def run(self, connection: Connection) -> None:
        """Carry until the client has ended, and everything that it asked is answered."""
        reading = asyncio.create_task(self._inbox.fill(self._client.reader))
        found: Connection | None = connection
        try:
            while found is not None:
                if await self._carried(found):
                    await self._say(self._relay.ended())
                    return
                await self._say(self._relay.lost())
                found = await self._another(found)
            error = RpcError(INTERNAL_ERROR, "The node went away, and so does this process.")
            await self._say(self._relay.given_up(error))
        except _Gone:
            pass
        finally:
            reading.cancel()

    async def _carried(self, connection: Connection) -> bool:
        """Carry while the server is there; true if the client had ended before that did."""
        asking = asyncio.create_task(self._ask(connection))
        try:
            while (found := await connection.heard()) is not None:
                if isinstance(found, Frame) and found.body == FAREWELL:
                    # What was asked so far is answered; the rest waits for another.
                    asking.cancel()
                    connection.hang_up()
                else:
                    await self._say(self._relay.heard(found))
            return asking.done() and not asking.cancelled() and self._inbox.over
        except asyncio.CancelledError:
            for line in self._relay.cancelled():
                connection.send(line)
            raise
        finally:
            asking.cancel()
            await connection.close()

    async def _ask(self, connection: Connection) -> None:
        """Pass on what the client says, until it has said everything."""
        with suppress(_Gone):
            while (found := await self._inbox.next()) is not None:
                passed = self._relay.said(found)
                if isinstance(passed, Up):
                    connection.send(passed.line)
                else:
                    await self._say(passed.data)
                if not await connection.has_room():
                    return
        connection.hang_up()

    async def _say(self, data: bytes) -> None:
        writer = self._client.writer
        if not data:
            return
        if writer.is_closing():
            raise _Gone
        writer.write(data)
        try:
            await writer.drain()
        except OSError:
            raise _Gone from None

    async def _another(self, lost: Connection) -> Connection | None:
        """Find another server, and tell it everything; none if the client ends meanwhile."""
        while not self._inbox.over:
            try:
                found = await self._connected(lost)
            except OpenFangError as error:
                await self._refuse(RpcError(INTERNAL_ERROR, error.message))
                continue
            if found is not None:
                for line in self._relay.again():
                    found.send(line)
                await self._say(self._relay.news())
                return found
        return None

    async def _connected(self, lost: Connection) -> Connection | None:
        connecting = asyncio.create_task(self._reach.connect(lost))
        ending = asyncio.create_task(self._inbox.ended())
        try:
            await asyncio.wait({connecting, ending}, return_when=asyncio.FIRST_COMPLETED)
            return connecting.result() if connecting.done() else None
        finally:
            ending.cancel()
            connecting.cancel()

    async def _refuse(self, error: RpcError) -> None:
        """Answer what waits; only when there is more, another server is looked for again."""
        await self._say(self._relay.given_up(error))
        while (found := self._inbox.pop()) is not None:
            await self._say(self._relay.refused(found, error))
        await self._inbox.wait()


class _Inbox:
    """What the client has said and nobody has taken yet. It is read as far as there is room."""

    def __init__(self) -> None:
        self._found: deque[Framed] = deque()
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether there is nothing, and nothing will come."""
        return self._ended and not self._found

    async def fill(self, reader: asyncio.StreamReader) -> None:
        """Read everything that the client says."""
        unframer = Unframer()
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                self._put(unframer.feed(data))
                while self._size > _FULL:
                    await self._change()
        self._ended = True
        self._put(unframer.end())

    async def next(self) -> Framed | None:
        """Wait for the next message; None when there is no other."""
        await self.wait()
        return self.pop()

    async def wait(self) -> None:
        """Wait until there is something, or nothing more will come."""
        while not self._found and not self._ended:
            await self._change()

    async def ended(self) -> None:
        """Wait until there is nothing, and nothing will come."""
        while not self.over:
            await self._change()

    def pop(self) -> Framed | None:
        """Take the next message, if there is one now."""
        if not self._found:
            return None
        found = self._found.popleft()
        self._size -= _size(found)
        self._changed.set()
        return found

    def _put(self, found: list[Framed]) -> None:
        self._found.extend(found)
        self._size += sum(map(_size, found))
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _size(found: Framed) -> int:
    return len(found.body) if isinstance(found, Frame) else 0
