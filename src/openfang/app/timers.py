"""The one loop of a node for what is to be done later: retries, notifications, expiries.

What is to be done is a row, so a restart loses nothing; of several processes on one home, one runs
it. It is run at least once: a process that dies in the middle leaves it to the next, at once where
its death is known.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from openfang.core.errors import Conflict, OpenFangError
from openfang.core.values import dataclass
from openfang.storage import timers
from openfang.storage.timers import Besides
from openfang.storage.units import TIMERS, Unit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

    from anyio.abc import TaskGroup

    from openfang.core.ports import Clock
    from openfang.storage.ports import Storage, Writes
    from openfang.storage.timers import Timer, TimerStore

Handler: TypeAlias = "Callable[[Timer], Awaitable[Again | None]]"
"""Does what a timer is for. Returns when it is to be done again; None: it is done."""
AT_ONCE: Final = 16
"""So many of one kind run side by side: no kind waits for another."""
OF_ONE_PARTY: Final = 4
AT_ONE_PLACE: Final = 2
_SECOND: Final = 1_000_000_000
_TAKEN: Final = 60 * _SECOND
_LONGEST: Final = 30.0
# Another process may have put something in between, and the machine may have slept.
_LOOK: Final = 30.0
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 600.0
_log = logging.getLogger("openfang.timers")
_CHANCE: Final = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


def wait_before(tries: int, chance: random.Random) -> float:
    """Seconds until the next try: doubling from 1 s to 10 min, of which chance takes up to half."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(tries, 20))
    return longest * chance.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Again:
    """It is to be done again in so many seconds; `tries` have failed by then."""

    wait: float
    tries: int = 0


@dataclass(slots=True, kw_only=True)
class Timers:
    """Runs what is due, side by side; one that fails or hangs is tried again.

    What has to wait since its party or its place has enough holds up nobody else.
    `seconds` is how long one may take before it counts as failed, `process` who takes them.
    """

    store: TimerStore
    writer: Writes
    clock: Clock
    chance: random.Random = _CHANCE
    seconds: float = _LONGEST
    process: Callable[[], str] = str
    resting: bool = False
    """Whether what is due is left to other nodes."""
    _handlers: dict[str, Handler] = field(init=False, default_factory=dict[str, Handler])
    _running: dict[str, Timer] = field(init=False, default_factory=dict["str", "Timer"])
    _woken: anyio.Event = field(init=False, default_factory=anyio.Event)

    def register(self, kind: str, handler: Handler) -> None:
        """Say what is to be done with timers of a kind; those of no known kind wait."""
        self._handlers[kind] = handler
        self.wake()

    async def plan(self, timer: Timer) -> None:
        """Have something done, in the place of what was planned under this id."""
        await self.writer.write(Unit(statements=(timers.replace(timer),), notices=(TIMERS,)))
        self.wake()

    def listen(self, storage: Storage) -> None:
        """Look at once when another node has planned something, where there are any."""
        storage.on(TIMERS.topic, lambda _: self.wake())

    def wake(self) -> None:
        """Look again now: something else may be due first."""
        self._woken.set()

    async def run(self) -> None:
        """Run what is due until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                self._woken = anyio.Event()
                with anyio.move_on_after(await self._begin(group)):
                    await self._woken.wait()

    async def _begin(self, group: TaskGroup) -> float:
        """Begin what is due now; return how long there is nothing else to do."""
        try:
            return await self._begin_due(group)
        except OpenFangError as error:
            _log.warning("What is due waits: %s", error.message)
            return _FIRST_WAIT

    async def _begin_due(self, group: TaskGroup) -> float:
        if self.resting:
            return _LOOK
        return min([await self._begin_of(kind, group) for kind in [*self._handlers]], default=_LOOK)

    async def _begin_of(self, kind: str, group: TaskGroup) -> float:
        now, lost = self.clock.time_ns(), set[str]()
        while free := AT_ONCE - sum(timer.kind == kind for timer in self._running.values()):
            first = await self.store.soonest(kind, free + 1, self._besides(lost))
            due = [timer for timer in first if timer.due <= now][:free]
            if not due:
                return _pause(first, now)
            for timer in due:
                if not self._has_to_wait(timer) and not await self._begun(timer, now, group):
                    lost.add(timer.id)
        return _LOOK

    def _besides(self, lost: Collection[str] = ()) -> Besides:
        """What is not to be begun now: what runs, what others took, and what has to wait."""
        running = self._running.values()
        return Besides(
            ids=(*self._running, *lost),
            parties=_enough((timer.party for timer in running), OF_ONE_PARTY),
            places=_enough((timer.place for timer in running), AT_ONE_PLACE),
        )

    def _has_to_wait(self, timer: Timer) -> bool:
        besides = self._besides()
        return timer.party in besides.parties or timer.place in besides.places

    async def _begun(self, timer: Timer, now: int, group: TaskGroup) -> bool:
        taken = await self._take(timer, now)
        if taken is None:
            return False
        self._running[timer.id] = taken
        group.start_soon(self._run, taken)
        return True

    async def _take(self, timer: Timer, now: int) -> Timer | None:
        until = now + _TAKEN
        try:
            await self.writer.write(Unit(statements=timers.take(timer, until, self.process())))
        except Conflict:
            return None
        return replace(timer, due=until)

    async def _run(self, timer: Timer) -> None:
        try:
            await self._settle(timer, await self._done(timer))
        except OpenFangError as error:
            # It stays taken, and is run again when that is over.
            _log.warning("%s of %s is not settled: %s", timer.kind, timer.subject, error.message)
        finally:
            del self._running[timer.id]
            self.wake()

    async def _done(self, timer: Timer) -> Again | None:
        """Do it; return when it is to be done again, if it is."""
        try:
            with anyio.fail_after(self.seconds):
                return await self._handlers[timer.kind](timer)
        except Exception:  # noqa: BLE001 - whatever it is, it is tried again
            wait = wait_before(timer.tries, self.chance)
            what = (timer.kind, timer.subject, wait)
            _log.exception("%s of %s failed; it is tried again in %.0f s", *what)
            return Again(wait, timer.tries + 1)

    async def _settle(self, timer: Timer, again: Again | None) -> None:
        if again is None:
            change = timers.done(timer)
        else:
            due = self.clock.time_ns() + int(again.wait * _SECOND)
            change = timers.again(timer, due, again.tries)
        await self.writer.write(Unit(statements=(change,)))


def _enough(names: Iterable[str], most: int) -> Collection[str]:
    return [name for name, count in Counter(names).items() if name and count >= most]


def _pause(later: Sequence[Timer], now: int) -> float:
    return min(_LOOK, (later[0].due - now) / _SECOND) if later else _LOOK
