"""What all HTTP transports share: our headers over the operator's, and statuses turned into errors.

Importing this module imports the HTTP client, a third of a second.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from openfang.host.http import FetchFailed, NotReached, Request
from openfang.protocols.mcp import messages
from openfang.protocols.mcp.messages import MAX_MESSAGE, Failure
from openfang.protocols.mcp.sse import EventReader, EventTooLarge
from openfang.safety.urls import AddressRefused, Target, parse_target
from openfang.sources.mcp.transport import AuthNeeded, Lost, NotSpoken, Unmade

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from openfang.host.http import Streaming
    from openfang.protocols.mcp.sse import Event
    from openfang.sources.mcp.spec import Http

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
_FIRST_ERROR: Final = 400
_MAX_ERROR: Final = 65_536
_LINGER: Final = 0.005
_NO_BODY: Final = frozenset({202, 204, 205})


class Asks(Protocol):
    """Makes requests."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer."""
        ...


class Wire:
    """One address and what is always sent to it."""

    def __init__(self, http: Asks, reached: Http) -> None:
        target = _target(reached.url)
        self.url = reached.url
        self._query = target.path_and_query.partition("?")[2]
        self.shown = self._without_query(target.url)
        self._http = http
        self._hosts = (target.host,)
        self._private = reached.allow_private
        self._headers = dict(reached.headers)

    def send(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer. Raises `Lost`, and `AuthNeeded` among it."""
        request = Request(
            url=url or self.url,
            allow_hosts=self._hosts,
            method=method,
            headers=self._merged(headers),
            body=body,
            allow_private=self._private,
        )
        return _Sent(self._http.stream(request), self._raise_lost)

    def _raise_lost(self, error: BaseException) -> None:
        """Say of what went wrong with an exchange that it is lost, and keep the query to us."""
        match error:
            case NotReached():
                raise Unmade(self._without_query(str(error))) from error
            case FetchFailed():
                raise Lost(self._without_query(str(error))) from error
            case AddressRefused():
                raise _refused(error) from error
            case Lost():
                error.reason = self._without_query(error.reason)
            case _:
                pass

    def _without_query(self, text: str) -> str:
        """Hide what many servers take their key by."""
        return text.replace(f"?{self._query}", "?***") if self._query else text

    def _merged(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Where both name a header, ours decides: the protocol depends on it."""
        if not self._headers:
            return dict(ours)
        taken = {name.lower() for name in ours}
        kept = {name: value for name, value in self._headers.items() if name.lower() not in taken}
        return {**kept, **ours}


class _Sent:
    """A request, and its answer for the length of an `async with`."""

    __slots__ = ("_held", "_raise_lost")

    def __init__(
        self,
        held: AbstractAsyncContextManager[Streaming],
        raise_lost: Callable[[BaseException], None],
    ) -> None:
        self._held = held
        self._raise_lost = raise_lost

    async def __aenter__(self) -> Streaming:
        try:
            answer = await self._held.__aenter__()
        except Exception as error:
            self._raise_lost(error)
            raise
        try:
            _check_authorized(answer)
        except AuthNeeded as needed:
            await self.__aexit__(AuthNeeded, needed, needed.__traceback__)
            raise
        return answer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._held.__aexit__(kind, error, trace)
        if error is not None:
            self._raise_lost(error)


def media_type(answer: Streaming) -> str:
    """What the body is said to be."""
    return (answer.header("Content-Type") or "").partition(";")[0].strip().lower()


def has_body(answer: Streaming) -> bool:
    """Whether an answer was given, and not only a receipt."""
    return answer.status not in _NO_BODY


async def read_json(answer: Streaming) -> object:
    """Read a body that is one message, or a batch of them."""
    body = await answer.whole(MAX_MESSAGE)
    try:
        return messages.decode(body)
    except ValueError:
        kind = media_type(answer) or "no type"
        raise NotSpoken(f"{answer.url} answered with {kind}, and not with JSON") from None


async def read_events(answer: Streaming, reader: EventReader) -> list[Event] | None:
    """Wait for events of a stream; None at its end."""
    chunk = await answer.some()
    try:
        return reader.feed(chunk) if chunk else None
    except EventTooLarge as error:
        raise Lost(f"{answer.url}: {error}") from error


async def linger(answer: Streaming) -> None:
    """Read to the end what has been answered already, if the end is near: then it can be reused."""
    with suppress(FetchFailed), anyio.move_on_after(_LINGER):
        while await answer.some():
            pass


async def check_status(answer: Streaming) -> None:
    """Raise what an error says of itself, if that is a message, else that it is none."""
    if answer.status < _FIRST_ERROR:
        return
    error = await read_failure(answer)
    if error is not None:
        raise error.error
    raise NotSpoken(f"{answer.url} answered with status {answer.status}")


async def read_failure(answer: Streaming) -> Failure | None:
    """Look for an error of the protocol in the body of an HTTP error."""
    try:
        found = messages.read_one(messages.decode(await answer.whole(_MAX_ERROR)))
    except (ValueError, FetchFailed):
        return None
    return found if isinstance(found, Failure) else None


def check_stream(answer: Streaming) -> None:
    """Raise unless the answer to a GET is a stream of events; many servers offer none."""
    if answer.status >= _FIRST_ERROR or media_type(answer) != EVENTS:
        raise NotSpoken(f"{answer.url} answered a GET with status {answer.status}, and no events")


def _target(url: str) -> Target:
    try:
        return parse_target(url)
    except AddressRefused as refused:
        raise _refused(refused) from refused


def _refused(refused: AddressRefused) -> Lost:
    """Say it in one sentence: what is lost has no other place for the way out."""
    return Lost(f"{refused.message}: {refused.way_out}" if refused.way_out else refused.message)


def _check_authorized(answer: Streaming) -> None:
    if answer.status == UNAUTHORIZED:
        raise AuthNeeded(f"{answer.url} wants credentials")
    if answer.status == FORBIDDEN and answer.headers("WWW-Authenticate"):
        raise AuthNeeded(f"{answer.url} wants other credentials")
