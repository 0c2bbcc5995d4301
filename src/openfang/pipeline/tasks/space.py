"""How many tasks are kept, and how large: the oldest that have ended make room for new ones."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Final

from anyio import Lock

from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.storage.tasks import evict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.tasks import Statement, TaskStore

_SHARE: Final = 50
"""A fiftieth goes at once, so that the cost is shared; of fewer than a hundred, one by one."""
_AT_ONCE: Final = 50
_FOR_OTHERS: Final = 10
"""A tenth is left for others, however much one caller has under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBounds:
    """How many tasks are kept, and after how long one to which nothing happens is given up.

    `most_characters` is how long all of them may be together.
    """

    most: int = 1000
    most_characters: int = 1 << 30
    stuck_seconds: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """The place of one more; what has to go for it is deleted in the same unit."""

    caller: str
    size: int
    evicted: int = 0
    freed: int = 0

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Delete what has to go."""
        return evict(self.evicted) if self.evicted else ()


@dataclass(slots=True)
class _Counts:
    """What there is: in the store, and in units that are being written."""

    kept: int
    final: int
    size: int
    under_way: Counter[str]
    sizes: Counter[str]
    takes: int = 0

    def check_share(self, caller: str, size: int, bounds: TaskBounds) -> None:
        most, longest = _share(bounds.most), _share(bounds.most_characters)
        if self.under_way[caller] >= most or self.sizes[caller] + size > longest:
            raise _full(
                f"{caller} has {self.under_way[caller]} tasks under way; of all that fit in here, "
                f"{most} tasks and {longest} characters are for one caller."
            )

    def take(self, place: Place) -> None:
        self.kept += 1 - place.evicted
        self.final -= place.evicted
        self.size += place.size - place.freed
        self.under_way[place.caller] += 1
        self.sizes[place.caller] += place.size
        self.takes += 1


@dataclass(slots=True)
class Space:
    """Counts tasks, so that a full store costs no more than an empty one.

    What others write and how tasks grow is seen when it is counted anew: now and then, and before
    anything is refused.
    """

    store: TaskStore
    _counts: _Counts | None = field(init=False, default=None)
    _pending: dict[Place, None] = field(init=False, default_factory=dict[Place, None])
    _turn: Lock = field(init=False, default_factory=lambda: Lock(fast_acquire=True))

    async def take(self, caller: str, size: int, bounds: TaskBounds) -> Place:
        """Take the place of one more; it is told here when it is `written`, or is not."""
        async with self._turn:  # nobody takes a place while another one counts
            if self._counts is not None and self._counts.takes <= bounds.most // _SHARE:
                with suppress(Rejected):
                    return await self._taken(self._counts, caller, size, bounds)
            self._counts = await self._counted()
            return await self._taken(self._counts, caller, size, bounds)

    async def _taken(self, counts: _Counts, caller: str, size: int, bounds: TaskBounds) -> Place:
        over, heavy = counts.kept + 1 - bounds.most, counts.size + size - bounds.most_characters
        if over > counts.final:
            raise _full(f"{bounds.most} tasks are kept at most, and none of them has ended.")
        counts.check_share(caller, size, bounds)
        sizes = await self._to_go(over, heavy, bounds) if over > 0 or heavy > 0 else ()
        place = Place(caller=caller, size=size, evicted=len(sizes), freed=sum(sizes))
        counts.take(place)
        self._pending[place] = None
        return place

    async def _to_go(self, over: int, heavy: int, bounds: TaskBounds) -> Sequence[int]:
        """How large those are that make room; behind what goes in units that are being written."""
        before = sum(place.evicted for place in self._pending)
        oldest = (await self.store.oldest(before + _AT_ONCE))[before:]
        count = max(over, bounds.most // _SHARE) if over > 0 else 0
        while sum(oldest[:count]) < heavy and count < len(oldest):
            count += 1
        if sum(oldest[:count]) < heavy and count < _AT_ONCE:
            raise _full(f"What is under way is too long for {bounds.most_characters} characters.")
        return oldest[:count]

    async def _counted(self) -> _Counts:
        pending = (*self._pending,)  # one that is written meanwhile counts twice, not never
        (kept, final), rows = await self.store.counts(), await self.store.under_way()
        counts = _Counts(
            kept=kept,
            final=final,
            size=await self.store.size(),
            under_way=Counter({caller: count for caller, count, _ in rows}),
            sizes=Counter({caller: size for caller, _, size in rows}),
        )
        for place in pending:
            counts.take(place)
        counts.takes = 0
        return counts

    def written(self, place: Place) -> None:
        """It is in the store."""
        del self._pending[place]

    def forget(self, place: Place) -> None:
        """It is not, and all is counted anew."""
        del self._pending[place]
        self._counts = None

    def ended(self, caller: str) -> None:
        """One of this caller's has ended."""
        if self._counts is not None:
            self._counts.final += 1
            self._counts.under_way[caller] -= 1


def _share(bound: int) -> int:
    return bound - bound // _FOR_OTHERS


def _full(why: str) -> Rejected:
    return Rejected(
        why,
        status=503,
        rule="tasks_full",
        way_out="cancel some with openfang a2a cancel ID, or raise a2a.max_tasks",
    )
