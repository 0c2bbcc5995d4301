"""Requests to nodes of our own: as they came, to an address that the operator gave, and no further.

Nothing is resolved here that a peer has said, no redirect is followed, and nothing is unpacked.
"""

from __future__ import annotations

import errno
import io
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from types import TracebackType

_CONNECT_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 4.0
_CHUNK: Final = 65_536
_LONGEST_HEADER: Final = 65_536
_UNSAID: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class Unreached(Exception):  # noqa: N818 - it reads as what it is
    """Nothing was sent. Where `refused`, nobody listens at the address."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused


class Broken(Exception):  # noqa: N818 - as above
    """The connection broke after something was sent."""


class Coming:
    """An answer whose body is still coming."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """As they came."""
        return self._answer.raw_headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes."""
        try:
            while piece := await self._answer.content.readany():
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(str(error)) from error


class Onward:
    """A client for the life of the program; connections are kept for the next request."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_UNSAID,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> AsyncGenerator[Coming]:
        """Make a request, and hold its answer; to leave it early is to hang up."""
        assert self._session is not None  # noqa: S101 - it is open
        sent = CIMultiDict((_text(name), _text(value)) for name, value in headers)
        data = (body or None) if len(body) <= _CHUNK else io.BytesIO(body)
        try:
            answer = await self._session.request(
                method, URL(url, encoded=True), headers=sent, data=data, allow_redirects=False
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreached(str(error), refused=_refused(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(str(error)) from error
        async with answer:
            yield Coming(answer)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _refused(error: Exception) -> bool:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return inner is not None and inner.errno == errno.ECONNREFUSED
