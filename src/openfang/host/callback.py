"""A page of this machine that a browser is sent to once, at the end of a sign-in (RFC 8252)."""

from __future__ import annotations

import asyncio
import hmac
import html
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from openfang.core.errors import Conflict
from openfang.host.listen import listen

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncGenerator, Mapping

    from openfang.host.listen import Listener

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_LONGEST_HEAD: Final = 16_384
_HEAD_SECONDS: Final = 10.0
_PAGE: Final = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>OpenFang</title>
<body style="font: 1.1rem sans-serif; margin: 4rem auto; max-width: 32rem"><p>{}</p></body></html>
"""
_HEAD: Final = (
    "HTTP/1.1 {} {}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n\r\n"
)
_DONE: Final = (200, "OK", "You are back at OpenFang. This page can be closed.")
_GONE: Final = (410, "Gone", "This sign-in has been answered already.")
_STRANGE: Final = (400, "Bad Request", "This is not the answer that is waited for.")
_NOTHING: Final = (404, "Not Found", "There is nothing here.")


class Callback:
    """Waits for one browser, whose answer has the state that it was sent with."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._state = ""
        self._answered: asyncio.Future[Mapping[str, str]] = asyncio.Future()

    @property
    def redirect_uri(self) -> str:
        """Where browsers are to be sent."""
        return f"http://{_HOST}:{self._port}{_PATH}"

    async def answer(self, state: str) -> Mapping[str, str]:
        """Wait for the parameters of the answer to the request with this state."""
        self._state = state
        return await self._answered

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer one connection."""
        # A browser opens connections that it never uses; a port scanner sends anything.
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, reason, words = self._take(head.decode("latin-1"))
            page = _PAGE.format(html.escape(words)).encode()
            writer.write(_HEAD.format(status, reason, len(page)).encode() + page)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _take(self, head: str) -> tuple[int, str, str]:
        first, _, rest = head.partition("\r\n")
        method, _, target = first.partition(" ")
        parts = urlsplit(target.rpartition(" ")[0])
        if method != "GET" or parts.path != _PATH:
            return _NOTHING
        fields = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=20)
        answer = dict(fields)
        if len(answer) != len(fields) or not self._is_ours(rest, answer.get("state", "")):
            return _STRANGE
        if self._answered.done():
            return _GONE
        self._answered.set_result(answer)
        return _DONE

    def _is_ours(self, headers: str, state: str) -> bool:
        """Whether it comes from the page that we sent the browser to, under our own name."""
        hosts = [
            value.strip()
            for name, _, value in (line.partition(":") for line in headers.split("\r\n"))
            if name.lower() == "host"
        ]
        known = bool(self._state) and hmac.compare_digest(state.encode(), self._state.encode())
        return known and hosts == [f"{_HOST}:{self._port}"]


@asynccontextmanager
async def open_callback(*ports: int) -> AsyncGenerator[Callback]:
    """Listen on the first of these ports of 127.0.0.1 that is free; 0 is any."""
    listener = next(filter(None, (_listening(port) for port in ports[:-1])), None)
    listener = listener or listen(_HOST, ports[-1])
    callback = Callback(listener.address[1])
    server = await asyncio.start_server(
        callback.serve, sock=listener.sockets[0], limit=_LONGEST_HEAD
    )
    try:
        yield callback
    finally:
        server.close()


def _listening(port: int) -> Listener | None:
    try:
        return listen(_HOST, port)
    except Conflict:
        return None
