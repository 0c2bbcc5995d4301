"""The one way out over HTTP: resolve, check every answer, dial only what was checked, bound it all.

Names stay in `Host` and in TLS; addresses are pinned at the socket. Redirects are followed here,
each judged like a first request. No cookies, no proxies from the environment. Importing this module
imports aiohttp, a third of a second: do it when the first request is made.
"""

from __future__ import annotations

import asyncio
import io
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import aiohttp
import anyio
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from openfang.core.errors import CallTimedOut, SourceFailed
from openfang.safety.urls import (
    AddressRefused,
    Target,
    check_address,
    follow_reference,
    host_granted,
    parse_target,
)
from openfang.version import __version__

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_REDIRECTS: Final = 5
_CONNECTIONS: Final = 100
_LONGEST_HEADER: Final = 16_384
_MOST_HEADERS: Final = 128
_CHUNK: Final = 65_536
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `allow_hosts` are the network grants that it and its redirects live under."""

    url: str
    allow_hosts: Sequence[str]
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    limit: int = 10_000_000
    timeout: float = 30.0
    allow_private: bool = False


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


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    loop = asyncio.get_running_loop()
    answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


@dataclass(frozen=True, slots=True)
class _CheckedResolver(AbstractResolver):
    """Resolves for one policy; an answer that may not be dialled refuses the whole name."""

    ask: Resolve
    allow_private: bool

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._answers(host, port)
        for address in addresses:
            check_address(address, allow_private=self.allow_private, host=host)
        return [_result(host, port, address) for address in addresses if _fits(address, family)]

    async def _answers(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self.ask(host, port)
        except OSError as error:
            raise AddressRefused(f"{host} does not resolve: {error}", rule="unresolved") from error
        if not addresses:
            raise AddressRefused(f"{host} resolves to nothing", rule="unresolved")
        return list(dict.fromkeys(addresses))

    async def close(self) -> None:
        """Nothing is held."""


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _fits(address: str, family: socket.AddressFamily) -> bool:
    return family in {socket.AF_UNSPEC, _family(address)}


def _result(host: str, port: int, address: str) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=_family(address),
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


class HttpClient:
    """A client for the life of the program; use it as an async context manager.

    Connections are kept apart by `allow_private`, so that one opened under the looser rule never
    serves a request under the stricter one.
    """

    def __init__(
        self, *, resolve: Resolve = system_resolve, tls: ssl.SSLContext | None = None
    ) -> None:
        self._resolve = resolve
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
            location = response.header("location")
            if response.status not in _REDIRECTS or location is None:
                return response
            following = follow_reference(target, location)
            request = _redirected(request, response.status, target, following)
            target = following
        raise FetchFailed(f"{request.url} redirects more than {MAX_REDIRECTS} times")

    async def _ask(self, request: Request, target: Target) -> Response:
        _check_target(request, target)
        url = URL(target.url, encoded=True)
        session = self._sessions[request.allow_private]
        try:
            async with session.request(
                request.method,
                url,
                headers=dict(request.headers),
                data=None if request.body is None else io.BytesIO(request.body),
                allow_redirects=False,
            ) as answer:
                body, truncated = await _bounded(answer, request.limit)
                return _response(answer, target, body, truncated=truncated)
        except (aiohttp.ClientError, OSError) as error:
            raise FetchFailed(f"{target.url} failed: {_in_words(error)}") from error

    def _session(self, *, allow_private: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_CheckedResolver(self._resolve, allow_private),
                use_dns_cache=False,
                socket_factory=_Dial(allow_private),
                limit=_CONNECTIONS,
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


@dataclass(frozen=True, slots=True)
class _Dial:
    """Opens every socket, and so sees every address: what nobody checked is refused here."""

    allow_private: bool

    def __call__(self, info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        family, kind, protocol, _, address = info
        check_address(str(address[0]), allow_private=self.allow_private)
        return socket.socket(family, kind, protocol)


def _check_target(request: Request, target: Target) -> None:
    if target.literal:
        check_address(target.host, allow_private=request.allow_private)
    if not host_granted(target, request.allow_hosts):
        raise AddressRefused(
            f"{target.host} is not among the hosts granted to this caller",
            rule="not_granted",
            way_out=f'add "{target.host}" to the network grants',
        )


def _check_request(request: Request) -> None:
    if not _METHOD.match(request.method):
        raise FetchFailed(f"{request.method!r} is not a method")
    for name, value in request.headers.items():
        if not _HEADER_NAME.match(name) or not _HEADER_VALUE.match(value):
            raise FetchFailed(f"The header {name!r} contains a character that headers cannot have")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise FetchFailed(f"The header {name!r} is set by the connection itself")


def _redirected(request: Request, status: int, old: Target, new: Target) -> Request:
    """Make the next request: a new party sees neither credentials nor a body."""
    changed = replace(request, url=new.url)
    if status == 303 or (status in {301, 302} and request.method == "POST"):  # noqa: PLR2004 - RFC 9110
        method = "HEAD" if request.method == "HEAD" else "GET"
        changed = replace(changed, method=method, body=None, headers=_without_content(request))
    if _same_party(old, new):
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


def _same_party(old: Target, new: Target) -> bool:
    """Whether the origin is the same, or the same host asks for TLS on the usual ports."""
    upgraded = (old.scheme, old.port, new.scheme, new.port) == ("http", 80, "https", 443)
    return old.origin == new.origin or (upgraded and old.host == new.host)


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
