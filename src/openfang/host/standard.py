"""Our own standard input and output as streams, whatever they are: pipes, files, a terminal.

From then on they are out of everybody else's reach: what any code prints goes to standard error,
and no child inherits them.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from contextlib import suppress
from dataclasses import field
from threading import Thread
from typing import Final

from openfang.core.values import dataclass

_CHUNK: Final = 65_536
_LAST_SECONDS: Final = 5.0
_STDIN, _STDOUT, _STDERR = 0, 1, 2


@dataclass(slots=True)
class Standard:
    """Where our client is."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _copying: list[Thread] = field(default_factory=list[Thread])

    async def close(self) -> None:
        """Let what was written arrive, if anybody takes it."""
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self.writer.wait_closed()
        for thread in self._copying:
            await asyncio.to_thread(thread.join, _LAST_SECONDS)


@dataclass(frozen=True, slots=True)
class Taken:
    """Both, out of everybody else's reach."""

    given: int
    wanted: int

    async def open(self) -> Standard:
        """Read from the one, write to the other."""
        copying: list[Thread] = []
        given = self.given if _is_stream(self.given) else _source(self.given)
        wanted = self.wanted if _is_stream(self.wanted) else _target(self.wanted, copying)
        return Standard(await _reading(given), await _writing(wanted), copying)


def take_standard() -> Taken:
    """Take both over, once, and before anything else is opened that could get their numbers."""
    for number in (_STDIN, _STDOUT, _STDERR):
        _see_to(number)
    taken = Taken(os.dup(_STDIN), os.dup(_STDOUT))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    os.dup2(_STDERR, _STDOUT)
    sys.stdout = sys.stderr
    return taken


def _see_to(number: int) -> None:
    """Open what whoever started us has closed; of all that are free it gets the lowest number."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def _is_stream(handle: int) -> bool:
    """Whether the loop can wait for it, and nobody minds that writing no longer waits."""
    status = os.fstat(handle)
    shared = os.path.samestat(status, os.fstat(_STDERR))
    return not shared and (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode))


def _source(handle: int) -> int:
    """Read a file by a thread of its own, into a pipe; it may wait for a person for ever."""
    ours, theirs = os.pipe()
    Thread(target=_copy, args=(handle, theirs), daemon=True).start()
    return ours


def _target(handle: int, copying: list[Thread]) -> int:
    """Write a file by a thread of its own, out of a pipe."""
    theirs, ours = os.pipe()
    thread = Thread(target=_copy, args=(theirs, handle), daemon=True)
    thread.start()
    copying.append(thread)
    return ours


def _copy(source: int, target: int) -> None:
    with suppress(OSError):
        while data := os.read(source, _CHUNK):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(target, rest) :]
    os.close(source)
    os.close(target)


async def _reading(handle: int) -> asyncio.StreamReader:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(handle, "rb", 0)
    )
    return reader


async def _writing(handle: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    # It never reads: but a stream can be waited for with such a protocol only.
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(handle, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
