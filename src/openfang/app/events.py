"""What happens, live: the audit log as server-sent events, read only while somebody listens.

An event carries the number of its record. Who reconnects with the last number it saw misses
nothing; who reads too slowly is cut off, and can do just that.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError
from openfang.core.events import (
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

_log = logging.getLogger("openfang.events")
_TICK_SECONDS = 0.1
_HEALTH_SECONDS = 10.0
_AT_ONCE = 500
_MOST_WAITING = 1_000_000
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
    serving: asyncio.Task[Any] | None
    waiting: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def put(self, text: bytes) -> None:
        """Leave something to be sent; who does not take it in time is cut off."""
        self.waiting.append(text)
        self.size += len(text)
        self.wake.set()
        if self.size > _MOST_WAITING and self.serving is not None:
            self.serving.cancel()

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
        since_health = 0.0
        while True:
            if not self._listening:
                self._somebody = anyio.Event()
                await self._somebody.wait()
            await anyio.sleep(_TICK_SECONDS)
            try:
                self._pass_on()
            except OpenFangError as error:
                _log.warning("Events wait: %s", error.message)
            since_health += _TICK_SECONDS
            if since_health >= _HEALTH_SECONDS:
                since_health = 0.0
                self._send_to_all(self._health_event())

    def _pass_on(self) -> None:
        told = [_told(row) for row in recent(self._database, self._last, _AT_ONCE)]
        if not told:
            return
        self._last = told[-1].seq
        everything = b"".join(event.text for event in told)
        for listener in self._listening:
            if listener.only is None and listener.after < told[0].seq:
                listener.put(everything)
            elif own := _of(told, listener.only, listener.after):
                listener.put(own)

    def _send_to_all(self, text: bytes) -> None:
        for listener in self._listening:
            listener.put(text)

    def _health_event(self) -> bytes:
        return b"event: health\ndata: " + orjson.dumps(self._health()) + b"\n\n"

    async def listen(self, caller: Caller, after: int | None) -> AsyncGenerator[bytes]:
        """Stream events: a caller's own, or all for who may read the log."""
        only = None if caller.role in {Role.AUDITOR, Role.ADMIN} else caller.id
        yield b"retry: 1000\n\n" + self._health_event()
        seen = last_number(self._database) if after is None else after
        while rows := recent(self._database, seen, _AT_ONCE):
            told = [_told(row) for row in rows]
            seen = told[-1].seq
            if text := _of(told, only, 0):
                yield text
            await asyncio.sleep(0)
        with self._joined(only, seen) as listener:
            while not listener.ended:
                text = await listener.take()
                if text:
                    yield text

    @contextmanager
    def _joined(self, only: str | None, after: int) -> Generator[_Listener]:
        if not self._listening:
            self._last = after
        listener = _Listener(only, after, asyncio.current_task(), ended=self._stopped)
        self._listening.add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listening.discard(listener)


def _of(told: Iterable[_Told], only: str | None, after: int) -> bytes:
    """Join what a listener may see and has not seen yet."""
    seen = (event for event in told if only is None or event.caller == only)
    return b"".join(event.text for event in seen if event.seq > after)


def _told(row: tuple[str, int, int, str, str, str, str, str, str, bytes]) -> _Told:
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
