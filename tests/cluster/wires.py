"""A wire from a node to its database, which can be cut or made slow without either knowing why."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Coroutine, Generator

_MOST = 65_536


@dataclass(slots=True)
class Wire:
    """Passes bytes on, both ways. What is on its way when it is cut stays where it is.

    What was connected when it was cut may stay dead when it is mended, and nobody is told of that.
    """

    socket: str
    port: int = 0
    lag: float = 0.0
    _open: threading.Event = field(default_factory=threading.Event)
    _mended: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def cut(self, *, for_good: bool = False) -> None:
        """Let nothing through; `for_good` is for what is connected now."""
        self._loop.call_soon_threadsafe(self._cut, for_good)

    def _cut(self, for_good: bool) -> None:  # noqa: FBT001 - from another thread
        self._mended.clear()
        if for_good:
            self._mended = asyncio.Event()

    def mend(self) -> None:
        """Let everything through again."""
        self._loop.call_soon_threadsafe(self._mend)

    def _mend(self) -> None:
        self._mended.set()

    def serve(self) -> None:
        """Listen until it is ended; runs in a thread of its own."""
        asyncio.set_event_loop(self._loop)
        self._mended.set()
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._open.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.close()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._joined(reader, writer)
        except OSError:  # there is no server at the other end
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _joined(self, reader: StreamReader, writer: StreamWriter) -> None:
        mended = self._mended
        await mended.wait()
        there, back = await asyncio.open_unix_connection(self.socket)
        try:
            await _first(self._pass_on(reader, back, mended), self._pass_on(there, writer, mended))
        finally:
            for end in (writer, back):
                end.transport.abort()

    async def _pass_on(
        self, reader: StreamReader, writer: StreamWriter, mended: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_MOST):
                await mended.wait()
                if self.lag:
                    await asyncio.sleep(self.lag)
                writer.write(piece)
                await writer.drain()
            await mended.wait()  # that an end has gone is told to nobody either

    @contextmanager
    def running(self) -> Generator[Wire]:
        """Run it beside the test."""
        thread = threading.Thread(target=self.serve, daemon=True)
        thread.start()
        assert self._open.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)


async def _first(*ways: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
