"""What all HTTP transports share: our headers over the operator's, and statuses turned into errors.

Importing this module imports the HTTP client, a third of a second.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from openfang.host.http import FetchFailed, Request
from openfang.protocols.mcp import messages
from openfang.protocols.mcp.messages import MAX_MESSAGE, Failure
from openfang.protocols.mcp.sse import EventReader, EventTooLarge
from openfang.safety.urls import parse_target
from openfang.sources.mcp.transport import AuthNeeded, Lost, NotSpoken

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.host.http import HttpClient, Streaming
    from openfang.protocols.mcp.sse import Event
    from openfang.sources.mcp.spec import Http

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
_FIRST_ERROR: Final = 400
_MAX_ERROR: Final = 65_536
_NO_BODY: Final = frozenset({202, 204, 205})


class Wire:
    """One address and what is always sent to it."""

    def __init__(self, http: HttpClient, reached: Http) -> None:
        target = parse_target(reached.url)
        self.url = reached.url
        self._http = http
        self._hosts = (target.host,)
        self._private = reached.allow_private
        self._headers = dict(reached.headers)

    def carry(self, headers: Mapping[str, str]) -> None:
        """Send these of the operator's headers from now on, in the place of those before."""
        self._headers = dict(headers)

    @asynccontextmanager
    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AsyncGenerator[Streaming]:
        """Make a request and hold its answer. Raises `Lost`, and `AuthNeeded` among it."""
        request = Request(
            url=url or self.url,
            allow_hosts=self._hosts,
            method=method,
            headers=self._merged(headers),
            body=body,
            allow_private=self._private,
        )
        try:
            async with self._http.stream(request) as answer:
                _check_authorized(answer)
                yield answer
        except FetchFailed as failed:
            raise Lost(str(failed)) from failed

    def _merged(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Where both name a header, ours decides: the protocol depends on it."""
        if not self._headers:
            return dict(ours)
        taken = {name.lower() for name in ours}
        kept = {name: value for name, value in self._headers.items() if name.lower() not in taken}
        return {**kept, **ours}


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


def _check_authorized(answer: Streaming) -> None:
    challenges = answer.headers("WWW-Authenticate")
    if answer.status == UNAUTHORIZED or (answer.status == FORBIDDEN and challenges):
        raise AuthNeeded(
            f"{answer.url} wants {'other ' if answer.status == FORBIDDEN else ''}credentials",
            status=answer.status,
            challenges=challenges,
        )
