"""What happens, live: the audit log as server-sent events, read only while somebody listens.

An event carries a bookmark: the number of its record, and where several nodes write one log the
last number of each. Who reconnects with it, to whichever node, misses nothing and sees nothing
twice; who reads too slowly is cut off, and can do just that. A bookmark alone, without an event,
says that there was nothing for this listener up to there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from anyio import CapacityLimiter

from openfang.core.bookmarks import START
from openfang.core.calls import Role
from openfang.core.errors import GuardTripped, OpenFangError
from openfang.core.events import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    APPROVAL_SPENT,
    CONFIG_RELOADED,
    EVENT_PUBLISHED,
    KEY_REVOKED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
)
from openfang.core.values import dataclass
from openfang.storage.chains import read_so_far
from openfang.storage.recent import recent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping

    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller
    from openfang.storage.ports import Reader, Storage

_log = logging.getLogger("openfang.events")
_TICK_SECONDS = 0.1
_TICKS_TO_LOOK_AGAIN = 10
_TICKS_TO_OTHERS = {"sqlite": 1, "postgres": 5}
"""Whoever writes into the same file is heard of at once, other nodes a little later."""
_TICKS_TO_HEALTH = 100
_AT_ONCE = 500
_MOST_WAITING = 4_000_000
_MOST_OF_ONE = 20
_LOOKING_BACK = 2
_ENDS_ACCESS = frozenset({KEY_REVOKED, CONFIG_RELOADED})
_QUESTIONS = frozenset({APPROVAL_REQUESTED, APPROVAL_ANSWERED, APPROVAL_SPENT})
_KINDS = {
    TOOL_INVOCATION_START: "call",
    TOOL_INVOCATION_END: "call",
    POLICY_DECISION: "decision",
    POLICY_VIOLATION: "decision",
    EVENT_PUBLISHED: "event",
}


@dataclass(frozen=True, slots=True)
class _Told:
    """One event, ready to be sent, and what has been read with it."""

    node: str
    number: int
    caller: str
    event: str
    upto: Bookmark
    text: bytes

    def to_one(self, after: Bookmark) -> bytes:
        """Write it for one who has read further elsewhere."""
        upto = str(self.upto | after).encode()
        return b"id: %b\n%b" % (upto, self.text.partition(b"\n")[2])


@dataclass(frozen=True, slots=True)
class View:
    """What a listener may see: one caller's events and those of some kinds, or all of them."""

    caller: str | None = None
    kinds: frozenset[str] = frozenset()

    def shows(self, event: _Told) -> bool:
        """Whether this is among it."""
        return self.caller in {None, event.caller} or event.event in self.kinds


_ALL = View()


@dataclass(frozen=True, slots=True)
class _Part:
    """What was read at once: from where, and how far."""

    told: tuple[_Told, ...]
    start: Bookmark
    end: Bookmark


@dataclass(slots=True, eq=False)
class _Listener:
    """One open stream."""

    view: View
    after: Bookmark
    still: Callable[[], bool]
    serving: asyncio.Task[Any] | None
    waiting: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def put(self, text: bytes) -> None:
        """Leave something to be sent; who has not taken what came before is cut off."""
        if self.ended:
            return
        if self.size > _MOST_WAITING and self.serving is not None:
            self.end()
            self.serving.cancel()
            return
        self.waiting.append(text)
        self.size += len(text)
        self.wake.set()

    async def take(self) -> bytes:
        """Wait for what is to be sent next."""
        await self.wake.wait()
        self.wake.clear()
        text = b"".join(self.waiting)
        self.waiting.clear()
        self.size = 0
        return text

    def end(self) -> None:
        """Let the stream end."""
        self.ended = True
        self.wake.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Who wants to listen. `still` says whether it may yet, `pay` takes cells for a long look back.

    `after` is what it has seen before.
    """

    caller: Caller
    after: Bookmark | None
    still: Callable[[], bool]
    pay: Callable[[], object]

    @property
    def view(self) -> View:
        """What it may see: who answers questions hears of everybody's."""
        match self.caller.role:
            case Role.AUDITOR | Role.ADMIN:
                return _ALL
            case Role.APPROVER:
                return View(self.caller.id, _QUESTIONS)
            case Role.USER:
                return View(self.caller.id)


class Feed:
    """Reads the log for everybody who listens, once for all of them, and never in the loop.

    `most` is how many may listen at once; an administrator still finds a place then. `written` is
    the last record of this node itself: other nodes are asked for less often.
    """

    def __init__(
        self,
        database: Storage,
        health: Callable[[], Mapping[str, Any]],
        written: Callable[[], object],
        *,
        most: int = 250,
    ) -> None:
        self._database = database
        self._health = health
        self._written, self._own = written, written()
        self._most = most
        self._open = Counter[str]()
        self._listening: set[_Listener] = set()
        self._follows, self._looks_back = CapacityLimiter(1), CapacityLimiter(_LOOKING_BACK)
        self._somebody = anyio.Event()
        self._last = START
        self._stopped = False

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return len(self._listening)

    async def run(self, stop: anyio.Event) -> None:
        """Pass on what happens until the node stops, and end every stream then."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            await stop.wait()
            group.cancel_scope.cancel()
        self._stopped = True
        for listener in self._listening:
            listener.end()

    async def _watch(self) -> None:
        for tick in count(1):
            if not self._listening:
                self._somebody = anyio.Event()
                await self._somebody.wait()
            await anyio.sleep(_TICK_SECONDS)
            try:
                await self._look(tick)
            except OpenFangError as error:
                _log.warning("Events wait: %s", error.message)

    async def _look(self, tick: int) -> None:
        if tick % _TICKS_TO_LOOK_AGAIN == 0:
            self._dismiss()
        if self._own != self._written() or tick % _TICKS_TO_OTHERS[self._database.dialect] == 0:
            self._own = self._written()
            await self._follow()
        if tick % _TICKS_TO_HEALTH == 0:
            self._send_to_all(self._health_event(self._last))

    async def _follow(self) -> None:
        self._last, newest = await read_so_far(self._database, self._last)
        while self._last.misses(newest):
            self._pass_on(await self._read(self._last, _ALL, self._follows), newest)

    def _dismiss(self) -> None:
        """End the streams of those whose key is no longer in force."""
        for listener in self._listening:
            if not listener.still():
                listener.end()

    async def _read(self, after: Bookmark, view: View, limiter: CapacityLimiter) -> _Part:
        """Read on aside: a record may be long, and others want the loop."""
        return await self._database.aside(partial(_read, after=after, view=view), limiter)

    def _pass_on(self, part: _Part, newest: Bookmark) -> None:
        told = part.told
        # Somebody who came meanwhile may have seen more; of a log that was cut nothing may be left.
        self._last |= part.end if told else newest
        if not told:
            return
        if any(event.event in _ENDS_ACCESS for event in told):
            self._dismiss()
        everything = b"".join(event.text for event in told)
        for listener in self._listening:
            if part.start.misses(listener.after):
                own = _unseen(told, listener.view, listener.after)
            else:
                own = everything if listener.view is _ALL else _of(told, listener.view)
            if own:
                listener.put(own)

    def _send_to_all(self, text: bytes) -> None:
        for listener in self._listening:
            if not self._last.misses(listener.after):
                listener.put(text)

    def _health_event(self, upto: Bookmark) -> bytes:
        health = orjson.dumps(self._health())
        return b"id: %b\nevent: health\ndata: %b\n\n" % (str(upto).encode(), health)

    def listen(self, who: Listening) -> AsyncGenerator[bytes]:
        """Stream events: a caller's own, or all for who may read the log."""
        self._check(who.caller)
        return self._stream(who)

    @contextmanager
    def place(self, caller: Caller) -> Generator[None]:
        """Let somebody have one more stream open, of another kind."""
        self._check(caller)
        with self._counted(caller.id):
            yield

    def _check(self, caller: Caller) -> None:
        full = self._open.total() >= self._most and caller.role is not Role.ADMIN
        if full or self._open[caller.id] >= _MOST_OF_ONE:
            raise _too_many(caller.id, self._open[caller.id])

    async def _stream(self, who: Listening) -> AsyncGenerator[bytes]:
        with self._counted(who.caller.id):
            seen, newest = await read_so_far(self._database, who.after)
            yield b"retry: 1000\n" + self._health_event(seen)
            # It joins in the same turn in which it has caught up: nothing is passed on meanwhile.
            while seen.misses(wanted := newest | self._last):
                part = await self._read(seen, who.view, self._looks_back)
                seen = part.end if seen.misses(part.end) else seen | wanted
                yield _of(part.told, _ALL) + b"id: %b\n\n" % str(seen).encode()
                if seen.misses(newest) and not self._may_go_on(who):
                    return
            with self._joined(who, seen) as listener:
                while not listener.ended:
                    text = await listener.take()
                    if text:
                        yield text

    def _may_go_on(self, who: Listening) -> bool:
        """Whether it may look back further now; if not, it can go on later from where it is."""
        return not self._stopped and who.still() and _paid(who)

    @contextmanager
    def _counted(self, caller: str) -> Generator[None]:
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            self._open += Counter()  # whoever has none open is forgotten

    @contextmanager
    def _joined(self, who: Listening, after: Bookmark) -> Generator[_Listener]:
        if not self._listening:
            self._last = after
        serving = asyncio.current_task()
        listener = _Listener(who.view, after, who.still, serving, ended=self._stopped)
        self._listening.add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listening.discard(listener)


def _paid(who: Listening) -> bool:
    try:
        who.pay()
    except GuardTripped:
        return False
    return True


def _of(told: Iterable[_Told], view: View) -> bytes:
    """Join what a listener may see."""
    return b"".join(event.text for event in told if view.shows(event))


def _unseen(told: Iterable[_Told], view: View, after: Bookmark) -> bytes:
    """Join what a listener may see and has not seen yet."""
    return b"".join(
        event.to_one(after)
        for event in told
        if view.shows(event) and not after.has(event.node, event.number)
    )


async def _read(reader: Reader, after: Bookmark, view: View) -> _Part:
    found = await recent(reader, after, _AT_ONCE, caller=view.caller, kinds=view.kinds)
    return _Part(tuple(_each(found.records, after)), after, found.end)


def _each(records: Iterable[Mapping[str, Any]], after: Bookmark) -> Generator[_Told]:
    for record in records:
        node, number, event = record["node"], record["audit_id"], record["event_type"]
        after = after.moved(node, number)
        data = orjson.dumps(record, default=str).decode()
        text = f"id: {after}\nevent: {_KINDS.get(event, 'node')}\ndata: {data}\n\n"
        caller = str(record.get("caller", ""))
        yield _Told(node, number, caller, event, after, text.encode())


def _too_many(caller: str, streams: int) -> GuardTripped:
    return GuardTripped(
        f"{caller} listens {streams} times; no more may listen now.",
        rule="too_many_streams",
        way_out="end a stream first: one shows everything that the key may see",
    )
