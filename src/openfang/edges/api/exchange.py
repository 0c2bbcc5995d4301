"""One request and its answer, as small values; and how they are read from and put on the wire."""

from __future__ import annotations

import math
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from openfang.core.bodies import problem_body
from openfang.core.errors import (
    AuditUnavailable,
    GuardTripped,
    HomeError,
    InvalidArguments,
    OpenFangError,
    Rejected,
    Unauthenticated,
)
from openfang.core.integers import long_integer
from openfang.core.values import dataclass, value
from openfang.safety.doubled import doubled_key
from openfang.safety.sizes import MAX_ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping

    from openfang.core.calls import Caller
    from openfang.core.session import Session
    from openfang.edges.api.node import Node
    from openfang.guard.rate import Granted

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
Headers: TypeAlias = "Mapping[bytes, bytes]"

MAX_BODY = 10_000_000
USUAL_BODY = 512 * 1024
"""What manages a node is small: to take in and judge a body of many members holds up the others."""
JSON = b"application/json"
PROBLEM = b"application/problem+json"
_BEARER = b"bearer "
_NO_STORE = (b"cache-control", b"no-store")
_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_RETRY_SECONDS = 5
_SHOWN = 60
_LINE = orjson.OPT_APPEND_NEWLINE  # a person reads it in a terminal
_JSON_TYPES = (b"", b"application/json")


class WrongMethod(Rejected):
    """The address knows other methods."""

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(
            f"{method} is not served at this address.",
            status=405,
            rule="method",
            way_out=f"one of {allowed}",
        )
        self.allowed = allowed


@value
class Asked:
    """A request that passed the edge's checks."""

    node: Node
    caller: Caller
    session: Session
    headers: Headers
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None


@value
class Answer:
    """What goes back, whole."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What goes back piece by piece."""

    pieces: AsyncGenerator[bytes]
    content_type: bytes


def json_answer(body: object, status: int = 200) -> Answer:
    """Answer with JSON; bytes are written as hex, what else JSON has no word for as text."""
    return Answer(body=orjson.dumps(body, default=_plain, option=_LINE), status=status)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def problem(error: OpenFangError) -> Answer:
    """Answer with an RFC 9457 problem."""
    body = problem_body(error)
    return Answer(
        body=orjson.dumps(body, option=_LINE),
        status=body["status"],
        content_type=PROBLEM,
        headers=_of_problem(error),
    )


def _of_problem(error: OpenFangError) -> tuple[tuple[bytes, bytes], ...]:
    match error:
        case GuardTripped(retry_after=float(seconds)):
            return ((b"retry-after", b"%d" % max(1, math.ceil(seconds))),)
        case AuditUnavailable() | HomeError() | Rejected(status=503):
            return ((b"retry-after", b"%d" % _RETRY_SECONDS),)
        case WrongMethod(allowed=allowed):
            return ((b"allow", allowed.encode()),)
        case Unauthenticated():
            return ((b"www-authenticate", b'Bearer realm="openfang"'),)
        case _:
            return ()


def rate_headers(left: Granted) -> tuple[tuple[bytes, bytes], ...]:
    """Say what is left of a rate, and in how many seconds it is whole again."""
    return (
        (b"ratelimit-remaining", b"%d" % left.remaining),
        (b"ratelimit-reset", b"%d" % math.ceil(left.reset)),
    )


def secret_of(headers: Headers) -> str | None:
    """Find the key that a request carries."""
    bearer = headers.get(b"authorization")
    if bearer is not None and bearer[: len(_BEARER)].lower() == _BEARER:
        return bearer[len(_BEARER) :].strip().decode("latin-1")
    own = headers.get(b"x-api-key")
    return own.decode("latin-1") if own is not None else None


async def read_body(receive: Receive, headers: Headers, most: int = MAX_BODY) -> bytes:
    """Read the whole body, up to what it may have; what says that it has more is not read."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Rejected(
            "The body is compressed, which is not taken here.",
            status=415,
            rule="content_encoding",
            way_out="send it as it is, without Content-Encoding",
        )
    length = headers.get(b"content-length")
    if length is not None and int(length) > most:
        raise _too_large(int(length), most)
    message = await receive()
    body = message.get("body", b"")
    if message.get("more_body"):
        body = await _rest(receive, body, most)
    if message["type"] == "http.disconnect":
        raise Rejected("The client has gone.", status=400, rule="disconnected")
    return body


async def _rest(receive: Receive, first: bytes, most: int) -> bytes:
    pieces, size, more = [first], len(first), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Rejected("The client has gone.", status=400, rule="disconnected")
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise _too_large(size, most)
        pieces.append(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)


def _too_large(size: int, most: int) -> OpenFangError:
    if most > MAX_ARGUMENTS and size <= MAX_BODY:
        return InvalidArguments(
            f"The call has more than {most} bytes, so its arguments have more than "
            f"{MAX_ARGUMENTS}.",
            rule="arguments_too_large",
            way_out="pass large data as a file or a blob reference",
        )
    return Rejected(
        f"The body has more than {most if most <= MAX_ARGUMENTS else MAX_BODY} bytes.",
        status=413,
        rule="body_too_large",
        way_out="pass large data as a file",
    )


def read_json(body: bytes, headers: Headers) -> Any:  # noqa: ANN401 - any JSON
    """Read a JSON body strictly; an empty one is an empty object."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind not in _JSON_TYPES:
        raise Rejected(
            "The body is not JSON, by its Content-Type.",
            status=415,
            rule="content_type",
            way_out="Content-Type: application/json",
        )
    return parse_json(body) if body else {}


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON; two readers must not read it otherwise."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Rejected(
            f"The body is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno}).",
            status=400,
            rule="not_json",
            way_out="send one JSON object",
        ) from None
    if digits := long_integer(body):
        raise Rejected(
            f"The body has the integer {digits}, which needs more than 64 bits.",
            status=400,
            rule="long_integer",
            way_out="pass it as a string, if the tool takes one",
        )
    if (key := doubled_key(body, value)) is not None:
        raise Rejected(
            f"The body has {key[:_SHOWN]!r} twice in one object.",
            status=400,
            rule="doubled_key",
            way_out="send it once",
        )
    return value


async def send_answer(
    send: Send, answer: Answer, more: tuple[tuple[bytes, bytes], ...] = (), *, head: bool = False
) -> None:
    """Put an answer on the wire."""
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [
                (b"content-type", answer.content_type),
                (b"content-length", b"%d" % len(answer.body)),
                _NO_STORE,
                _NO_SNIFF,
                *answer.headers,
                *more,
            ],
        }
    )
    await send({"type": "http.response.body", "body": b"" if head else answer.body})


async def send_stream(
    send: Send, stream: Stream, more: tuple[tuple[bytes, bytes], ...] = (), *, head: bool = False
) -> None:
    """Put an answer on the wire piece by piece."""
    headers = [(b"content-type", stream.content_type), _NO_STORE, _NO_SNIFF, *more]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if head:
        await stream.pieces.aclose()
        await send({"type": "http.response.body", "body": b""})
        return
    # Closed at once: who has gone must not be sent to until the garbage collector comes by.
    async with aclosing(stream.pieces) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
