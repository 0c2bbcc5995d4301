"""A socket that is its owner's alone: in a folder that nobody else may enter, and asked who calls.

Its path may be longer than an address can be: it is reached through its folder. A process that only
passes messages on imports this: nothing heavy is.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_BACKLOG: Final = 128
_CREDENTIALS: Final = Struct("3i")
_ROOT: Final = 0
_PAUSE: Final = 0.05


def listen_privately(path: Path) -> socket.socket:
    """Listen there, in the place of whoever listened before. Blocks."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        os.fchmod(made.fileno(), 0o600)
        with _Folder(path) as address:
            made.bind(address)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def forget(path: Path, listener: socket.socket) -> None:
    """Stop listening, and take the name away. Blocks."""
    listener.close()
    path.unlink(missing_ok=True)


async def accepted(listener: socket.socket) -> socket.socket:
    """Wait for somebody whom the socket is for."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError:
            # Out of files, most likely: whoever holds them lets go of them by and by.
            await asyncio.sleep(_PAUSE)
            continue
        if _is_ours(connection):
            return connection
        connection.close()


def dialled(path: Path) -> socket.socket | None:
    """Connect to who listens there; None if nobody does, or somebody else."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    with suppress(OSError):
        with _Folder(path) as address:
            made.connect(address)
        if _is_ours(made):
            return made
    made.close()
    return None


async def streams(
    connection: socket.socket,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Read from a connection, and write to it."""
    return await asyncio.open_unix_connection(sock=connection)


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end is this user, or root, who may do everything anyway."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(found)
    return uid in (_ROOT, os.geteuid())


class _Folder:
    """The folder of a path held open: what lies in it has a short name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def __enter__(self) -> str:
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        self._handle = os.open(self._path.parent, flags)
        return f"/proc/self/fd/{self._handle}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
