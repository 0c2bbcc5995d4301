"""A child that speaks in lines of JSON over its standard input and output, for as long as it lives.

Each line is decoded where it is read and handed on at once: no queue, no task between. What the
child prints besides is no reason to give up on it; what cannot be understood any more (a line
without end, a closed pipe, its death) is told once, with the reason.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import replace
from fcntl import ioctl
from struct import Struct
from termios import FIONREAD
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from anyio import CancelScope

from openfang.host.chatter import Chatter
from openfang.host.process import Child, Launch, started
from openfang.protocols.mcp.messages import MAX_MESSAGE, salvage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

MAX_LINE: Final = MAX_MESSAGE
NOISE_SAID: Final = 20
_SHORTEST: Final = 10  # {"id":1,x}
_BLANK: Final = b"\xef\xbb\xbf \t\r"
_HIGH: Final = 1 << 20
# How long the exit code may follow a pipe that closed: both have the same cause, most often.
_LAST_WORD: Final = 0.05
# Whoever gave us more than this to think about is not listened to for as long as that took.
_THOUGHT: Final = 0.01
_LONGEST_REST: Final = 2.0
_INT: Final = Struct("i")
_INPUT_ENDED: Final = 0.25
_TERMINATED: Final = 0.15


class Listener(Protocol):
    """Who is told what a child says. None of these may raise, or take long."""

    def heard(self, message: object) -> None:
        """Take a message: a decoded object, a list, or what is left of one that is broken."""
        ...

    def complained(self, line: str) -> None:
        """Take a line for people: of its standard error, or one that is no message."""
        ...

    def gone(self, reason: str) -> None:
        """Hear, once, that nothing more will come."""
        ...


class Gone(Exception):  # noqa: N818 - it reads as what it is
    """The child cannot be spoken to any more; the message says why."""


class Lines(Child):
    """A running child and its two pipes. `reason` is empty while it can be spoken to."""

    def __init__(self, listener: Listener, limit: int = MAX_LINE) -> None:
        super().__init__()
        self.reason = ""
        self.noise = 0
        self._listener = listener
        self._limit = limit
        self._line = bytearray()
        self._chatter = Chatter(listener.complained)
        self._writer: _Writer | None = None

    def connect(self) -> None:
        """Hear of its output and of its end, and be able to write to it."""
        super().connect()
        if self.process.stdin is not None:
            self._writer = _Writer(self.process.stdin.fileno(), self._unheard)

    async def send(self, line: bytes) -> None:
        """Write a line, when the child has taken most of those before it."""
        while not self.reason and self._writer and self._writer.full:
            await self._writer.wait_for_room()
        self.post(line)

    def post(self, line: bytes) -> None:
        """Write a line without waiting for the child to take it."""
        if self.reason or self._writer is None:
            raise Gone(self.reason)
        self._writer.write(line + b"\n")

    @property
    def crowded(self) -> bool:
        """Whether the child has long taken nothing: a line that can be spared should be."""
        return self._writer is not None and self._writer.waiting > 2 * _HIGH

    @property
    def heeded(self) -> bool:
        """Whether the child has read anything, as long as it is held."""
        return self._writer is not None and self._writer.heeded

    def received(self, fd: int, data: bytes) -> None:
        """Take what the child wrote."""
        if fd == 2:  # noqa: PLR2004 - standard error
            self._chatter.feed(data)
        elif not self.reason:
            began = time.perf_counter()
            self._split(data)
            thought = time.perf_counter() - began
            if thought > _THOUGHT:
                self.rest(1, min(thought, _LONGEST_REST))

    def hung_up(self, fd: int) -> None:
        """Hear that a pipe was closed: mostly because the child has ended."""
        if fd == 1:
            self._break_soon("It closed its standard output")

    async def leave(self) -> None:
        """Ask the child to end: by the end of its input, then by a signal."""
        self._break("The connection was closed")
        if self._writer is not None:
            self._writer.forget()
            self._writer = None
        if self._input is not None:
            self._input.close()
        if not await self._ends(_INPUT_ENDED):
            self.process.send_signal(signal.SIGTERM)
            await self._ends(_TERMINATED)

    async def _ends(self, patience: float) -> bool:
        with anyio.move_on_after(patience):
            await self.exited.wait()
        return self.exited.is_set()

    def _ended(self) -> None:
        super()._ended()
        self.read_what_is_there()
        self._chatter.end_line()
        self._break(_in_words(self.returncode))

    def _unheard(self) -> None:
        self._break_soon("It closed its standard input")

    def _break_soon(self, reason: str) -> None:
        asyncio.get_running_loop().call_later(_LAST_WORD, self._break, reason)

    def _break(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            self._line = bytearray()
            if self._writer is not None:
                self._writer.make_room()
            self._listener.gone(reason)

    def _split(self, data: bytes) -> None:
        """Find the lines; only new bytes are searched, so that a long line costs its length."""
        *whole, rest = data.split(b"\n")
        if whole and self._line:
            first, self._line = self._line, bytearray()
            first += whole.pop(0)
            self._take(first)
        for line in whole:
            if line:
                self._take(line)
        self._line += rest
        if len(self._line) > self._limit:
            self._too_long()

    def _take(self, line: bytes | bytearray) -> None:
        if len(line) > self._limit:
            self._too_long()
        if self.reason:
            return
        message = _message(line)
        if message is not None:
            self._listener.heard(message)
        elif line.strip():
            self._no_message(line)

    def _too_long(self) -> None:
        self._break(f"It wrote a line of more than {self._limit} bytes")

    def _no_message(self, line: bytes | bytearray) -> None:
        self.noise += 1
        if self.noise <= NOISE_SAID:
            self._chatter.feed(b"[stdout] " + line[:_HIGH] + b"\n")


class _Writer:
    """The pipe that the child reads from; what it has not taken yet waits here."""

    def __init__(self, fd: int, broken: Callable[[], None]) -> None:
        self._fd = fd
        self._broken = broken
        self._queue = deque[memoryview]()
        self._room = asyncio.Event()
        self._writing = False
        self._closed = False
        self._written = 0
        self.waiting = 0

    @property
    def heeded(self) -> bool:
        unread = bytearray(_INT.size)
        ioctl(self._fd, FIONREAD, unread)
        return self._written > _INT.unpack(unread)[0]

    @property
    def full(self) -> bool:
        return self._closed or self.waiting > _HIGH

    def write(self, data: bytes) -> None:
        if self._closed:
            return
        self._queue.append(memoryview(data))
        self.waiting += len(data)
        if not self._writing:
            self._flush()

    async def wait_for_room(self) -> None:
        self._room.clear()
        await self._room.wait()

    def make_room(self) -> None:
        self._room.set()

    def forget(self) -> None:
        self._queue.clear()
        self.waiting = 0
        self._watch(on=False)

    def _ready(self) -> None:
        self._flush()
        if not self._queue:
            self._watch(on=False)
        if not self.full:
            self._room.set()

    def _flush(self) -> None:
        try:
            while self._queue:
                self._write_some()
        except BlockingIOError:
            self._watch(on=True)
        except OSError:
            self._closed = True
            self.forget()
            self._broken()

    def _write_some(self) -> None:
        first = self._queue[0]
        written = os.write(self._fd, first)
        self.waiting -= written
        self._written += written
        if written == len(first):
            self._queue.popleft()
        else:
            self._queue[0] = first[written:]

    def _watch(self, *, on: bool) -> None:
        if on and not self._writing:
            asyncio.get_running_loop().add_writer(self._fd, self._ready)
        elif self._writing and not on:
            asyncio.get_running_loop().remove_writer(self._fd)
        self._writing = on


@asynccontextmanager
async def open_lines(
    launch: Launch, listener: Listener, *, limit: int = MAX_LINE
) -> AsyncGenerator[Lines]:
    """Start a child and hold it; on the way out it is asked to end, then made to."""
    async with started(replace(launch, stdin=b""), Lines(listener, limit)) as child:
        try:
            yield child
        finally:
            with CancelScope(shield=True):
                await child.leave()


def _message(line: bytes | bytearray) -> object:
    """Decode what may be a message; most noise is told by how it begins and ends."""
    body = line if line[0] in b"{[" and line[-1] in b"}]" else line.strip(_BLANK)
    if not body or body[0] not in b"{[":
        return None
    if len(body) < _SHORTEST and body[-1] not in b"}]":
        return None
    return salvage(body)


def _in_words(code: int | None) -> str:
    if code is None:
        return "It ended"
    if code >= 0:
        return f"It ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"It was ended by the signal {name}"
