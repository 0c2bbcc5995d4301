"""How `openfang mcp` comes by a server: the daemon's, that of another `openfang mcp`, or its own.

Whoever serves a home listens on a private socket in it. The daemon is asked first; where there is
none, the first who takes the lock opens the home itself, and serves the others too. A process that
finds somebody imports nothing heavy.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
from collections import deque
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.app.stdio.hello import (
    DAEMON_SOCKET,
    FAREWELL,
    HOST_SOCKET,
    hello_line,
    read_refusal,
)
from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.host.private_socket import dialled, streams
from openfang.protocols.mcp.framing import Frame, Framing, Unframer, framed
from openfang.storage.processes import gone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.app.home.paths import Home
    from openfang.app.stdio.hello import Hello
    from openfang.protocols.mcp.framing import Framed

_log = logging.getLogger("openfang.mcp")
Stop: TypeAlias = "Callable[[], None]"
_CHUNK: Final = 65_536
_LONGEST_ANSWER: Final = 256 << 20
_DAEMON: Final = "daemon"
_LOCK: Final = "mcp.lock"
_HELLO_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 30.0
_RESTART_SECONDS: Final = 3.0
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.3


@dataclass(slots=True)
class Connection:
    """A server that has said that it serves us."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    daemon: bool
    _unframer: Unframer = field(default_factory=lambda: Unframer(_LONGEST_ANSWER))
    _found: deque[Framed] = field(default_factory=deque["Framed"])

    def send(self, line: bytes) -> None:
        """Pass a line on."""
        if not self.writer.is_closing():
            self.writer.write(framed(line, Framing.LINE))

    async def has_room(self) -> bool:
        """Wait until the server has taken most of it; false if it takes nothing any more."""
        with suppress(OSError):
            await self.writer.drain()
        return not self.writer.is_closing()

    def hang_up(self) -> None:
        """Say nothing more; what was asked is still answered."""
        with suppress(OSError):
            self.writer.write_eof()

    async def heard(self) -> Framed | None:
        """Wait for what the server says; None when it has said everything."""
        while not self._found:
            try:
                data = await self.reader.read(_CHUNK)
            except OSError:
                return None
            if not data:
                return None
            self._found.extend(self._unframer.feed(data))
        return self._found.popleft()

    async def close(self) -> None:
        """Let go of it."""
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


@dataclass(slots=True)
class Reach:
    """Finds a server for one client, and is one where there is none."""

    home: Home
    environ: Mapping[str, str]
    hello: Hello
    _hosting: asyncio.Future[None] | None = None
    _serving: asyncio.Future[Stop] | None = None

    async def connect(self, lost: Connection | None = None) -> Connection:
        """Find one, or become one. A daemon that was lost may only be starting again."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), _FIRST_PAUSE
        patience = _RESTART_SECONDS if lost and lost.daemon else 0.0
        while (found := await self._found()) is None:
            waited = loop.time() - began
            if waited >= patience and await self._hosted():
                continue
            if waited > _MOST_SECONDS:
                raise HomeError(
                    f"What serves {self.home.path} does not answer.",
                    way_out="openfang status, or end it: openfang stop --kill",
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return found

    async def close(self) -> None:
        """Serve nobody any more; others take over."""
        if self._hosting is None or self._serving is None:
            return
        await asyncio.wait({self._serving, self._hosting}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()()
        await asyncio.wait({self._hosting})

    async def _found(self) -> Connection | None:
        folder = self.home.processes
        return await self._greeted(folder / DAEMON_SOCKET, daemon=True) or await self._greeted(
            folder / HOST_SOCKET, daemon=False
        )

    async def _greeted(self, path: Path, *, daemon: bool) -> Connection | None:
        """Say what is wanted. Who does not answer is on its way out, and passed by."""
        dialling = dialled(path)
        if dialling is None:
            return None
        connection = Connection(*await streams(dialling), daemon)
        connection.send(hello_line(self.hello))
        answer = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_HELLO_SECONDS):
                answer = await connection.heard()
        if not isinstance(answer, Frame) or answer.body == FAREWELL:
            await connection.close()
            return None
        refusal = read_refusal(answer.body)
        if refusal is not None:
            await connection.close()
            raise refusal
        return connection

    async def _hosted(self) -> bool:
        """Open the home ourselves, if nobody else does or has it; false if somebody has."""
        folder = self.home.processes
        if not gone(folder, [_DAEMON]) or (lock := _locked(folder / _LOCK)) is None:
            return False
        await self._host(lock)
        return True

    async def _host(self, lock: int) -> None:
        """Open the home in a thread of its own, with the loop that nodes run on."""
        loop = asyncio.get_running_loop()
        self._serving = serving = loop.create_future()

        def told(stop: Stop) -> None:
            loop.call_soon_threadsafe(serving.set_result, stop)

        self._hosting = loop.run_in_executor(None, _host, self.home, self.environ, told, lock)
        await asyncio.wait({serving, self._hosting}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await self._hosting
        self._hosting.add_done_callback(_tell)


def _tell(hosting: asyncio.Future[None]) -> None:
    """Say why a home was given up that was served already; somebody takes over."""
    if (error := hosting.exception()) is not None:
        _log.error("The home was given up: %s", error)


def _host(
    home: Home, environ: Mapping[str, str], serving: Callable[[Stop], None], lock: int
) -> None:
    gc.disable()  # imports allocate much and free nothing
    try:
        from openfang.app.stdio.host import host  # noqa: PLC0415 - a daemon saves all of it

        host(home, environ, serving)
    finally:
        gc.enable()
        os.close(lock)


def _locked(path: Path) -> int | None:
    """Take a lock for as long as we live; None if somebody has it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
