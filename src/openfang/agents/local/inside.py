"""What runs inside of a local model's process: the server of llama.cpp, and the way to it.

It is started by path, needs xllamacpp and the standard library alone, and nobody imports it. The
server listens on the loopback of this process; who comes in by the listener that was handed down,
with the key, is carried there: no other network is needed, and strangers hold no thread of the
server's. The first line of the standard input says what to serve and for which key; when that input
ends, all ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib
import json
import os
import socket
import sys
from typing import Any

_CHUNK = 1 << 16
_MOST = 64
_HTTP_THREADS = 4
_HEAD_SECONDS = 10.0
_REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_WARNINGS = 2


def _started(order: dict[str, Any]) -> Any:  # noqa: ANN401 - of a library without types
    """Load the model, and listen. Blocks."""
    xllamacpp: Any = importlib.import_module("xllamacpp")  # without types, and perhaps not there
    params = xllamacpp.CommonParams()
    params.model.path = order["file"]
    params.api_keys = [order["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = order["window"]
    params.n_parallel = 1
    params.n_threads_http = _HTTP_THREADS
    # One core less: the threads wait for one another, and each stands still with the slowest.
    params.cpuparams.n_threads = order["threads"] or max(len(os.sched_getaffinity(0)) - 1, 1)
    params.use_jinja = True
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = _WARNINGS
    return xllamacpp.Server(params)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


class _Door:
    """Lets in who has the key; the server asks for it again, with each request."""

    def __init__(self, key: str, port: int) -> None:
        self._key = f"Bearer {key}".encode()
        self._port = port
        self._room = asyncio.Semaphore(_MOST)

    async def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            if not self._is_keyed(head):
                writer.write(_REFUSED)
                await asyncio.wait_for(writer.drain(), _HEAD_SECONDS)
                return
            async with self._room:
                await self._carried(head, reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    def _is_keyed(self, head: bytes) -> bool:
        fields = (line.partition(b":") for line in head.split(b"\r\n"))
        keys = (value.strip() for name, _, value in fields if name.lower() == b"authorization")
        return any(hmac.compare_digest(key, self._key) for key in keys)

    async def _carried(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answers, there = await asyncio.open_connection("127.0.0.1", self._port)
        there.write(head)
        await asyncio.gather(_carry(reader, there), _carry(answers, writer))


async def _serve(listener: int, door: _Door) -> None:
    asyncio.get_running_loop().add_reader(0, _leave_at_the_end)
    server = await asyncio.start_server(door.came, sock=socket.socket(fileno=listener))
    await server.serve_forever()


def _leave_at_the_end() -> None:
    if not os.read(0, _CHUNK):
        os._exit(0)


def main() -> None:
    """Serve one model until the end of the input."""
    said = os.dup(1)
    os.dup2(2, 1)  # what the library prints is for the log
    order = json.loads(sys.stdin.buffer.readline())

    def say(word: str) -> None:
        os.write(said, json.dumps({"say": word}).encode() + b"\n")

    try:
        server = _started(order)
    except Exception as error:  # noqa: BLE001 - of a library, and of whoever made the file
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        say("missing" if isinstance(error, ImportError) else "broken")
        return
    say("ready")
    port = int(server.listening_address.rpartition(":")[2])
    asyncio.run(_serve(order["listener"], _Door(order["key"], port)))


if __name__ == "__main__":
    main()
