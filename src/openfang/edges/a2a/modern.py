"""The current dialects, A2A 1.0 and 0.3, over JSON-RPC and over HTTP and JSON.

The library reads and writes them; one dispatcher serves all agents. Who disconnects ends its own
answer and nothing else.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import Response

from openfang.core.errors import Rejected, Unauthenticated
from openfang.edges.a2a.asked import KEY, Asked, Contexts
from openfang.edges.a2a.bodies import read_body
from openfang.edges.a2a.dialect03 import failure03, rest_failure03
from openfang.edges.a2a.dispatcher import Dispatcher, number_of
from openfang.edges.a2a.faults import WRONG_TYPE, WrongType, untaken
from openfang.edges.a2a.handler import Handler
from openfang.edges.a2a.incoming import (
    Incoming,
    check_call,
    check_extensions,
    check_method,
    check_path,
    check_values,
    lean,
    lean_call,
    opened,
    read_version,
)
from openfang.edges.a2a.pump import Pump, error_event, pieces_of
from openfang.edges.a2a.routes import SENDS, STREAMS, Routes
from openfang.edges.a2a.sdk import (
    EventSourceResponse,
    build_error_response,
    build_rest_error_payload,
    errors,
)
from openfang.edges.a2a.versions import A2A_JSON, V03, V1, asked_version, known_version
from openfang.edges.a2a.versions import SENDS as SENDING
from openfang.edges.a2a.versions import STREAMS as STREAMING
from openfang.edges.api.exchange import JSON, Answer, WrongMethod
from openfang.edges.api.serving import go_on
from openfang.edges.api.watch import Watch
from openfang.protocols.a2a.extensions import CHAIN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from openfang.core.errors import OpenFangError
    from openfang.edges.a2a.bodies import Body
    from openfang.edges.a2a.handler import Card
    from openfang.edges.a2a.ports import House
    from openfang.edges.a2a.pump import Piece
    from openfang.edges.a2a.staying import Stay, Staying
    from openfang.edges.api.exchange import Headers
    from openfang.edges.api.mount import Came

_EXTENSIONS: Final = (b"a2a-extensions", b"x-a2a-extensions")


class Modern:
    """Serves them. `card` shows an agent to a caller."""

    def __init__(self, house: House, card: Card, staying: Staying) -> None:
        self._staying = staying
        self._house = house
        handler, contexts = Handler(card, staying), Contexts()
        self._dispatcher = Dispatcher(handler, contexts)
        self._routes = Routes(handler, contexts)

    async def rpc(self, came: Came, agent: str, read: Body) -> None:
        """Answer one JSON-RPC request to an agent; it has been read."""
        if came.method != "POST":
            came.node.charge(came.caller, "health")
            raise WrongMethod(came.method, "POST")
        body: Any = None
        version = V1
        try:
            body = opened(read)
            version = read_version(came)
            incoming = Incoming(version=version, body=body)
            check_method(incoming)
            asked = self._asked(came, agent, version)
            body = await lean_call(came, body, asked.taken)
            check_call(body)
        except errors.A2AError as error:
            came.node.charge(came.caller, "health")
            await came.answer(_rpc_failure(number_of(body), error, version))
            return
        if incoming.method in SENDING:
            came.node.check_call(came.caller, "message")
        request = _Read(_scope(asked, {}), body)
        answer = partial(self._dispatcher.answer, body, asked, request)
        await self._serve(asked, answer, streams=incoming.method in STREAMING)

    async def rest(self, came: Came, agent: str, path: str) -> None:
        """Answer one request at an address of an agent's; `path` is what stands behind its own."""
        version = V1
        try:
            found = self._routes.find(came.method, path)
            version = read_version(came)
            check_path(path, version)
            asked = self._asked(came, agent, version)
            body = await lean(came, opened(await read_body(came, rest=True)), asked.taken)
            check_values(body)
            check_values(_query_of(came))
        except (errors.A2AError, WrongMethod) as error:
            came.node.charge(came.caller, "health")
            if isinstance(error, WrongMethod):
                raise
            await came.answer(_rest_failure(error, version))
            return
        if path.endswith(SENDS):
            came.node.check_call(came.caller, "message")
        request = _Read(_scope(asked, found.names), body)
        await self._serve(asked, partial(found.serve, request), streams=path.endswith(STREAMS))

    def refuse(self, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say over HTTP and JSON why a body was not taken in."""
        version = known_version(asked_version(headers, query)) or V1
        return _rest_failure(untaken(error), version)

    def _asked(self, came: Came, agent: str, version: str) -> Asked:
        settings = self._house.settings()
        demanded = settings is not None and settings.require_chain
        wanted = check_extensions(_wanted(came), {CHAIN: demanded})
        return Asked(house=self._house, came=came, agent=agent, version=version, extensions=wanted)

    async def _serve(
        self, asked: Asked, answer: Callable[[], Awaitable[Response]], *, streams: bool
    ) -> None:
        watch = Watch(asked.came.receive)
        try:
            if streams:
                with self._staying.stream(asked.came) as stay:
                    await self._stream(asked, answer, stay)
            else:
                await self._whole(asked, await answer())
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()
            await asked.leave()

    async def _whole(self, asked: Asked, response: Response) -> None:
        """Answer at once; what came no further than to us is paid for here."""
        came = asked.came
        if not asked.reached:
            came.node.charge(came.caller, "health")
        kind = response.headers.get("content-type", "").encode("latin-1")
        await came.answer(
            Answer(
                body=asked.given.filled(bytes(response.body)),
                status=response.status_code,
                content_type=kind or JSON,
                headers=_activated(asked),
            )
        )

    async def _stream(
        self, asked: Asked, answer: Callable[[], Awaitable[Response]], stay: Stay
    ) -> None:
        pump = Pump(asked.came, _activated(asked), asked.given.filled)
        try:
            response = await answer()
            if not isinstance(response, EventSourceResponse):
                await self._whole(asked, response)
                return
            stay.beat = pump.ping
            await self._pump(asked, pump, pieces_of(response), stay)
        except errors.A2AError as error:
            if not pump.begun:
                await self._whole(asked, _as_response(_rest_failure(error, asked.version)))
                return
            await pump.write(error_event(build_rest_error_payload(error)))
        except asyncio.CancelledError:
            if not stay.ended:
                raise
            go_on()
        finally:
            pump.leave()
        if stay.ended and not pump.begun:
            raise _ended(asked.came)
        await pump.end()

    async def _pump(
        self, asked: Asked, pump: Pump, pieces: AsyncGenerator[Piece], stay: Stay
    ) -> None:
        # Closed at once: who has gone must not be told until the garbage collector comes by.
        async with aclosing(pieces):
            async for piece in pieces:
                if not asked.reached and not pump.begun:
                    asked.came.node.charge(asked.came.caller, "health")
                stay.silent = 0.0
                await pump.write(piece)


class _Read(Request):
    """A request that has been read, as far as the library is to see it."""

    def __init__(self, scope: dict[str, Any], value: object) -> None:
        super().__init__(scope)
        self._json = value

    async def body(self) -> bytes:
        """Write it again, for who reads it by itself."""
        return b"" if self._json is None else orjson.dumps(self._json)


def _scope(asked: Asked, names: Mapping[str, str]) -> dict[str, Any]:
    came = asked.came
    return {
        "type": "http",
        "method": came.method,
        "path": came.path,
        "query_string": came.query,
        "headers": came.raw,
        "path_params": names,
        KEY: asked,
    }


def _query_of(came: Came) -> dict[str, str]:
    """What a question asks for beside its address."""
    return dict(parse_qsl(came.query.decode("latin-1"))) if came.query else {}


def _wanted(came: Came) -> frozenset[str]:
    """The extensions that a request is prepared for, under both names of their header."""
    found = (value for name, value in came.raw if name in _EXTENSIONS)
    uris = (uri.strip() for value in found for uri in value.decode("latin-1").split(","))
    return frozenset(filter(None, uris))


def _activated(asked: Asked) -> tuple[tuple[bytes, bytes], ...]:
    if not asked.extensions:
        return ()
    return ((_EXTENSIONS[0], ", ".join(sorted(asked.extensions)).encode("latin-1")),)


def _rpc_failure(number: str | int | None, error: errors.A2AError, version: str) -> Answer:
    older = version == V03 and not isinstance(error, errors.VersionNotSupportedError)
    body = failure03(number, error) if older else build_error_response(number, error)
    status = WRONG_TYPE if isinstance(error, WrongType) else 200
    return Answer(body=orjson.dumps(body), status=status)


def _rest_failure(error: errors.A2AError, version: str) -> Answer:
    older = version == V03
    payload = rest_failure03(error) if older else build_rest_error_payload(error)
    kind, status = JSON if older else A2A_JSON.encode(), payload["error"]["code"]
    return Answer(body=orjson.dumps(payload), status=status, content_type=kind)


def _as_response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, media_type=answer.content_type.decode())


def _ended(came: Came) -> OpenFangError:
    """Say why a stream ends that has not begun; who sent a message may have a task all the same."""
    if came.node.ready:
        return Unauthenticated("The key has ended.", way_out="use another key")
    return Rejected(
        "The node is ending.",
        status=503,
        rule="stopping",
        way_out="ask again later: the same messageId is the same task",
    )
