"""The way out of a sandbox whose network we cannot make ourselves: a forwarder inside of it.

It listens on the loopback of the sandbox, carries every connection to the unix socket of our proxy,
and becomes the program once it listens. This costs the start of an interpreter, so `host.network`
comes first. The script is handed over as text: no file of ours has to be visible in the sandbox.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.host.network import BACKLOG, HOST, PORT

if TYPE_CHECKING:
    from collections.abc import Sequence

# Forked twice, the forwarder is a child of the namespace's first process and not of the program.
# What takes long to import waits for the first connection.
_SCRIPT: Final = """
import _socket, posix, sys
path, host, port, backlog = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind((host, port))
listener.listen(backlog)
child = posix.fork()
if child:
    posix.waitpid(child, 0)
    listener.close()
    posix.execv(sys.argv[5], sys.argv[5:])
if posix.fork():
    posix._exit(0)
posix.setsid()
nothing = posix.open("/dev/null", posix.O_RDWR)
for number in (0, 1, 2):
    posix.dup2(nothing, number)
posix.chdir("/")
import select
select.select([listener], [], [])
import asyncio, socket

async def carry(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()

async def connected(reader, writer):
    there = None
    try:
        answers, there = await asyncio.open_unix_connection(path)
        sending = asyncio.ensure_future(carry(reader, there))
        try:
            await carry(answers, writer)
        finally:
            sending.cancel()
    except OSError:
        pass
    finally:
        writer.close()
        if there is not None:
            there.close()

async def main():
    open_socket = socket.socket(fileno=listener.detach())
    server = await asyncio.start_server(connected, sock=open_socket)
    await server.serve_forever()

asyncio.run(main())
"""


def interpreter() -> Path:
    """The interpreter that we run on, without a virtual environment around it."""
    base: object = getattr(sys, "_base_executable", None)
    return Path(os.path.realpath(base if isinstance(base, str) else sys.executable))


def bridged(argv: Sequence[str], unix_socket: Path) -> tuple[str, ...]:
    """Put the forwarder in front of a command whose program is given by its whole path."""
    options = (str(unix_socket), HOST, str(PORT), str(BACKLOG))
    return (str(interpreter()), "-I", "-S", "-c", _SCRIPT, *options, *argv)
