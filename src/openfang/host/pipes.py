"""The pipes to a child and from it, on the loop. No transports: uvloop closes a file twice."""

from __future__ import annotations

import asyncio
import os
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK: Final = 65_536
_PIPEFULS: Final = 16  # a pipe holds one, or as many as its owner asked for, up to a megabyte


class Output:
    """One pipe that the child writes into."""

    def __init__(
        self, pipe: IO[bytes], received: Callable[[bytes], None], hung_up: Callable[[], None]
    ) -> None:
        self._pipe = pipe
        self._received = received
        self._hung_up = hung_up
        self.closed = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)
        self._listen()

    def _listen(self) -> None:
        if not self.closed.is_set():
            asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._ready)

    def rest(self, seconds: float) -> None:
        """Do not listen for a while."""
        if not self.closed.is_set():
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._pipe.fileno())
            loop.call_later(seconds, self._listen)

    def read_what_is_there(self) -> None:
        """Take what waits in it now, and no more: somebody may go on writing."""
        for _ in range(_PIPEFULS):
            if self.closed.is_set() or not self._ready():
                return

    def _ready(self) -> bool:
        try:
            data = os.read(self._pipe.fileno(), CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._received(data)
        else:
            self.close()
            self._hung_up()
        return bool(data)

    def close(self) -> None:
        """Let go of it."""
        if not self.closed.is_set():
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()
            self.closed.set()


class Input:
    """The pipe that the child reads from."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._rest = memoryview(b"")
        os.set_blocking(pipe.fileno(), False)

    def write(self, data: bytes) -> None:
        """Write all of this as the child takes it, then end its input."""
        self._rest = memoryview(data)
        asyncio.get_running_loop().add_writer(self._pipe.fileno(), self._ready)

    def _ready(self) -> None:
        try:
            self._rest = self._rest[os.write(self._pipe.fileno(), self._rest[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = memoryview(b"")
        if not self._rest:
            self.close()

    def close(self) -> None:
        """End the child's input."""
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_writer(self._pipe.fileno())
            self._pipe.close()
