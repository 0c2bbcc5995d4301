"""Slots: so many calls at once per key, the rest wait in the order in which they came."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(slots=True)
class _Lane:
    """One key: how many are in, and who waits for which limit."""

    used: int = 0
    waiting: deque[tuple[anyio.Event, int]] = field(default_factory=deque[tuple[anyio.Event, int]])


class Slots:
    """Fair limits by key. A key that nobody holds takes no memory."""

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}

    @property
    def size(self) -> int:
        """How many keys are held or waited for."""
        return len(self._lanes)

    def used(self, key: str) -> int:
        """Count the holders of a key's slots."""
        lane = self._lanes.get(key)
        return lane.used if lane else 0

    def waiting(self, key: str) -> int:
        """Count those who wait for a key's slots."""
        lane = self._lanes.get(key)
        return len(lane.waiting) if lane else 0

    def hold(self, key: str, limit: int) -> Hold:
        """Make the `async with` that holds one of `limit` slots of `key`."""
        return Hold(self, key, limit)

    async def acquire(self, key: str, limit: int) -> None:
        """Take a slot, waiting behind everyone who came before. Free, it does not even yield."""
        if limit < 1:
            raise ValueError(f"{key} needs at least one slot, not {limit}")
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        if lane.used < limit and not lane.waiting:
            lane.used += 1
            return
        await self._wait(key, lane, limit)

    def release(self, key: str) -> None:
        """Give a slot back; it goes straight to whoever has waited longest."""
        lane = self._lanes[key]
        lane.used -= 1
        self._hand_over(key, lane)

    def _hand_over(self, key: str, lane: _Lane) -> None:
        while lane.waiting and lane.used < lane.waiting[0][1]:
            event, _ = lane.waiting.popleft()
            lane.used += 1
            event.set()
        if not lane.used and not lane.waiting:
            del self._lanes[key]

    async def _wait(self, key: str, lane: _Lane, limit: int) -> None:
        event = anyio.Event()
        lane.waiting.append((event, limit))
        held = False
        try:
            await event.wait()
            held = True
        finally:
            if not held:
                self._give_up(key, lane, (event, limit))

    def _give_up(self, key: str, lane: _Lane, place: tuple[anyio.Event, int]) -> None:
        """Leave the queue, or pass on a slot that was handed over in the same moment."""
        if place[0].is_set():
            self.release(key)
        else:
            lane.waiting.remove(place)
            self._hand_over(key, lane)


class Hold:
    """A slot for the length of an `async with`."""

    __slots__ = ("_key", "_limit", "_slots")

    def __init__(self, slots: Slots, key: str, limit: int) -> None:
        self._slots = slots
        self._key = key
        self._limit = limit

    async def __aenter__(self) -> None:
        await self._slots.acquire(self._key, self._limit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._slots.release(self._key)
