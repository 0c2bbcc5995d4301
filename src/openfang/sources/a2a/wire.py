"""How requests reach a peer: where they may go, what is said with them, what is no answer."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import orjson

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.host.weight import check_weight
from openfang.safety.urls import (
    AddressRefused,
    check_address,
    follow_reference,
    host_granted,
    parse_target,
    same_party,
)
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping
    from contextlib import AbstractAsyncContextManager

    from openfang.host.http import Request, Streaming
    from openfang.safety.urls import Target

SECONDS: Final = 30.0
LARGEST: Final = 10_000_000
AGENT: Final = f"OpenFang/{'.'.join(__version__.split('.')[:2])} A2A"
JSON: Final = "application/json"
_FIRST_ERROR: Final = 400
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_AS_IT_IS: Final = frozenset({307, 308})
_MOST_REDIRECTS: Final = 5
_TOO_OFTEN: Final = 429
_LONGEST_WAIT: Final = 60.0
_NOBODY_BEHIND: Final = frozenset({502, 503, 504})
_WANTS_CREDENTIALS: Final = frozenset({401, 403})


class Asks(Protocol):
    """Makes requests."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where a peer publishes its card, and what is said of the way there.

    `auth` is sent to that origin alone. `hosts` are all that may be reached; None is no bound but
    that of addresses.
    """

    url: str
    auth: str = field(default="", repr=False)
    allow_private: bool = False
    hosts: tuple[str, ...] | None = None


class NoAgent(SourceFailed):
    """Somebody answered with this `status`, and not as an agent does."""

    def __init__(self, message: str, *, way_out: str = "", status: int = 0) -> None:
        super().__init__(message, way_out=way_out)
        self.status = status


class Unreachable(SourceFailed):
    """Nobody answered: whoever is there later, in `wait` seconds if it said so, may know more."""

    def __init__(self, message: str, *, way_out: str = "", wait: float = 0.0) -> None:
        super().__init__(message, way_out=way_out)
        self.wait = wait


class Wire:
    """Makes the requests to one peer. Raises `SourceFailed`."""

    def __init__(self, http: Asks, reached: Reached) -> None:
        self.reached = reached
        self._http = http
        with _addresses():
            self._own = parse_target(reached.url)

    @property
    def origin(self) -> str:
        """The address of the peer's host."""
        return f"{self._own.scheme}://{self._own.authority}"

    def check(self, url: str) -> None:
        """Refuse an address that no message should travel to."""
        with _addresses():
            self._checked(url)

    def _checked(self, url: str) -> Target:
        target, reached = _parsed(url), self.reached
        if target.literal:
            check_address(target.host, allow_private=reached.allow_private)
        if target.host != self._own.host and target.scheme != "https" and not reached.allow_private:
            raise AddressRefused(
                f"{url} leads from {self._own.host} to another host, and not by https",
                rule="not_https",
                way_out="set allow_private = true where the peer is configured, if it is yours",
            )
        if reached.hosts is not None and not host_granted(target, reached.hosts):
            raise AddressRefused(
                f"{target.host} is not among the hosts granted to this caller",
                rule="not_granted",
                way_out=f'add "{target.host}" to the network grants',
            )
        return target

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        seconds: float | None = SECONDS,
    ) -> AsyncGenerator[Streaming]:
        """Make a request, and hold an answer that may be one; it has to begin in time."""
        async with AsyncExitStack() as stack:
            with _addresses():
                request = self._request(method, url, headers, body)
                answer = await self._followed(stack, request, seconds)
            _check(answer)
            yield answer

    async def _followed(
        self, stack: AsyncExitStack, request: Request, seconds: float | None
    ) -> Streaming:
        for _ in range(_MOST_REDIRECTS + 1):
            answer = await self._begun(stack, request, seconds)
            location = answer.header("Location")
            if answer.status not in _REDIRECTS or not location:
                return answer
            request = self._moved(request, answer.status, location)
        raise SourceFailed(f"{request.url} redirects more than {_MOST_REDIRECTS} times")

    def _moved(self, request: Request, status: int, location: str) -> Request:
        """Make the same request at another place of the same host's; no other is gone to."""
        old = _parsed(request.url)
        new = follow_reference(old, location)
        if not same_party(old, new) or (request.body and status not in _AS_IT_IS):
            raise SourceFailed(
                f"{old.url} redirects to {new.url} (status {status}), which is not followed",
                way_out=f"give {new.url} as the address, if that is meant",
            )
        self._checked(new.url)
        return replace(request, url=new.url, allow_hosts=(_place(new),))

    async def _begun(
        self, stack: AsyncExitStack, request: Request, seconds: float | None
    ) -> Streaming:
        try:
            with anyio.fail_after(seconds):
                return await stack.enter_async_context(self._http.stream(request))
        except TimeoutError:
            raise _late(request.url, seconds) from None
        except SourceFailed as failed:
            raise Unreachable(failed.message, way_out=failed.way_out) from failed

    async def ask(  # noqa: PLR0913 - what a request consists of
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: object = None,
        *,
        seconds: float | None = SECONDS,
        limit: int = LARGEST,
    ) -> tuple[int, object, str]:
        """Make a request whose answer is JSON: its status, what it says, and its tag.

        What is no JSON is None.
        """
        written = None if body is None else orjson.dumps(body)
        try:
            with anyio.fail_after(seconds):
                return await self._asked(method, url, headers, written, limit)
        except TimeoutError:
            raise _late(url, seconds) from None

    async def _asked(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit: int
    ) -> tuple[int, object, str]:
        kind = {} if body is None else {"Content-Type": JSON}
        sent = {"Accept": JSON, **kind, **headers}
        async with self.open(method, url, sent, body, seconds=None) as answer:
            text = await answer.whole(limit)
            await check_weight(url, text)
            return answer.status, _decoded(text), answer.header("ETag") or ""

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Request:
        from openfang.host.http import Request  # noqa: PLC0415 - aiohttp takes 0.4 s

        target, reached = self._checked(url), self.reached
        own = target.origin == self._own.origin and reached.auth
        return Request(
            url=url,
            allow_hosts=(_place(target),),
            method=method,
            headers={
                **headers,
                "User-Agent": AGENT,
                **({"Authorization": reached.auth} if own else {}),
            },
            body=body,
            allow_private=reached.allow_private,
            follow=False,
        )


_parsed = lru_cache(maxsize=256)(parse_target)


@contextmanager
def _addresses() -> Generator[None]:
    """Let an address that is refused be a failure of the peer that named it."""
    try:
        yield
    except AddressRefused as refused:
        raise SourceFailed(refused.message, way_out=refused.way_out) from refused


def _late(url: str, seconds: float | None) -> Unreachable:
    return Unreachable(f"{url} did not answer within {seconds or 0:g} s")


def _place(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"


def _check(answer: Streaming) -> None:
    """Refuse what is no answer of an agent's, in words."""
    kind = (answer.header("Content-Type") or "").partition(";")[0].strip().lower()
    if answer.status in _WANTS_CREDENTIALS:
        raise SourceFailed(
            f"{answer.url} wants credentials (status {answer.status})",
            way_out="set auth of that peer in [[a2a.external_agents]]",
        )
    if answer.status in _REDIRECTS:
        raise SourceFailed(f"{answer.url} answered with status {answer.status}, and no address")
    wait = _wait(answer)
    busy = answer.status == _TOO_OFTEN or (answer.status in _NOBODY_BEHIND and wait)
    if busy or (answer.status in _NOBODY_BEHIND and "json" not in kind):
        raise Unreachable(f"{answer.url} answered with status {answer.status}", wait=wait)
    if kind.endswith("html"):
        raise NoAgent(
            f"{answer.url} answered with HTML (status {answer.status}), and not in A2A",
            way_out="look at the address of that peer",
            status=answer.status,
        )
    if answer.status >= _FIRST_ERROR and "json" not in kind:
        raise NoAgent(f"{answer.url} answered with status {answer.status}", status=answer.status)


def _wait(answer: Streaming) -> float:
    """Read how many seconds it asks for; whoever asks for a date is asked again as others are."""
    text = answer.header("Retry-After") or ""
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0


def _decoded(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except ValueError:
        return None
