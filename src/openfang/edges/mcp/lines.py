"""One MCP server over a pair of byte streams, for as long as its client is connected.

Requests run side by side. Both eras share the connection: a request that names a modern revision
stands alone, `initialize` begins a talk. Each answer is framed as its request was.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.edges.mcp.bodies import find_unclear, invalid
from openfang.edges.mcp.changes import tell_changes
from openfang.edges.mcp.context import Context, Talk, in_talk
from openfang.edges.mcp.modern import is_modern_request, modern_context
from openfang.edges.mcp.outlet import Outlet
from openfang.edges.mcp.resources import unwatch
from openfang.protocols.mcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RpcError,
)
from openfang.protocols.mcp.framing import (
    MAX_FRAME,
    REFUSED,
    Broken,
    Frame,
    Oversize,
    Unframer,
    decoded,
    in_flight,
    unread,
)
from openfang.protocols.mcp.messages import (
    Answer,
    Ask,
    Failure,
    Malformed,
    Note,
    answer,
    failure,
    read,
    read_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offer
    from openfang.protocols.mcp.framing import Framed, Framing
    from openfang.protocols.mcp.messages import Id, Message

_log = logging.getLogger("openfang.mcp")
_CHUNK: Final = 65_536
_MEGABYTE: Final = 1 << 20
_BATCHED: Final = "2025-03-26"
_DISCOVER: Final = "server/discover"
_LISTEN: Final = "subscriptions/listen"
_TURNS: Final = 20
_GOODBYE_SECONDS: Final = 1.0
_CLEAN_UP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLimits:
    """How much one client may have at once.

    `full` and `most` are bytes that wait for it: at the first nothing more is read of it, at the
    second the connection ends. After the end of its input calls have `drain_seconds`.
    """

    message: int = MAX_FRAME
    at_once: int = 2000
    unanswered: int = 64 * _MEGABYTE
    full: int = 16 * _MEGABYTE
    most: int = 128 * _MEGABYTE
    drain_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """The end of whoever serves: `farewell` asks the client to hang up, so that nothing is lost."""

    stop: anyio.Event
    farewell: bytes


async def serve_lines(  # noqa: PLR0913 - both streams, both ends, both settings
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handler: Handler,
    offer_for: Callable[[], Offer],
    *,
    limits: LineLimits = LineLimits(),  # noqa: B008 - frozen
    leaving: Leaving | None = None,
) -> None:
    """Serve until the client hangs up and what it asked has been answered, or until cancelled.

    `offer_for` says, for each request, what this client is offered.
    """
    line = _Line(writer, handler, offer_for, limits)
    try:
        async with anyio.create_task_group() as group:
            if leaving is not None:
                group.start_soon(line.leave, leaving, group.cancel_scope)
            await line.listen(reader)
            group.cancel_scope.cancel()
        await line.finish(None if leaving and leaving.stop.is_set() else limits.drain_seconds)
    finally:
        with anyio.CancelScope(shield=True):
            await line.close()


@dataclass(frozen=True, slots=True)
class _Link:
    """The way back to the client while one of its requests is answered."""

    out: Outlet
    framing: Framing
    asks: bool

    @property
    def open(self) -> bool:
        return self.asks and self.out.open

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.out.tell(method, params, self.framing)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self.out.ask(method, params, self.framing)


class _Line:
    """A connected client: what it has said, and what it waits for."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        handler: Handler,
        offer_for: Callable[[], Offer],
        limits: LineLimits,
    ) -> None:
        self._out = Outlet(writer, full=limits.full, most=limits.most)
        self._handler = handler
        self._offer_for = offer_for
        self._limits = limits
        self._talk = Talk(lasting=True)
        self._run = self._talk.run
        self._end_telling: Callable[[], None] | None = None
        self._requests: dict[Id, asyncio.Task[bytes]] = {}
        self._subscriptions: set[Id] = set()
        self._batches: set[asyncio.Task[None]] = set()
        self._unanswered = 0

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Read what the client says, until it says nothing more."""
        unframer = Unframer(self._limits.message)
        try:
            while data := await reader.read(_CHUNK):
                await self._take(unframer.feed(data))
                await self._out.room()
        except ConnectionError:
            self._out.cut()
        else:
            await self._take(unframer.end())

    async def leave(self, leaving: Leaving, scope: anyio.CancelScope) -> None:
        """Once we end, ask the client to hang up; what it asked before is answered."""
        await leaving.stop.wait()
        self._cancel(self._subscriptions)
        self._out.post(leaving.farewell, self._out.framing)
        await anyio.sleep(_GOODBYE_SECONDS)
        await self._answered()
        scope.cancel()

    async def finish(self, patience: float | None) -> None:
        """Let what was asked be answered. Nobody can be asked anything any more."""
        self._out.forget()
        self._cancel(self._subscriptions)
        with anyio.move_on_after(patience):
            await self._answered()
        with anyio.move_on_after(self._limits.drain_seconds):
            await self._out.close()

    async def close(self) -> None:
        """Leave nothing running."""
        talk = self._talk
        self._begin()
        self._out.forget()
        self._cancel(self._requests)
        self._handler.left(self._run)
        with anyio.move_on_after(_CLEAN_UP_SECONDS):
            await self._answered()
            await self._unwatch(talk)
        self._out.cut()

    async def _unwatch(self, talk: Talk) -> None:
        with suppress(OpenFangError):  # what was offered may be gone
            await unwatch(self._offer_for(), talk)

    async def _answered(self) -> None:
        while running := {*self._requests.values(), *self._batches}:
            await asyncio.wait(running)

    def _cancel(self, numbers: Collection[Id]) -> None:
        for number in numbers:
            self._requests[number].cancel()

    async def _take(self, found: Iterable[Framed]) -> None:
        for one in found:
            await self._turn()
            match one:
                case Frame(body, framing):
                    self._out.framing = framing
                    await self._read(body)
                case Oversize(framing, number):
                    self._out.framing = framing
                    self._refuse(number, unread(one, self._limits.message))
                case Broken():
                    self._refuse(None, unread(one))

    async def _turn(self) -> None:
        """Let what can be answered at once be answered, before anything is too much."""
        for _ in range(_TURNS):
            if len(self._requests) < self._limits.at_once:
                return
            await asyncio.sleep(0)

    async def _read(self, body: bytes) -> None:
        try:
            value = decoded(body)
        except RpcError as error:
            self._refuse(None, error)
            return
        messages = read(value)
        unclear = find_unclear(body, value)
        if isinstance(value, list):
            self._batch(messages, unclear)
        elif unclear:
            number = None if isinstance(messages[0], Note) else messages[0].id
            self._refuse(number, invalid(unclear))
        elif isinstance(messages[0], Ask) and messages[0].method == "initialize":
            await self._greet(messages[0])
        else:
            self._one(messages[0], len(body))

    async def _greet(self, ask: Ask) -> None:
        """Begin a talk, maybe in the place of another: what follows depends on it."""
        self._begin()
        self._out.post(await self._answer(ask, self._out.framing), self._out.framing)

    def _begin(self) -> None:
        self._talk = Talk(lasting=True, run=self._run)
        if self._end_telling is not None:
            self._end_telling()
            self._end_telling = None

    def _one(self, message: Message, size: int) -> None:
        framing, reply = self._out.framing, self._reply(message, size)

        def ended(task: asyncio.Task[bytes]) -> None:
            if not task.cancelled():
                self._out.post(task.result(), framing)

        if isinstance(reply, asyncio.Task):
            reply.add_done_callback(ended)
        elif reply is not None:
            self._out.post(reply, framing)

    def _reply(self, message: Message, size: int) -> asyncio.Task[bytes] | bytes | None:
        """Heed a message: what it is answered with, now or later, if with anything."""
        match message:
            case Ask():
                refusal = self._refusal(message, size)
                return failure(message.id, refusal) if refusal else self._start(message, size)
            case Note():
                self._told(message)
            case Answer() | Failure():
                self._out.settle(message)
            case Malformed(reason, number):
                error = invalid(reason)
                if not self._out.settle(Failure(number, error)):
                    return failure(number, error)
        return None

    def _refusal(self, ask: Ask, size: int) -> RpcError | None:
        if ask.id in self._requests:
            return in_flight(ask.id)
        count = len(self._requests)
        if count < self._limits.at_once and self._unanswered + size <= self._limits.unanswered:
            return None
        return RpcError(INTERNAL_ERROR, f"{count} requests are in flight: wait for an answer")

    def _start(self, ask: Ask, size: int) -> asyncio.Task[bytes]:
        task = asyncio.create_task(self._answer(ask, self._out.framing))
        self._requests[ask.id] = task
        self._unanswered += size
        if ask.method == _LISTEN:
            self._subscriptions.add(ask.id)

        def ended(_: asyncio.Task[bytes]) -> None:
            del self._requests[ask.id]
            self._unanswered -= size
            self._subscriptions.discard(ask.id)

        task.add_done_callback(ended)
        return task

    async def _answer(self, ask: Ask, framing: Framing) -> bytes:
        try:
            context = self._context(ask, framing)
            return answer(ask.id, await self._handler.handle(ask.method, ask.params, context))
        except RpcError as error:
            return failure(ask.id, error)
        except OpenFangError as error:
            return failure(ask.id, RpcError(INVALID_PARAMS, error.message))
        except Exception:  # noqa: BLE001 - a mistake of ours: whoever waits hears that there was one
            _log.exception("%s could not be answered", ask.method[:100])
            return failure(ask.id, RpcError(INTERNAL_ERROR, "Internal error"))

    def _context(self, ask: Ask, framing: Framing) -> Context:
        """Tell the eras apart. Made when its turn has come: what was said before is in force."""
        offer = self._offer_for()
        if ask.method == _DISCOVER or is_modern_request(ask.params):
            link = _Link(self._out, framing, asks=False)
            return modern_context(ask.params, offer, link, number=ask.id, run=self._run)
        return in_talk(offer, _Link(self._out, framing, asks=True), self._talk)

    def _told(self, note: Note) -> None:
        match note.method:
            case "notifications/cancelled":
                number = read_id(note.params.get("requestId"))
                if number in self._requests:
                    self._requests[number].cancel()
            case "notifications/initialized":
                self._tell_changes()
            case _:
                pass

    def _tell_changes(self) -> None:
        if self._end_telling is None:
            self._end_telling = tell_changes(self._offer_for(), self._talk, self._out.tell)

    def _batch(self, messages: Sequence[Message], unclear: str) -> None:
        """Answer many in one, as one revision allows."""
        if unclear or self._talk.version != _BATCHED:
            reason = unclear or f"{self._talk.version} has no batches"
            self._refuse_batch(messages, invalid(reason))
            return
        replies = [self._of_batch(message) for message in messages]
        task = asyncio.create_task(self._collect(replies, self._out.framing))
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    def _of_batch(self, message: Message) -> asyncio.Task[bytes] | bytes | None:
        if isinstance(message, Ask) and message.method == "initialize":
            return failure(message.id, invalid("initialize stands alone"))
        return self._reply(message, 0)

    async def _collect(
        self, replies: Sequence[asyncio.Task[bytes] | bytes | None], framing: Framing
    ) -> None:
        tasks = [reply for reply in replies if isinstance(reply, asyncio.Task)]
        if tasks:
            await asyncio.wait(tasks)
        bodies = [_body(reply) for reply in replies]
        if said := [body for body in bodies if body]:
            self._out.post(b"[" + b",".join(said) + b"]", framing)

    def _refuse(self, number: Id | None, error: RpcError) -> None:
        """Say why something was not read; a question that it was to answer stays without."""
        if not self._out.settle(Failure(number, error)):
            self._out.post(failure(number, error), self._out.framing)

    def _refuse_batch(self, messages: Sequence[Message], error: RpcError) -> None:
        """Say why nothing of it was heeded, and which requests it was that have no other answer."""
        for one in messages:
            if isinstance(one, Answer | Failure):
                self._out.settle(Failure(one.id, error))
        waiting = {REFUSED: [one.id for one in messages if isinstance(one, Ask)]}
        self._refuse(None, RpcError(error.code, error.message, waiting))


def _body(reply: asyncio.Task[bytes] | bytes | None) -> bytes:
    if isinstance(reply, asyncio.Task):
        return b"" if reply.cancelled() else reply.result()
    return reply or b""
