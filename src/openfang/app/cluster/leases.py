"""What only one node has at a time: taken when it is free, renewed, and given up in time.

A lease lasts 10 s by the clock of the database, and is renewed every 2 s. A holder that could not
renew one for 6 s of its own clock ends what it stands for: that is over before anybody else can
have it. The clock counts the time in which the machine slept.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import anyio
from anyio import CancelScope

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from anyio.abc import TaskGroup

    from openfang.storage.postgres.leases import Lease

RENEWED: Final = 2.0
"""So many seconds are between two renewals."""
TRUSTED: Final = 6.0
"""So many seconds after it began to be renewed a lease is believed in."""
_PATIENCE: Final = 4.0
_BREATH: Final = 0.1
_FAREWELL: Final = 5.0
# Whoever has fewer goes first; but one that never comes is not waited for.
_LONGEST_QUEUE: Final = 3
_log = logging.getLogger("openfang.cluster")


def uptime() -> float:
    """Seconds since the machine started, asleep or not; all its processes agree on them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Held(NamedTuple):
    """A lease of ours, believed in until `ends`."""

    term: int
    ends: float


class Holder(NamedTuple):
    """Who has a lease now."""

    node: str
    term: int


class Table(Protocol):
    """Where leases are kept."""

    async def look(self) -> dict[str, Lease]: ...  # noqa: D102 - as in `storage`
    async def renew(self, terms: Mapping[str, int]) -> set[str]: ...  # noqa: D102 - as above
    async def take(self, name: str) -> int | None: ...  # noqa: D102 - as above
    async def give(self, terms: Mapping[str, int]) -> None: ...  # noqa: D102 - as above


class Fellows(Protocol):
    """The nodes that are alive, as far as leases care."""

    @property
    def me(self) -> str:
        """The name of this one."""
        ...

    @property
    def draining(self) -> bool:
        """Whether this one is to take nothing more."""
        ...

    def takers(self) -> Collection[str]:
        """Name those that could take a lease."""
        ...


class Lessee(Protocol):
    """Who runs what leases stand for."""

    def wanted(self) -> Collection[str]:
        """Name what could run here."""
        ...

    def moved(self, name: str) -> None:
        """Hear that somebody else has it now, or nobody, or we."""
        ...

    async def stop(self, name: str) -> None:
        """End it, and return when it is over."""
        ...

    def renewed(self, name: str, ends: float) -> None:
        """Hear until when it is believed to be ours."""
        ...


@dataclass(slots=True, kw_only=True)
class Leases:
    """The leases of one node."""

    table: Table
    fellows: Fellows
    lessee: Lessee
    now: Callable[[], float] = uptime
    _holds: dict[str, Held] = field(init=False, default_factory=dict[str, Held])
    _seen: dict[str, Lease] = field(init=False, default_factory=dict[str, "Lease"])
    _ending: set[str] = field(init=False, default_factory=set[str])
    _ended: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _free: dict[str, float] = field(init=False, default_factory=dict[str, float])
    _nudge: anyio.Event = field(init=False, default_factory=anyio.Event)
    _news: anyio.Event = field(init=False, default_factory=anyio.Event)
    _group: TaskGroup | None = field(init=False, default=None)

    def holder(self, name: str) -> Holder | None:
        """Say who has it, as far as is known."""
        if held := self.held(name):
            return Holder(self.fellows.me, held.term)
        lease = self._seen.get(name)
        if lease is None or not lease.held or lease.node == self.fellows.me:
            return None
        return Holder(lease.node, lease.term)

    def held(self, name: str) -> Held | None:
        """Our own lease, if it can still be believed in: this looks at the clock."""
        held = self._holds.get(name)
        return held if held is not None and self.now() < held.ends else None

    async def changed(self) -> None:
        """Wait until somebody may have got something else."""
        await self._news.wait()

    def nudge(self) -> None:
        """Look again, soon."""
        self._nudge.set()

    def drop(self) -> None:
        """Believe in none any more: nobody hears us."""
        for name in list(self._holds):
            self._lose(name)

    async def run(self) -> None:
        """Take, renew and give up until the node ends; then give up all."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(self._watch)
                while True:
                    await self._beat()
                    await anyio.sleep(_BREATH)
                    with anyio.move_on_after(RENEWED - _BREATH):
                        await self._nudge.wait()
                    self._nudge = anyio.Event()
        finally:
            with CancelScope(shield=True), anyio.move_on_after(_FAREWELL):
                await self._leave()

    async def _beat(self) -> None:
        if not (self._holds or self._ended or self.lessee.wanted()):
            return
        try:
            with anyio.fail_after(_PATIENCE):
                await self._renew()
                await self._give()
                await self._look()
                await self._take()
        except (OpenFangError, TimeoutError) as error:
            _log.warning("The leases of this node could not be renewed: %s", error or "no answer")

    async def _renew(self) -> None:
        """Renew all by one statement; what is not ours any more ends here."""
        unwanted = self._holds.keys() - set(self.lessee.wanted())
        for name in list(self._holds) if self.fellows.draining else unwanted:
            self._lose(name)
        if not self._holds:
            return
        began, terms = self.now(), {name: held.term for name, held in self._holds.items()}
        kept = await self.table.renew(terms)
        for name, term in terms.items():
            held = self._holds.get(name)
            if held is None or held.term != term:
                continue
            if name in kept:
                self._hold(name, Held(term, began + TRUSTED))
            else:
                self._lose(name)

    def _hold(self, name: str, held: Held) -> None:
        self._holds[name] = held
        self.lessee.renewed(name, held.ends)

    async def _give(self) -> None:
        if self._ended:
            given = dict(self._ended)
            await self.table.give(given)
            for name in given:
                del self._ended[name]

    async def _look(self) -> None:
        """See who has what; whoever reaches it by somebody else than before is told."""
        before = {name: self.holder(name) for name in self.lessee.wanted()}
        self._seen = await self.table.look()
        for name, former in before.items():
            if self.holder(name) != former:
                self._moved(name)

    async def _take(self) -> None:
        """Take what is free, unless others with fewer come first."""
        for name in sorted(self.lessee.wanted()):
            lease = self._seen.get(name)
            if lease is not None and lease.held:
                self._free.pop(name, None)
            elif self._is_our_turn(name):
                await self._take_one(name)

    def _is_our_turn(self, name: str) -> bool:
        if self.fellows.draining or name in self._ending or name in self._ended:
            return False
        since = self._free.setdefault(name, self.now())
        return self.now() - since >= RENEWED * self._before_us()

    async def _take_one(self, name: str) -> None:
        began = self.now()
        term = await self.table.take(name)
        if term is not None:
            self._hold(name, Held(term, began + TRUSTED))
            _log.info("This node has the lease of %s now (term %d)", name, term)
            self._moved(name)

    def _before_us(self) -> int:
        """How many could take it that have fewer than we."""
        counts = Counter(lease.node for lease in self._seen.values() if lease.held)
        others = set(self.fellows.takers()) - {self.fellows.me}
        ours = len(self._holds)
        return min(_LONGEST_QUEUE, sum(counts[node] < ours for node in others))

    async def _watch(self) -> None:
        """End in time what could not be renewed, whatever the database does meanwhile."""
        while True:
            ends = min((held.ends for held in self._holds.values()), default=None)
            if ends is None:
                await self._news.wait()
                continue
            await anyio.sleep(max(0.0, ends - self.now()))
            for name in [one for one in self._holds if self.held(one) is None]:
                self._lose(name)

    def _lose(self, name: str) -> None:
        """Believe in a lease no longer: what it stands for ends, and then somebody may have it."""
        held = self._holds.pop(name, None)
        if held is None or self._group is None:
            return
        _log.info("This node gives up the lease of %s (term %d)", name, held.term)
        self._ending.add(name)
        self._free.pop(name, None)
        self._group.start_soon(self._end, name, held.term)

    async def _end(self, name: str, term: int) -> None:
        try:
            await self.lessee.stop(name)
        finally:
            self._ending.discard(name)
        self._ended[name] = term
        self.nudge()

    def _moved(self, name: str) -> None:
        self._news.set()
        self._news = anyio.Event()
        self.lessee.moved(name)

    async def _leave(self) -> None:
        """Stop all that is ours, and give it up, so that nobody has to wait for it to run out."""
        left = {name: held.term for name, held in self._holds.items()} | self._ended
        self._holds.clear()
        for name in left:
            await self.lessee.stop(name)
        try:
            await self.table.give(left)
        except OpenFangError as error:
            _log.warning("The leases of this node run out by themselves: %s", error)
