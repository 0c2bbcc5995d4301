"""The one way out over HTTP: resolve, check every answer, dial only what was checked, bound it all.

Names stay in `Host` and in TLS; addresses are pinned at the socket. Redirects are followed here,
each judged like a first request. No cookies, no proxies from the environment. Importing this module
imports aiohttp, a third of a second: do it when the first request is made.
"""

from __future__ import annotations

import io
import re
from contextlib import AsyncExitStack
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import aiohttp
import anyio
from anyio.lowlevel import checkpoint
from yarl import URL

from openfang.core.errors import CallTimedOut, SourceFailed
from openfang.core.values import dataclass
from openfang.host.names import Resolve, system_resolve
from openfang.host.resolve import CheckedResolver, Dial
from openfang.safety.urls import (
    AddressRefused,
    Target,
    check_address,
    follow_reference,
    host_granted,
    parse_target,
    same_party,
)
from openfang.version import __version__

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    _Ask: TypeAlias = Callable[["Request", Target], Awaitable[aiohttp.ClientResponse]]

MAX_REDIRECTS: Final = 5
_CONNECTIONS: Final = 100
_LONGEST_HEADER: Final = 16_384
_MOST_HEADERS: Final = 128
_CHUNK: Final = 65_536
_PIECE: Final = 16_384
# Many servers hang up on a connection that was idle for 5 s: ours has to be the shorter patience.
_IDLE: Final = 4.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_METHOD = re.compile(r"\A[A-Z]{1,16}\Z")
_HEADER_NAME = re.compile(r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
_HEADER_VALUE = re.compile(r"\A[\t\x20-\x7e\x80-\U0010ffff]*\Z")
# Decided by the connection; a caller who could set them could make two servers disagree.
_OURS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"}
    | {"keep-alive", "expect"}
)
# What may follow a redirect to somebody else: anything unknown could be a credential.
_TRAVELS: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})


class FetchFailed(SourceFailed):
    """The server could not be reached, or did not answer in HTTP."""

    code = "fetch_failed"


class NotReached(FetchFailed):
    """No connection was made: nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `allow_hosts` are the network grants that it and its redirects live under.

    Without `follow` a redirect is an answer like any other.
    """

    url: str
    allow_hosts: Sequence[str]
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    limit: int = 10_000_000
    timeout: float = 30.0
    allow_private: bool = False
    follow: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer. `url` is the last one asked; a `truncated` body was cut at the limit."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    url: str
    truncated: bool = False

    def header(self, name: str) -> str | None:
        """Find the first header of that name, in any case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


class Streaming:
    """An answer whose body is still coming; to leave it early is to hang up."""

    def __init__(self, answer: aiohttp.ClientResponse, target: Target) -> None:
        self._answer = answer
        self._target = target
        self.status = answer.status

    @property
    def url(self) -> str:
        """The last one asked."""
        return self._target.url

    def header(self, name: str) -> str | None:
        """Find the first header of that name, in any case."""
        return self._answer.headers.get(name)

    def headers(self, name: str) -> Sequence[str]:
        """Find all headers of that name, in any case."""
        return self._answer.headers.getall(name, ())

    async def some(self) -> bytes:
        """Wait for decoded bytes of the body; none are left when it gives none.

        A few packed bytes may hold megabytes: they come piece by piece, and others between them.
        """
        try:
            piece = await self._answer.content.read(_PIECE)
        except (aiohttp.ClientError, OSError) as error:
            # What had come before it broke off, the library would keep to itself.
            piece = self._answer.content._read_nowait(_PIECE)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if not piece:
                raise FetchFailed(f"{self.url} broke off: {_in_words(error)}") from error
        if len(piece) == _PIECE:
            await checkpoint()
        return piece

    async def whole(self, limit: int) -> bytes:
        """Read the body to its end; one over the limit fails."""
        body = bytearray()
        while not self._answer.content.at_eof():
            body += await self.some()
            if len(body) > limit:
                raise FetchFailed(f"{self.url} answered with more than {limit} bytes")
        return bytes(body)


class HttpClient:
    """A client for the life of the program; use it as an async context manager.

    Connections are kept apart by `allow_private`, so that one opened under the looser rule never
    serves a request under the stricter one.
    """

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        tls: ssl.SSLContext | None = None,
        connections: int = _CONNECTIONS,
    ) -> None:
        self._resolve = resolve
        self._connections = connections
        self._tls = tls
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for allow_private in (False, True):
            session = self._session(allow_private=allow_private)
            self._sessions[allow_private] = await self._stack.enter_async_context(session)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def fetch(self, request: Request) -> Response:
        """Make a request and follow its redirects, all of it before the deadline."""
        try:
            with anyio.fail_after(request.timeout):
                return await self._follow(request)
        except TimeoutError:
            raise CallTimedOut(
                f"{request.url} did not answer within {request.timeout:g} s"
            ) from None

    async def _follow(self, request: Request) -> Response:
        _check_request(request)
        target = parse_target(request.url)
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._ask(request, target)
            location = response.header("location") if request.follow else None
            if response.status not in _REDIRECTS or location is None:
                return response
            following = follow_reference(target, location)
            request = _redirected(request, response.status, target, following)
            target = following
        raise FetchFailed(f"{request.url} redirects more than {MAX_REDIRECTS} times")

    def stream(self, request: Request) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer; the request's limit and timeout are the caller's.

        A redirect that would turn the request into another one is not followed.
        """
        return _Held(self._asked, request)

    async def _ask(self, request: Request, target: Target) -> Response:
        try:
            async with await self._asked(request, target) as answer:
                body, truncated = await _bounded(answer, request.limit)
                return _response(answer, target, body, truncated=truncated)
        except (aiohttp.ClientError, OSError) as error:
            raise FetchFailed(f"{target.url} failed: {_in_words(error)}") from error

    async def _asked(self, request: Request, target: Target) -> aiohttp.ClientResponse:
        _check_target(target, tuple(request.allow_hosts), allow_private=request.allow_private)
        try:
            return await self._sessions[request.allow_private].request(
                request.method,
                _url(target),
                headers=request.headers,
                data=_sendable(request.body),
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError as error:
            raise NotReached(f"{target.url} failed: {_in_words(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise FetchFailed(f"{target.url} failed: {_in_words(error)}") from error

    def _session(self, *, allow_private: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=CheckedResolver(self._resolve, allow_private),
                use_dns_cache=False,
                socket_factory=Dial(allow_private),
                limit=self._connections,
                keepalive_timeout=_IDLE,
                ssl=self._tls or True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
            headers={"User-Agent": f"OpenFang/{__version__}"},
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )


class _Held:
    """A request, and its answer for the length of an `async with`."""

    __slots__ = ("_answer", "_ask", "_request")

    def __init__(self, ask: _Ask, request: Request) -> None:
        self._ask = ask
        self._request = request

    async def __aenter__(self) -> Streaming:
        request = self._request
        _check_request(request)
        target = _parsed(request.url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask(request, target)
            location = _location(answer) if request.follow else None
            if location is None:
                self._answer = answer
                return Streaming(answer, target)
            async with answer:
                following = follow_reference(target, location)
            changed = _redirected(request, answer.status, target, following)
            if changed.method != request.method:
                raise FetchFailed(f"{request.url} redirects with {answer.status}, to a GET")
            request, target = changed, following
        raise FetchFailed(f"{request.url} redirects more than {MAX_REDIRECTS} times")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Read to its end, an answer has let go of its connection, and of a body nobody took.
        if not self._answer.closed:
            await self._answer.__aexit__(kind, error, trace)


def _location(answer: aiohttp.ClientResponse) -> str | None:
    return answer.headers.get("Location") if answer.status in _REDIRECTS else None


# One server is called many times by the same URL. All of this is pure; refusals are not kept.
_parsed = lru_cache(maxsize=256)(parse_target)


@lru_cache(maxsize=256)
def _url(target: Target) -> URL:
    return URL(target.url, encoded=True)


def _sendable(body: bytes | None) -> bytes | io.BytesIO | None:
    """Let a large body be written in pieces: in one, it would hold up everybody else."""
    return body if body is None or len(body) <= _CHUNK else io.BytesIO(body)


@lru_cache(maxsize=256)
def _check_target(target: Target, allow_hosts: tuple[str, ...], *, allow_private: bool) -> None:
    if target.literal:
        check_address(target.host, allow_private=allow_private)
    if not host_granted(target, allow_hosts):
        raise AddressRefused(
            f"{target.host} is not among the hosts granted to this caller",
            rule="not_granted",
            way_out=f'add "{target.host}" to the network grants',
        )


def _check_request(request: Request) -> None:
    if not _METHOD.match(request.method):
        raise FetchFailed(f"{request.method!r} is not a method")
    for name, value in request.headers.items():
        _check_name(name)
        if not _HEADER_VALUE.match(value):
            raise _unsendable(name)


@lru_cache(maxsize=256)
def _check_name(name: str) -> None:
    if not _HEADER_NAME.match(name):
        raise _unsendable(name)
    if name.lower() in _OURS or name.lower().startswith("proxy-"):
        raise FetchFailed(f"The header {name!r} is set by the connection itself")


def _unsendable(name: str) -> FetchFailed:
    return FetchFailed(f"The header {name!r} contains a character that headers cannot have")


def _redirected(request: Request, status: int, old: Target, new: Target) -> Request:
    """Make the next request: a new party sees neither credentials nor a body."""
    changed = replace(request, url=new.url)
    if status == 303 or (status in {301, 302} and request.method == "POST"):  # noqa: PLR2004 - RFC 9110
        method = "HEAD" if request.method == "HEAD" else "GET"
        changed = replace(changed, method=method, body=None, headers=_without_content(request))
    if same_party(old, new):
        return changed
    if changed.body is not None:
        raise AddressRefused(
            f"{old.host} redirects the body of the request to {new.host}",
            rule="redirected_body",
            way_out=f"send the request to {new.url} if that is meant",
        )
    kept = {name: value for name, value in changed.headers.items() if name.lower() in _TRAVELS}
    return replace(changed, headers=kept)


def _without_content(request: Request) -> Mapping[str, str]:
    headers = request.headers.items()
    return {name: value for name, value in headers if not name.lower().startswith("content-")}


async def _bounded(answer: aiohttp.ClientResponse, limit: int) -> tuple[bytes, bool]:
    """Read decoded bytes up to the limit; the rest is neither read nor unpacked."""
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > limit:
            answer.close()
            return bytes(body[:limit]), True
    return bytes(body), False


def _response(
    answer: aiohttp.ClientResponse, target: Target, body: bytes, *, truncated: bool
) -> Response:
    return Response(
        status=answer.status,
        headers=tuple(answer.headers.items()),
        body=body,
        url=target.url,
        truncated=truncated,
    )


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__
