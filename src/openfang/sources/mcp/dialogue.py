"""Who asked what: our requests and their answers by id, and the server's own requests to us.

Every transport has one. It is told of each message, from whatever pipe or stream it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from anyio import CancelScope

from openfang.core.values import dataclass
from openfang.protocols.mcp import messages
from openfang.protocols.mcp.errors import INTERNAL_ERROR, BadAnswer, RpcError
from openfang.protocols.mcp.messages import Answer, Ask, Failure, Id, Malformed, Message, Note
from openfang.protocols.mcp.meta import PROGRESS_TOKEN, with_meta
from openfang.sources.mcp.transport import LOG, Errand, Lost, Peer, tell

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.abc import TaskGroup

Reply: TypeAlias = Callable[[bytes], Awaitable[None]]
ASKED_AT_ONCE: Final = 16
_REPLIES_AT_ONCE: Final = 64
_DIGITS: Final = 18


class Exchange:
    """What a cancel scope does for one task that is cancelled at most once, at a tenth its cost."""

    __slots__ = ("_cancelled", "_cancelling", "_task")

    def __init__(self) -> None:
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> None:
        task = self._task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._cancelling = task.cancelling()

    def cancel(self) -> None:
        """End what is being exchanged; whoever ends it from within goes by itself."""
        task = self._task
        if task is not None and not self._cancelled and task is not asyncio.current_task():
            self._cancelled = True
            task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        if not self._cancelled or task is None:
            return False
        ours = task.uncancel() <= self._cancelling
        return ours and kind is asyncio.CancelledError


@dataclass(slots=True, kw_only=True)
class Waiting:
    """One request of ours that has no answer yet."""

    id: int
    method: str
    errand: Errand | None
    future: asyncio.Future[dict[str, Any]]
    sent: bool = field(default=False)
    scope: Exchange | None = field(default=None)

    def exchange(self) -> Exchange:
        """Make the scope of an exchange of its own: it does not outlast the connection."""
        self.scope = Exchange()
        return self.scope

    def line(self, params: Mapping[str, Any] | None) -> bytes:
        """Write the request; progress, if somebody listens, comes back by its id."""
        if self.errand is not None:
            params = with_meta(params, {PROGRESS_TOKEN: self.id})
        return messages.request(self.id, self.method, params)

    def cancellation(self) -> bytes | None:
        """Write that no answer is wanted any more; `initialize` may not be cancelled."""
        answered = self.future.done() and not self.future.cancelled()
        if not self.sent or answered or self.method == "initialize":
            return None
        params = {"requestId": self.id, "reason": "The caller wants no answer any more"}
        return messages.notification("notifications/cancelled", params)


class Dialogue:
    """The state of one connection. Messages that belong to nothing are dropped.

    While `serves` is false the server may not ask: in the modern era it has to put its questions
    into a result. A `fence` raises what keeps a request from being made.
    """

    def __init__(self, peer: Peer, tasks: TaskGroup, reply: Reply) -> None:
        self.lost = anyio.Event()
        self.reason = ""
        self.serves = True
        self.fence: Callable[[], None] | None = None
        self._peer = peer
        self._tasks = tasks
        self._reply = reply
        self._numbers = count(1)
        self._waiting: dict[int, Waiting] = {}
        self._asked: dict[Id, CancelScope] = {}
        self._replies = 0

    def begin(self, method: str, errand: Errand | None) -> Waiting:
        """Open a request; `finish` has to follow."""
        if self.reason:
            raise Lost(self.reason)
        if self.fence is not None:
            self.fence()
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        waiting = Waiting(id=next(self._numbers), method=method, errand=errand, future=future)
        self._waiting[waiting.id] = waiting
        return waiting

    def finish(self, waiting: Waiting) -> None:
        """Close a request, answered or not."""
        del self._waiting[waiting.id]
        if waiting.future.done():
            if not waiting.future.cancelled():
                waiting.future.exception()  # seen, even when nobody waited for it any more
        else:
            waiting.future.cancel()

    def lose(self, reason: str) -> None:
        """Fail all that is under way: nothing more will come."""
        if not self.reason:
            self.reason = reason
            self.lost.set()
            for waiting in self._waiting.values():
                self._fail(waiting, Lost(reason))
                if waiting.scope is not None:
                    waiting.scope.cancel()

    def heard(self, value: object, errand: Errand | None = None) -> None:
        """Take decoded JSON. `errand` is that of the call whose own stream it came on."""
        for message in messages.read(value):
            self._take(message, errand)

    def _take(self, message: Message, errand: Errand | None) -> None:
        match message:
            case Answer(id=number, result=result):
                if (waiting := self._numbered(number)) and not waiting.future.done():
                    waiting.future.set_result(result)
            case Failure(id=number, error=error):
                self._fail(self._numbered(number), error)
            case Note():
                self._note(message, errand)
            case Ask():
                self._ask(message, errand or self._peer)
            case Malformed(id=number, reason=reason):
                self._fail(self._numbered(number), BadAnswer(f"The server answered, but {reason}"))

    def _numbered(self, given: object) -> Waiting | None:
        """Find who waits. Some servers give a number back as a string."""
        if isinstance(given, str) and len(given) <= _DIGITS and given.isascii():
            given = int(given) if given.isdigit() else None
        return self._waiting.get(given) if type(given) is int else None

    def _fail(self, waiting: Waiting | None, error: Exception) -> None:
        if waiting is not None and not waiting.future.done():
            waiting.future.set_exception(error)

    def _note(self, note: Note, errand: Errand | None) -> None:
        match note.method:
            case "notifications/progress":
                self._progress(note.params)
            case "notifications/cancelled":
                self._withdrawn(note.params.get("requestId"))
            case "notifications/message" | "notifications/elicitation/complete" if errand:
                tell(errand.told, note.method, note.params)
            case _:
                tell(self._peer.told, note.method, note.params)

    def _progress(self, params: Mapping[str, Any]) -> None:
        waiting = self._numbered(params.get(PROGRESS_TOKEN))
        if waiting is not None and waiting.errand is not None:
            tell(waiting.errand.told, "notifications/progress", params)

    def _withdrawn(self, number: object) -> None:
        scope = self._asked.get(number) if isinstance(number, int | str) else None
        if scope is not None:
            scope.cancel()

    def _ask(self, ask: Ask, peer: Peer) -> None:
        if ask.id in self._asked or not self.serves:
            return
        if ask.method == "ping":
            self._send_soon(messages.answer(ask.id, {}))
        elif len(self._asked) >= ASKED_AT_ONCE:
            busy = f"{ASKED_AT_ONCE} requests are being answered already"
            self._send_soon(messages.failure(ask.id, RpcError(INTERNAL_ERROR, busy)))
        else:
            self._asked[ask.id] = CancelScope()
            self._tasks.start_soon(self._serve, ask, peer)

    def _send_soon(self, line: bytes) -> None:
        if self._replies < _REPLIES_AT_ONCE:
            self._replies += 1
            self._tasks.start_soon(self._send_now, line)

    async def _send_now(self, line: bytes) -> None:
        try:
            await self._send(line)
        finally:
            self._replies -= 1

    async def _serve(self, ask: Ask, peer: Peer) -> None:
        try:
            with self._asked[ask.id]:
                await self._send(await self._answer(ask, peer))
        finally:
            del self._asked[ask.id]

    async def _answer(self, ask: Ask, peer: Peer) -> bytes:
        try:
            return messages.answer(ask.id, await peer.asked(ask.method, ask.params))
        except RpcError as error:
            return messages.failure(ask.id, error)
        except Exception:  # noqa: BLE001 - other people's code
            LOG.exception("The answer to the server's %s failed", ask.method)
            return messages.failure(ask.id, RpcError(INTERNAL_ERROR, "Internal error"))

    async def _send(self, line: bytes) -> None:
        try:
            await self._reply(line)
        except (Lost, RpcError) as error:
            LOG.debug("An answer to the server was not taken: %s", error)


class Carrier:
    """What every transport shows of its dialogue."""

    def __init__(self, peer: Peer, tasks: TaskGroup, reply: Reply) -> None:
        self._dialogue = Dialogue(peer, tasks, reply)

    def lose(self, reason: str) -> None:
        """Give it up: nothing more is asked, and nothing more is waited for."""
        self._dialogue.lose(reason)

    def fence(self, check: Callable[[], None]) -> None:
        """Make no request any more for which this raises."""
        self._dialogue.fence = check

    @property
    def lost(self) -> anyio.Event:
        """Set when the connection is gone; one exchange that failed does not end it."""
        return self._dialogue.lost

    @property
    def reason(self) -> str:
        """Why it is gone; empty while it is not."""
        return self._dialogue.reason

    @property
    def heeded(self) -> bool:
        """Whether what we said can have ended it: no words end a server at an address."""
        return False
