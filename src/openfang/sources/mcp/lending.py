"""A server of this node as other nodes use it: their requests in, its answers and questions out.

They speak MCP with us, of the revision that we have agreed on with the server. What they ask was
judged and put on record where it came from; here it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from openfang.core.errors import CallFailed
from openfang.core.ids import random_hex
from openfang.core.values import dataclass
from openfang.protocols.mcp import messages
from openfang.protocols.mcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.lent import LOST, MEMBER, UNMADE, member_in, without_member
from openfang.protocols.mcp.messages import Answer, Ask, Failure
from openfang.protocols.mcp.meta import PROGRESS_TOKEN, meta_of, with_meta
from openfang.sources.mcp.abilities import SUBSCRIBE, UNSUBSCRIBE
from openfang.sources.mcp.questions import Unanswered
from openfang.sources.mcp.transport import Lost, Unmade

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager

    from openfang.protocols.mcp.results import Question
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.turns import Turns
    from openfang.sources.mcp.watches import Watches

Send: TypeAlias = Callable[[bytes], None]
_PROGRESS: Final = "notifications/progress"
_HEARD: Final = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
_OURS: Final = frozenset({LOST, UNMADE})


@dataclass(slots=True, kw_only=True)
class Lending:
    """One server, lent. `ready` gives the connection; from `enter` to `leave` it is in use.

    `session` is another one whenever the server was connected anew.
    """

    ready: Callable[[], Awaitable[Connection]]
    enter: Callable[[], None]
    leave: Callable[[], None]
    turns: Turns
    watches: Watches
    session: str = field(default_factory=lambda: random_hex(8))
    _hearing: dict[object, Send] = field(init=False, default_factory=dict[object, Send])
    _asked: dict[str, tuple[str, asyncio.Future[dict[str, Any]]]] = field(
        init=False,
        default_factory=dict[str, "tuple[str, asyncio.Future[dict[str, Any]]]"],
    )

    def arrived(self) -> None:
        """Hear that the server was connected anew."""
        self.session = random_hex(8)

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on to other nodes what belongs to no call."""
        if method in _HEARD:
            for send in self._hearing.values():
                send(messages.notification(method, params))

    def answered(self, node: str, answer: Answer | Failure) -> None:
        """Take a node's answer to a question of the server's; anybody else's is dropped."""
        asker, future = self._asked.get(str(answer.id), ("", None))
        if future is None or asker != node or future.done():
            return
        if isinstance(answer, Answer):
            future.set_result(answer.result)
        else:
            error = answer.error
            future.set_exception(Unanswered(error.code, error.message, error.data))

    async def hear(self, send: Send) -> None:
        """Have a node told what changes, until it goes."""
        with self._heard_by(send):
            await anyio.sleep_forever()

    @contextmanager
    def _heard_by(self, send: Send) -> Generator[None]:
        key = object()
        self._hearing[key] = send
        try:
            yield
        finally:
            del self._hearing[key]

    async def ask(self, node: str, ask: Ask, send: Send) -> bytes:
        """Do what a node asks, and write the answer; what is said before goes to `send`."""
        self.enter()
        try:
            return messages.answer(ask.id, await self._done(node, ask, send))
        except Unmade as lost:
            error = RpcError(UNMADE, str(lost))
        except CallFailed as failed:  # the server cannot be reached, as we found before we asked
            error = RpcError(UNMADE, failed.message)
        except Lost as lost:
            error = RpcError(LOST, str(lost))
        except RpcError as said:
            error = RpcError(INTERNAL_ERROR, said.message) if said.code in _OURS else said
        finally:
            self.leave()
        return messages.failure(ask.id, error)

    async def _done(self, node: str, ask: Ask, send: Send) -> Mapping[str, Any]:
        connection = await self.ready()
        method, params = ask.method, ask.params
        modern = connection.era == "modern"
        match method:
            case "initialize" if not modern:
                return {**connection.greeting.answer, "protocolVersion": connection.version}
            case "initialize" | "server/discover" if modern == (method == "initialize"):
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not of {connection.version}")
            case "server/discover":
                found = await connection.transport.request(method, params)
                return with_meta(found, {MEMBER: {"mirrors": connection.transport.mirrors}})
            case "logging/setLevel":
                await connection.hear(str(params.get("level")))
                return {}
            case "subscriptions/listen":
                return await self._listen(connection, node, params, send)
            case _ if method in {SUBSCRIBE, UNSUBSCRIBE}:
                return await self._watch(connection, node, method, str(params.get("uri")))
            case _:
                return await self._made(connection, node, ask, send)

    async def _made(
        self, connection: Connection, node: str, ask: Ask, send: Send
    ) -> Mapping[str, Any]:
        """Ask the server; what it says and asks about a call goes to the node whose call it is."""
        said, params = member_in(ask.params), without_member(ask.params)
        if not said:
            return await connection.transport.request(ask.method, params)
        guest = Guest(self, node, ask, send)
        headers = said.get("headers")
        async with _Turn(self.turns, guest):
            try:
                return await connection.transport.request(
                    ask.method, params, errand=guest, headers=headers
                )
            finally:
                guest.end()

    async def _watch(
        self, connection: Connection, node: str, method: str, uri: str
    ) -> Mapping[str, Any]:
        who = f"node:{node}"
        if method == SUBSCRIBE:
            return await self.watches.subscribe(connection, uri, who)
        return await self.watches.unsubscribe(connection, uri, who)

    async def _listen(
        self, connection: Connection, node: str, params: Mapping[str, Any], send: Send
    ) -> Mapping[str, Any]:
        """Have it told of changes as long as it wants to hear of them; what it names is watched."""
        wanted: Any = params.get("notifications")
        named: list[Any] = wanted.get("resourceSubscriptions", []) if wanted else []
        uris = [uri for uri in named if isinstance(uri, str)]
        with self._heard_by(send):
            for uri in uris:
                await self._watch(connection, node, SUBSCRIBE, uri)
            try:
                send(messages.notification("notifications/subscriptions/acknowledged", {}))
                await connection.lost.wait()
            finally:
                with suppress(Lost, RpcError):
                    for uri in uris:
                        await self._watch(connection, node, UNSUBSCRIBE, uri)
        raise Lost(connection.reason)

    async def put(self, node: str, method: str, params: Mapping[str, Any], send: Send) -> Any:  # noqa: ANN401 - any JSON
        """Put a question of the server's to the node whose call it is about."""
        number = f"lent-{random_hex(8)}"
        future = asyncio.get_running_loop().create_future()
        self._asked[number] = node, future
        send(messages.request(number, method, params))
        try:
            return await future
        except asyncio.CancelledError:
            send(messages.notification("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            del self._asked[number]


class Guest:
    """The call of another node, under way at a server of ours."""

    __slots__ = ("_lending", "_node", "_open", "_send", "_token", "connection")

    def __init__(self, lending: Lending, node: str, ask: Ask, send: Send) -> None:
        client = str(member_in(ask.params).get("client", ""))
        self.connection = f"{node}:{client}" if client else ""
        self._lending = lending
        self._node = node
        self._send = send
        self._token = meta_of(ask.params).get(PROGRESS_TOKEN)
        self._open: set[anyio.CancelScope] = set()

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what the server says of this call, by the number that the node gave it."""
        if method == _PROGRESS:
            params = {**params, PROGRESS_TOKEN: self._token}
        self.tell(method, params)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass it on as it is."""
        self._send(messages.notification(method, params))

    def held(self) -> AbstractContextManager[None]:
        """Its time is the other node's."""
        return nullcontext()

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a question to the other node, which puts it to its client."""
        if not self.connection:
            raise Unanswered(METHOD_NOT_FOUND, f"This call has no client that can answer {method}")
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            try:
                async with self._lending.turns.aside(self):
                    return await self._lending.put(self._node, method, params, self._send)
            finally:
                self._open.discard(scope)
        raise Unanswered(INTERNAL_ERROR, f"The call that {method} belonged to has ended")

    async def answers(self, questions: Sequence[Question]) -> Mapping[str, Mapping[str, Any]]:
        """Answer none: what a result asks goes to the other node with the result."""
        raise Unanswered(INTERNAL_ERROR, f"{len(questions)} questions came to the wrong node")

    def end(self) -> None:
        """Take back what was asked and not answered."""
        for scope in self._open:
            scope.cancel()


@dataclass(slots=True)
class _Turn:
    """The turn of a guest among all whose calls are under way at a server."""

    turns: Turns
    guest: Guest
    _queued: bool = False

    async def __aenter__(self) -> None:
        self._queued = bool(self.guest.connection) or self.turns.strict
        if self._queued:
            await self.turns.enter(self.guest)
        else:
            self.turns.others += 1

    async def __aexit__(self, *_: object) -> None:
        if self._queued:
            self.turns.leave(self.guest)
        else:
            self.turns.leave_others()
