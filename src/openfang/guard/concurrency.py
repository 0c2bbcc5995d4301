"""Slots: so many calls at once per key; the rest wait, everybody in turn.

Whoever waits with a hundred calls gets every other slot, not the next hundred: among the calls of
one caller the first is the first, among callers the turn goes round.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import anyio

from openfang.core.values import dataclass

if TYPE_CHECKING:
    _Place: TypeAlias = tuple[anyio.Event, int]


@dataclass(slots=True)
class _Lane:
    """One key: how many are in, and who waits for which limit, by caller and in turn."""

    used: int = 0
    waiting: dict[str, deque[_Place]] = field(default_factory=dict[str, "deque[_Place]"])


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
        return sum(map(len, lane.waiting.values())) if lane else 0

    async def acquire(self, key: str, limit: int, who: str = "") -> None:
        """Take a slot, waiting until it is one's turn. Free, it does not even yield."""
        if limit < 1:
            raise ValueError(f"{key} needs at least one slot, not {limit}")
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        if lane.used < limit and not lane.waiting:
            lane.used += 1
            return
        await self._wait(key, lane, limit, who)

    def release(self, key: str) -> None:
        """Give a slot back; it goes straight to whoever has waited longest."""
        lane = self._lanes[key]
        lane.used -= 1
        if lane.waiting:
            self._hand_over(lane)
        if not lane.used:
            del self._lanes[key]

    def _hand_over(self, lane: _Lane) -> None:
        while lane.waiting:
            who, places = next(iter(lane.waiting.items()))
            event, limit = places[0]
            if lane.used >= limit:
                return
            places.popleft()
            del lane.waiting[who]
            if places:
                lane.waiting[who] = places  # behind everybody else
            lane.used += 1
            event.set()

    async def _wait(self, key: str, lane: _Lane, limit: int, who: str) -> None:
        place = (anyio.Event(), limit)
        lane.waiting.setdefault(who, deque()).append(place)
        held = False
        try:
            await place[0].wait()
            held = True
        finally:
            if not held:
                self._give_up(key, lane, who, place)

    def _give_up(self, key: str, lane: _Lane, who: str, place: _Place) -> None:
        """Leave the queue, or pass on a slot that was handed over in the same moment."""
        if place[0].is_set():
            self.release(key)
            return
        places = lane.waiting[who]
        places.remove(place)
        if not places:
            del lane.waiting[who]
        self._hand_over(lane)
