"""The HTTP API as one ASGI application: every request meets the same checks in the same order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from openfang.core.errors import OpenFangError, Rejected, Unauthenticated
from openfang.core.trace import read_chain
from openfang.edges.api.checks import check_host, check_origin, one_of_each
from openfang.edges.api.endpoint import BY_PIPELINE, KEYLESS
from openfang.edges.api.exchange import (
    MAX_BODY,
    Answer,
    Asked,
    WrongMethod,
    problem,
    rate_headers,
    read_body,
    read_json,
    secret_of,
    send_answer,
    send_stream,
)
from openfang.edges.api.mount import NOBODY, Came
from openfang.edges.api.node import EDGE
from openfang.edges.api.oauth import challenge
from openfang.edges.api.paths import pattern_of
from openfang.edges.api.routes.tools import CALL
from openfang.edges.api.staying import still_of_one
from openfang.edges.api.table import ENDPOINTS
from openfang.edges.api.watch import Watch
from openfang.protocols.hops.words import read_told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Caller
    from openfang.core.trace import Chain
    from openfang.edges.api.endpoint import Endpoint
    from openfang.edges.api.exchange import Headers, Receive, Scope, Send
    from openfang.edges.api.mount import Fellows, Mount, Pages
    from openfang.edges.api.node import Node

_CALL_PREFIX, _CALL_SUFFIX = "/api/tools/", "/call"
_LARGE_BODY = 65_536
_AS_ASKED = {"HEAD": "GET"}
_OUR_MISTAKE = 500
_STREAMED = 200


class Api:
    """Answers requests for one node."""

    def __init__(
        self,
        node: Node,
        mounts: Sequence[Mount] = (),
        pages: Pages | None = None,
        fellows: Fellows | None = None,
    ) -> None:
        self.node = node
        self.mounts = mounts
        self.pages = pages
        self.fellows = fellows
        self._routes = [(pattern_of(endpoint.path), endpoint) for endpoint in ENDPOINTS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        served = _Served(send)
        try:
            await self._serve(scope, receive, served)
        except OpenFangError as error:
            told = self._problem(error, scope, served.mount)
            await served.fail(told, self._left(served.caller, scope))
        except Exception:
            served.status = served.status or _OUR_MISTAKE
            raise
        finally:
            self.node.counted(served.route, served.status)

    def _problem(self, error: OpenFangError, scope: Scope, mount: Mount | None) -> Answer:
        """Answer with what is wrong; whom a token would help is told where to get one."""
        told = problem(error) if mount is None else mount.fault(error)
        if mount is not None and mount is self.pages:
            return told  # a person signs in, and has no use for a token
        helps = challenge(self.node.authority(), error, scope)
        return replace(told, headers=helps) if helps else told

    async def _serve(self, scope: Scope, receive: Receive, served: _Served) -> None:
        """Refuse what comes from the wrong place, find out who asks, then see what is asked."""
        headers = self._checked(scope)
        if self.fellows is not None and (route := self.fellows.route(scope["path"])):
            served.route = route
            await self._serve_fellow(self.fellows, scope, receive, served, headers)
            return
        if (mount := self._mounted(scope, served, headers)) is not None:
            await self._serve_mount(mount, scope, receive, served, headers)
            return
        endpoint, path = self._find(scope)
        served.route = "" if endpoint is None else endpoint.path
        keyless = endpoint is not None and endpoint.access in KEYLESS
        if not keyless:
            served.caller = await self._caller(scope, secret_of(headers), EDGE)
        caller = served.caller
        if endpoint is None:
            self.node.charge(caller, "health")
            raise self._nothing_there(scope)
        await self._admit(endpoint, caller, scope, headers)
        query, body = await self._read(endpoint, caller, scope, receive, headers)
        if body is not None and not keyless:
            # It may have been long on its way: the key that began it may be revoked by now.
            caller = served.caller = await self._caller(scope, secret_of(headers), EDGE)
        asked = Asked(
            node=self.node,
            caller=caller,
            session=self.node.session(caller, _chain(headers)),
            headers=headers,
            path=path,
            query=query,
            body=body,
        )
        await self._answer(endpoint, asked, scope, receive, served)

    def _mounted(self, scope: Scope, served: _Served, headers: Headers) -> Mount | None:
        """Find the edge whose path it is, and note what is there."""
        path: str = scope["raw_path"].decode("ascii")
        for mount in self.mounts:
            if route := mount.route(path):
                served.route, served.mount = route, mount
                return mount
        if self.pages is not None and (route := self.pages.asked(path, headers)):
            served.route, served.mount = route, self.pages
            return self.pages
        return None

    async def _serve_fellow(
        self, fellows: Fellows, scope: Scope, receive: Receive, served: _Served, headers: Headers
    ) -> None:
        """Let another node in, by its signature alone; whoever is turned away pays for it."""
        try:
            await fellows.serve(scope, receive, headers, served.begin)
        except Rejected:
            self.node.charge_address(_address(scope), "health")
            raise

    async def _serve_mount(
        self, mount: Mount, scope: Scope, receive: Receive, served: _Served, headers: Headers
    ) -> None:
        """Hand a request on, once it is known who sent it and it is here."""
        pages = self.pages
        secret = await pages.secret(headers) if pages and mount is pages else secret_of(headers)
        if mount.public(served.route, signed=secret is not None):
            self.node.charge_address(_address(scope), "health")
            caller, body = self.node.anybody() or NOBODY, b""
        else:
            caller = served.caller = await self._caller(scope, secret, mount.edge)
            try:
                body = await self._taken(caller, receive, headers)
            except Rejected as error:
                told = await mount.refuse(served.route, error, headers, scope["query_string"])
                await served.fail(told, self._left(caller, scope))
                return
            caller = served.caller = await self._caller(scope, secret, mount.edge)
        came = Came(
            node=self.node,
            caller=caller,
            chain=_chain(headers),
            method=scope["method"],
            path=scope["raw_path"].decode("ascii"),
            query=scope["query_string"],
            headers=headers,
            raw=scope["headers"],
            body=body,
            receive=receive,
            begin=served.begin,
            left=partial(self._left, caller, scope),
            still=still_of_one(self.node, caller, secret, mount.edge),
            enter=partial(self.node.sign_in, _address(scope), edge=mount.edge),
        )
        await mount.serve(came)

    async def _taken(self, caller: Caller, receive: Receive, headers: Headers) -> bytes:
        """Take in what was sent; whoever sends too much pays for it."""
        if _is_large(headers):
            self.node.check_call(caller)
        try:
            return await read_body(receive, headers, MAX_BODY)
        except OpenFangError:
            self.node.charge(caller, "health")
            raise

    async def _read(
        self, endpoint: Endpoint, caller: Caller, scope: Scope, receive: Receive, headers: Headers
    ) -> tuple[Mapping[str, Any], Any]:
        """Read what was sent. A call that never gets to the pipeline is paid for here."""
        try:
            query = endpoint.read_query(scope["query_string"])
            return query, await _read_body(endpoint, receive, headers)
        except OpenFangError:
            if endpoint.work == BY_PIPELINE:
                self.node.charge(caller, "call")
            raise

    def _checked(self, scope: Scope) -> Headers:
        headers = one_of_each(scope["headers"])
        hosts = self.node.hosts()
        check_host(headers.get(b"host"), hosts, scope["server"][0])
        origin = headers.get(b"origin")
        if origin is not None:
            check_origin(origin, scope["server"][1], hosts, self.node.public_origin())
        return headers

    def _find(self, scope: Scope) -> tuple[Endpoint | None, Mapping[str, str]]:
        """Find the endpoint; calls first, because they are the load.

        What stands for a name is one segment of the path as it was sent: `%2F` belongs to the name.
        """
        path: str = scope["raw_path"].decode("ascii")
        if (
            path.endswith(_CALL_SUFFIX)
            and path.startswith(_CALL_PREFIX)
            and scope["method"] == "POST"
        ):
            name = path[len(_CALL_PREFIX) : -len(_CALL_SUFFIX)]
            if name and "/" not in name:
                return CALL, {"id": unquote(name)}
        method = _AS_ASKED.get(scope["method"], scope["method"])
        for route, endpoint in self._routes:
            found = route.match(path)
            if found and endpoint.method == method:
                names = found.groupdict().items()
                return endpoint, {name: unquote(value) for name, value in names}
        return None, {}

    def _nothing_there(self, scope: Scope) -> Rejected:
        path: str = scope["raw_path"].decode("ascii")
        methods = {endpoint.method for route, endpoint in self._routes if route.match(path)}
        if methods:
            if "GET" in methods:
                methods.add("HEAD")
            return WrongMethod(scope["method"], ", ".join(sorted(methods)))
        return Rejected(
            "There is nothing at this address.",
            status=404,
            rule="route",
            way_out="GET /api/openapi.json lists what there is",
        )

    async def _caller(self, scope: Scope, secret: str | None, edge: str) -> Caller:
        """Find out who asks, from the credential alone."""
        if secret is None:
            return self._without_key(_address(scope))
        recent = self.node.recent(secret, edge)
        return recent or await self.node.sign_in(_address(scope), secret, edge)

    def _without_key(self, address: str) -> Caller:
        anybody = self.node.anybody()
        if anybody is not None:
            return anybody
        self.node.charge_address(address, "health")
        raise Unauthenticated(
            "This needs a key.",
            way_out="Authorization: Bearer KEY; the first key is in the home, in the file `key`",
        )

    async def _admit(
        self, endpoint: Endpoint, caller: Caller, scope: Scope, headers: Headers
    ) -> None:
        """Hold the caller to its rate and its role."""
        if endpoint.access in KEYLESS:
            self.node.charge_address(_address(scope), endpoint.work)
        elif endpoint.work != BY_PIPELINE:
            self.node.charge(caller, endpoint.work)
        elif _is_large(headers):
            self.node.check_call(caller)
        if endpoint.roles is not None:
            await self.node.require(caller, *endpoint.roles)

    async def _answer(
        self, endpoint: Endpoint, asked: Asked, scope: Scope, receive: Receive, served: _Served
    ) -> None:
        watch = Watch(receive, cancels=endpoint.called_off)
        try:
            answer = await endpoint.handle(asked)
            left, head = self._left(asked.caller, scope), scope["method"] == "HEAD"
            if isinstance(answer, Answer):
                await send_answer(served.begin(answer.status), answer, left, head=head)
            else:
                await send_stream(served.begin(_STREAMED), answer, left, head=head)
        except asyncio.CancelledError:
            if not watch.gone:
                raise  # the server is ending: it answers in our place
        finally:
            watch.end()

    def _left(self, caller: Caller, scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
        if caller is NOBODY:
            return rate_headers(self.node.allowance_of_address(_address(scope)))
        return rate_headers(self.node.allowance(caller))


async def _read_body(endpoint: Endpoint, receive: Receive, headers: Headers) -> Any:  # noqa: ANN401 - JSON
    body = await read_body(receive, headers, endpoint.largest)
    if endpoint.body is None:
        return None
    value = read_json(body, headers)
    endpoint.check_body(value)
    return value


def _is_large(headers: Headers) -> bool:
    """Whether the body is worth a look at the rate before it is read."""
    length = headers.get(b"content-length")
    return length is None or int(length) > _LARGE_BODY


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "unknown"


def _chain(headers: Headers) -> Chain:
    """Continue the caller's trace; what it says of its chain can only make that tighter."""
    traceparent = headers.get(b"traceparent")
    starry = headers.get(b"x-openstarry-trace-id")
    told = headers.get(b"openfang-chain")
    return read_chain(
        traceparent=traceparent.decode("latin-1") if traceparent else None,
        starry_id=starry.decode("latin-1") if starry else None,
        told=read_told(told.decode("latin-1")) if told else None,
    )


class _Served:
    """How far an answer has got, for what must be told if something breaks on the way."""

    __slots__ = ("_send", "caller", "mount", "route", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.caller = NOBODY
        self.mount: Mount | None = None
        self.route = ""
        self.status = 0

    def begin(self, status: int) -> Send:
        """Note that an answer is on its way, and give what sends it."""
        self.status = status
        return self._send

    async def fail(self, answer: Answer, left: tuple[tuple[bytes, bytes], ...]) -> None:
        """Answer with a problem, unless an answer is on its way: then it ends where it is."""
        if not self.status:
            await send_answer(self.begin(answer.status), answer, left)
            return
        raise ConnectionAbortedError
