"""What happens, live: the audit log as server-sent events, read only while somebody listens.

An event carries the number of its record. Who reconnects with the last number it saw misses
nothing; who reads too slowly is cut off, and can do just that. A number alone, without an event,
says that there was nothing for this listener up to there.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from openfang.core.calls import Role
from openfang.core.errors import GuardTripped, OpenFangError
from openfang.core.events import (
    CONFIG_RELOADED,
    KEY_REVOKED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
    AuditEvent,
)
from openfang.storage.log import last_number, recent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping

    from openfang.core.calls import Caller
    from openfang.storage.database import Database
    from openfang.storage.log import LogRow

_log = logging.getLogger("openfang.events")
_TICK_SECONDS = 0.1
_TICKS_TO_LOOK_AGAIN = 10
_TICKS_TO_HEALTH = 100
_AT_ONCE = 500
_MOST_WAITING = 4_000_000
_ENDS_ACCESS = frozenset({KEY_REVOKED, CONFIG_RELOADED})
_KINDS = {
    TOOL_INVOCATION_START: "call",
    TOOL_INVOCATION_END: "call",
    POLICY_DECISION: "decision",
    POLICY_VIOLATION: "decision",
}
_OF_PAYLOAD = ("outcome", "decision", "rule", "reason", "duration_us", "labels", "state", "name")
_OF_CONTEXT = ("caller", "tool", "edge", "trace", "depth")


@dataclass(frozen=True, slots=True)
class _Told:
    """One event, ready to be sent."""

    seq: int
    caller: str
    text: bytes


@dataclass(slots=True, eq=False)
class _Listener:
    """One open stream. `only` is the caller whose events it may see, if it may not see all."""

    only: str | None
    after: int
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

    `after` is the last number that it saw before.
    """

    caller: Caller
    after: int | None
    still: Callable[[], bool]
    pay: Callable[[], object]

    @property
    def only(self) -> str | None:
        """Whose events it may see; none means everybody's."""
        return None if self.caller.role in {Role.AUDITOR, Role.ADMIN} else self.caller.id


class Feed:
    """Reads the log for everybody who listens, once for all of them."""

    def __init__(self, database: Database, health: Callable[[], Mapping[str, Any]]) -> None:
        self._database = database
        self._health = health
        self._listening: set[_Listener] = set()
        self._somebody = anyio.Event()
        self._last = 0
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
        newest = last_number(self._database)
        while self._pass_on() and self._last < newest:  # noqa: ASYNC110 - others get their turn
            await asyncio.sleep(0)
        if tick % _TICKS_TO_HEALTH == 0:
            self._send_to_all(self._health_event(self._last))

    def _dismiss(self) -> None:
        """End the streams of those whose key is no longer in force."""
        for listener in self._listening:
            if not listener.still():
                listener.end()

    def _pass_on(self) -> bool:
        rows = recent(self._database, self._last, _AT_ONCE)
        if not rows:
            return False
        if any(row[3] in _ENDS_ACCESS for row in rows):
            self._dismiss()
        told = [_told(row) for row in rows]
        self._last = told[-1].seq
        everything = b"".join(event.text for event in told)
        for listener in self._listening:
            if listener.only is None and listener.after < told[0].seq:
                listener.put(everything)
            elif own := _of(told, listener.only, listener.after):
                listener.put(own)
        return True

    def _send_to_all(self, text: bytes) -> None:
        for listener in self._listening:
            listener.put(text)

    def _health_event(self, number: int) -> bytes:
        return b"id: %d\nevent: health\ndata: %b\n\n" % (number, orjson.dumps(self._health()))

    async def listen(self, who: Listening) -> AsyncGenerator[bytes]:
        """Stream events: a caller's own, or all for who may read the log."""
        newest = last_number(self._database)
        seen = newest if who.after is None else min(who.after, newest)
        yield b"retry: 1000\n" + self._health_event(seen)
        while rows := recent(self._database, seen, _AT_ONCE):
            seen = rows[-1][1]
            yield _of(map(_told, rows), who.only, 0) + b"id: %d\n\n" % seen
            if seen < newest and not _paid(who):
                return
            await asyncio.sleep(0)
        with self._joined(who, seen) as listener:
            while not listener.ended:
                text = await listener.take()
                if text:
                    yield text

    @contextmanager
    def _joined(self, who: Listening, after: int) -> Generator[_Listener]:
        if not self._listening:
            self._last = after
        serving = asyncio.current_task()
        listener = _Listener(who.only, after, who.still, serving, ended=self._stopped)
        self._listening.add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listening.discard(listener)


def _paid(who: Listening) -> bool:
    """Whether it may look back further now; if not, it can go on later from where it is."""
    try:
        who.pay()
    except GuardTripped:
        return False
    return True


def _of(told: Iterable[_Told], only: str | None, after: int) -> bytes:
    """Join what a listener may see and has not seen yet."""
    seen = (event for event in told if only is None or event.caller == only)
    return b"".join(event.text for event in seen if event.seq > after)


def _told(row: LogRow) -> _Told:
    event = AuditEvent.of(row)
    context, payload = event.context, event.payload
    body: dict[str, Any] = {
        "audit_id": event.audit_id,
        "event_type": event.event_type,
        "level": event.level,
        "created_at": event.created_at,
        "call_id": event.call_id,
        "task_id": event.task_id,
    }
    body |= {name: context[name] for name in _OF_CONTEXT if name in context}
    body |= {name: payload[name] for name in _OF_PAYLOAD if name in payload}
    kind = _KINDS.get(event.event_type, "node")
    data = orjson.dumps(body, default=str).decode()
    text = f"id: {event.audit_id}\nevent: {kind}\ndata: {data}\n\n"
    return _Told(event.audit_id, str(context.get("caller", "")), text.encode())
