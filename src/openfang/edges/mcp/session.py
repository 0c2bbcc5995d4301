"""A session: what is kept of a client of the handshake era between its requests.

Its requests that are being answered, questions that it was asked, and streams that it can take up.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import GuardTripped
from openfang.edges.api.serving import go_on, serving
from openfang.edges.mcp.events import MOST, MOST_BYTES, Events, read_event_id
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.framing import in_flight
from openfang.protocols.mcp.messages import Answer, failure, notification

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from openfang.edges.api.staying import Still
    from openfang.edges.api.watch import Watch
    from openfang.edges.mcp.elsewhere import Known
    from openfang.edges.mcp.ports import Offer
    from openfang.protocols.mcp.messages import Failure, Id

STANDING: Final = "0"
_RESUMES_SINCE: Final = "2025-11-25"
_AT_ONCE: Final = 256
_NOT_KEPT: Final = "The answer is lost: this was interrupted, and may have had an effect"
_CANCELLED: Final = -32800
# What a client knows by its number from the node that had its session before is not ours.
_OF_ONE_NODE: Final = 1 << 32


class _Running:
    """A request that is being answered, by this task."""

    __slots__ = ("_task", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._task = serving()

    def cancel(self) -> None:
        """Cancel it; whose task it is finds out from `cancelled` that it was meant."""
        if not self.cancelled:
            self.cancelled = True
            self._task.cancel()


class _Deserted(RpcError):  # noqa: N818 - it reads as what it is
    """Whoever was asked has gone."""


def _busy(requests: int) -> GuardTripped:
    return GuardTripped(
        f"{requests} requests of the session are being answered.",
        rule="too_many_requests",
        way_out="wait for an answer",
    )


class Session:
    """One session. What most never need is made when it is needed.

    `offer` is what resources were subscribed to by. `still` says whether its key is in force.
    `known` is what all nodes know of it, where there are several.
    """

    __slots__ = (
        "_asked",
        "_end_telling",
        "_ended_streams",
        "_running",
        "_streams",
        "_taken",
        "_watches",
        "caller",
        "id",
        "known",
        "offer",
        "place",
        "still",
        "talk",
        "until",
    )

    def __init__(self, known: Known, still: Still) -> None:
        self.id = known.id
        self.caller = known.caller
        self.place = known.place
        self.talk = known.talk
        self.known = known
        self.still = still
        self.until = 0.0
        self._taken: count[int] | None = None
        self._streams: dict[str, Events] | None = None
        self._ended_streams: dict[str, Events] | None = None
        self._asked: dict[Id, asyncio.Future[Mapping[str, Any]]] | None = None
        self._running: dict[Id, _Running] | None = None
        self._end_telling: Callable[[], None] | None = None
        self._watches: set[Watch] | None = None
        self.offer: Offer | None = None

    # Requests of the client

    @contextmanager
    def running(self, number: Id) -> Generator[None]:
        """Note that a request is being answered; a cancelled one ends with an error."""
        known = self._running = self._running or {}
        if number in known:
            raise in_flight(number)
        if len(known) >= _AT_ONCE:
            raise _busy(len(known))
        running = known[number] = _Running()
        try:
            yield
        except asyncio.CancelledError:
            if not running.cancelled:
                raise
            raise RpcError(_CANCELLED, "Request cancelled") from None
        finally:
            del known[number]
            if running.cancelled:
                go_on()

    def cancel(self, number: Id | None) -> None:
        """Cancel a request, if it is not answered yet."""
        running = self._running.get(number) if self._running and number is not None else None
        if running is not None:
            running.cancel()

    # Questions of ours

    async def ask(
        self, put: Callable[[Id], None], tell: Callable[[str, Mapping[str, Any]], None]
    ) -> Mapping[str, Any]:
        """Put a question, and wait for its answer; when nobody waits any more it is taken back."""
        asked = self._asked = self._asked or {}
        number = self._number()
        answered = asked[number] = asyncio.get_running_loop().create_future()
        put(number)
        try:
            return await answered
        except (asyncio.CancelledError, _Deserted):
            tell("notifications/cancelled", {"requestId": number, "reason": "It is over"})
            raise
        finally:
            del asked[number]

    def settle(self, heard: Answer | Failure) -> None:
        """Take the answer to a question; what answers none is not heard."""
        question = self._asked.get(heard.id) if self._asked and heard.id is not None else None
        if question is None or question.done():
            return
        if isinstance(heard, Answer):
            question.set_result(heard.result)
        else:
            question.set_exception(heard.error)

    @property
    def is_deserted(self) -> bool:
        """Whether the client has gone, though it was asked something."""
        return bool(self._asked) and not self.is_attended

    def desert(self) -> None:
        """Wait for no answer any more: the call that wants one may keep others waiting."""
        for question in (self._asked or {}).values():
            if not question.done():
                text = "The client that was asked hung up, and has not come back"
                question.set_exception(_Deserted(INTERNAL_ERROR, text))

    # Streams

    def stream(self, answers: Sequence[Id] = ()) -> Events:
        """Begin the stream of one POST; a client that can go on from its beginning is told so."""
        events = self._open(str(self._number()), answers)
        if self.talk.version >= _RESUMES_SINCE:
            events.prime()
        return events

    def standing(self) -> Events:
        """Give the stream for what belongs to no request."""
        return (self._streams or {}).get(STANDING) or self._open(STANDING)

    def _open(self, name: str, answers: Sequence[Id] = ()) -> Events:
        streams = self._streams = self._streams or {}
        events = streams[name] = Events(name, answers, last=self._first)
        return events

    def after(self, last: str) -> tuple[Events, int] | None:
        """Find the stream on which a client saw this event last; nothing if it is not kept.

        Who waits on one that is lost for an answer is told that none will come.
        """
        seen = read_event_id(last)
        if seen is None:
            return None
        name = seen.stream
        events = (self._streams or {}).get(name) or (self._ended_streams or {}).get(name)
        if events is not None:
            return events, seen.number
        return (_lost(seen.answers), 0) if seen.answers else None

    def tell_by(self, end_telling: Callable[[], None]) -> None:
        """Hear of changes in this way from now on, and no longer in the one before."""
        if self._end_telling is not None:
            self._end_telling()
        self._end_telling = end_telling

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something that belongs to no request."""
        if self.still():
            self.standing().put(notification(method, params), notice=True)

    def retire(self, events: Events) -> None:
        """Keep what was sent on a stream that has ended, at the cost of those before it."""
        del (self._streams or {})[events.name]
        kept = self._ended_streams = self._ended_streams or {}
        kept[events.name] = events
        while len(kept) > 1 and (self._kept_events > MOST or self.kept > MOST_BYTES):
            del kept[next(iter(kept))]

    @property
    def _kept_events(self) -> int:
        return sum(events.count for events in (self._ended_streams or {}).values())

    @property
    def kept(self) -> int:
        """Bytes of what was sent on streams that have ended, and is kept."""
        return sum(events.size for events in (self._ended_streams or {}).values())

    @contextmanager
    def attended(self, watch: Watch) -> Generator[None]:
        """Note that the client is there, for as long as the watch sees it."""
        watches = self._watches = self._watches or set()
        watches.add(watch)
        try:
            yield
        finally:
            watches.discard(watch)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is here that the client could still want, but for what all nodes know."""
        kept = (self._ended_streams or {}).values()
        lacking = any(events.unread for events in kept)
        return not (self._running or self._asked or self.is_attended or lacking)

    @property
    def is_attended(self) -> bool:
        """Whether the client waits for an answer, or listens."""
        return any(not watch.gone for watch in self._watches or ())

    def forget(self) -> None:
        """Keep nothing of streams that have ended."""
        self._ended_streams = None

    def end(self) -> None:
        """End everything that belongs to it."""
        if self._end_telling is not None:
            self._end_telling()
        for running in (self._running or {}).values():
            running.cancel()
        if standing := (self._streams or {}).get(STANDING):
            standing.end()

    @property
    def _first(self) -> int:
        return self.known.generation * _OF_ONE_NODE

    def _number(self) -> int:
        self._taken = self._taken or count(self._first + 1)
        return next(self._taken)


def _lost(answers: Sequence[Id]) -> Events:
    events = Events()
    for number in answers:
        events.put(failure(number, RpcError(INTERNAL_ERROR, _NOT_KEPT)))
    events.end()
    return events
