"""All pins, and what is held back by them: tools, and whatever else others say of themselves.

It belongs to the event loop; `foresee` alone may run beside it.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from openfang.registry.pins import FirstSeen, Held, check
from openfang.safety.definitions import NOBODY, alike, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from openfang.core.ports import Clock
    from openfang.registry.pins import Pin, Pinned, Said
    from openfang.safety.definitions import Finding, Neighbours

    Told = Callable[[Sequence[FirstSeen | Held]], None]
_MOST_SCANS: Final = 50_000


class Scanning(Enum):
    """What becomes of a suspicious definition that was never seen before."""

    HOLD = "hold"
    WARN = "warn"
    OFF = "off"


class PinStore(Protocol):
    """Where pins are kept."""

    def load(self) -> Mapping[str, Pin]:
        """Return all pins by id."""
        ...

    def save(self, pins: Sequence[Pin], before: Mapping[str, Pin]) -> None:
        """Keep these, over those `before` of the same ids, as long as nobody else changed them."""
        ...


class Board:
    """Judges definitions by their pins. `told` hears of what is held or was found suspicious."""

    def __init__(self, store: PinStore, clock: Clock, told: Told | None = None) -> None:
        self._store = store
        self._clock = clock
        self._told = told
        self._pins = dict(store.load())
        self._scans: OrderedDict[str, tuple[Finding, ...]] = OrderedDict()

    def remembered(self, prefix: str) -> list[str]:
        """Give the definitions, as JSON, of all accepted ones whose ids begin so, here or not."""
        pins = self._pins.items()
        return [pin.definition for id_, pin in pins if id_.startswith(prefix) and pin.accepted]

    def knows(self, id_: str) -> bool:
        """Whether it was ever seen."""
        return id_ in self._pins

    def count(self, prefix: str) -> int:
        """Say how many ids that begin so are remembered."""
        return sum(id_.startswith(prefix) for id_ in self._pins)

    def judged(
        self,
        said: Iterable[Said],
        scanning: Scanning = Scanning.HOLD,
        neighbours: Neighbours = NOBODY,
    ) -> dict[str, Pinned]:
        """Compare each with its pin; nothing is remembered yet."""
        now, pins, hold = self._clock.time_ns(), self._pins, scanning is Scanning.HOLD
        own = frozenset(map(str.lower, neighbours.own))

        def look(one: Said) -> tuple[Finding, ...]:
            if scanning is Scanning.OFF:
                return ()
            return (*self._scanned(one, own), *alike(one.value, neighbours))

        return {one.id: check(pins.get(one.id), one, now=now, look=look, hold=hold) for one in said}

    def foresee(self, said: Iterable[Said], own: Collection[str] = ()) -> None:
        """Look in advance at what was never seen so: the loop need not wait for that."""
        names = frozenset(map(str.lower, own))
        for one in said:
            pin = self._pins.get(one.id)
            if pin is None or pin.digest != one.digest:
                self._scanned(one, names)

    def _scanned(self, said: Said, own: Collection[str]) -> tuple[Finding, ...]:
        known = self._scans.get(said.digest)
        if known is None:
            known = self._scans[said.digest] = scan(said.value, own)
            while len(self._scans) > _MOST_SCANS:
                self._scans.popitem(last=False)
        return known

    def keep(self, pins: Sequence[Pin]) -> None:
        """Remember these: stored first, so that nothing is lost."""
        if pins:
            self._store.save(pins, {pin.id: old for pin in pins if (old := self._pins.get(pin.id))})
            self._pins.update({pin.id: pin for pin in pins})

    @property
    def pins(self) -> Mapping[str, Pin]:
        """All of them, by their ids."""
        return self._pins

    def learn(self, pins: Iterable[Pin]) -> None:
        """Take over what another node keeps of these."""
        self._pins.update({pin.id: pin for pin in pins})

    def tell(self, verdicts: Iterable[Pinned], known: Mapping[str, Held]) -> None:
        """Say what is held that was not, or not as this, and what was found in what is offered."""
        news = [one for one in verdicts if _is_news(one, known)]
        if news and self._told is not None:
            self._told([one for one in news if isinstance(one, FirstSeen | Held)])


def _is_news(verdict: Pinned, known: Mapping[str, Held]) -> bool:
    match verdict:
        case Held():
            before = known.get(verdict.pin.id)
            return before is None or before.digest != verdict.digest
        case FirstSeen():
            return bool(verdict.pin.findings)
        case _:
            return False


def new_pins(verdicts: Iterable[Pinned]) -> list[Pin]:
    """Give what has to be remembered of these."""
    return [
        one.pin
        for one in verdicts
        if isinstance(one, FirstSeen) or (isinstance(one, Held) and one.fresh)
    ]
