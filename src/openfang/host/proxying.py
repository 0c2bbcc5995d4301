"""What a client asks of an HTTP proxy: a tunnel to a host, or one request over plain HTTP.

Read strictly, by llhttp and by `safety.urls`; written anew for the server, so that the server sees
what was checked and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httptools

from openfang.safety.urls import AddressRefused, Target, parse_target

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

_CHUNK: Final = 65_536
_LARGEST_HEAD: Final = 65_536
_MOST_HEADERS: Final = 200
# Between the client and us; what `Connection` lists is between the two as well.
_BETWEEN: Final = frozenset(
    {b"connection", b"keep-alive", b"upgrade", b"te", b"trailer", b"transfer-encoding", b"host"}
    | {b"http2-settings"}
)


class Asked:
    """One request as it comes in. The callbacks are the parser's."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpRequestParser(self)
        self._url = bytearray()
        self._headers: list[tuple[bytes, bytes]] = []
        self._bodies: list[bytes] = []
        self._head_read = False
        self._complete = False
        self._behind = b""

    async def read_head(self) -> Target | None:
        """Read as far as the head goes, and say where it leads; None when nobody asks anything."""
        size = 0
        while not self._head_read:
            data = await self._reader.read(_CHUNK)
            size += len(data)
            if not data and not size:
                return None
            if not data or size - len(data) > _LARGEST_HEAD:
                raise AddressRefused("The request has no end", rule="malformed")
            self._feed(data)
        if len(self._headers) > _MOST_HEADERS:
            raise AddressRefused("The request has too many headers", rule="malformed")
        return self._target()

    @property
    def is_tunnel(self) -> bool:
        """Whether the client wants to speak to the host itself."""
        return self._parser.get_method() == b"CONNECT"

    @property
    def behind(self) -> bytes:
        """What came with the head of a tunnel already, and is meant for the host."""
        return self._behind

    def head(self, target: Target) -> bytes:
        """The head for the server: one request, then the connection ends."""
        listed = {
            word.strip().lower()
            for name, value in self._headers
            if name == b"connection"
            for word in value.split(b",")
        }
        lines = [
            b"%s %s HTTP/1.1" % (self._parser.get_method(), target.path_and_query.encode()),
            b"Host: " + target.authority.encode(),
            *(
                name + b": " + value
                for name, value in self._headers
                if not (name in _BETWEEN or name in listed or name.startswith(b"proxy-"))
            ),
            *((b"Transfer-Encoding: chunked",) if self._chunked else ()),
            b"Connection: close",
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    async def body(self) -> AsyncIterator[bytes]:
        """The body for the server, as it comes."""
        while True:
            for data in self._bodies:
                yield b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data
            self._bodies.clear()
            if self._complete:
                break
            data = await self._reader.read(_CHUNK)
            if not data:
                raise ConnectionResetError
            self._feed(data)
        if self._chunked:
            yield b"0\r\n\r\n"

    async def goes_on(self) -> bool:
        """Whether the client says more than this one request; False when it never will."""
        return bool(await self._reader.read(1))

    @property
    def _chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self._headers)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._behind = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            raise AddressRefused(f"This is not HTTP: {error}", rule="malformed") from None

    def _target(self) -> Target:
        text = self._url.decode("latin-1")
        if self.is_tunnel:
            if not text.rpartition(":")[2].isdecimal() or set(text) & set("/?#"):
                raise AddressRefused(f"{text!a} is not a host with a port", rule="malformed")
            return parse_target(f"https://{text}/")
        target = parse_target(text)
        if target.scheme != "http":
            raise AddressRefused("https goes through a tunnel", rule="malformed")
        return target

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; one that comes behind the body is dropped."""
        if not self._head_read:
            if name.lower() == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise ValueError(value)
            self._headers.append((name.lower(), value.strip()))

    def on_headers_complete(self) -> None:
        """Know that the head is whole."""
        self._head_read = True

    def on_body(self, body: bytes) -> None:
        """Collect what was read of the body."""
        self._bodies.append(body)

    def on_message_complete(self) -> None:
        """Know that the request is whole."""
        self._complete = True
