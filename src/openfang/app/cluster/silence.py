"""Who has been silent for long, under our own eyes. No I/O.

A beat is known by what it changes, not by the time that it names: a clock that is set, on whichever
machine, makes nobody look dead. Whoever lost sight of the others begins to watch anew.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.storage.processes import Vanished

SILENT_SECONDS: Final = 9.0
"""With the time between two looks, at least ten seconds after its last beat."""
SAID_SO: Final = 0
"""The beat of one that left its work to others."""


@dataclass(slots=True)
class Silence:
    """Remembers since when each process shows the same beat."""

    _since: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def look(self, processes: Iterable[Vanished], now: float) -> None:
        """See who has beaten since the last look."""
        before, self._since = self._since, {}
        for one in processes:
            beat, since = before.get(one.id, (one.beat_at, now))
            self._since[one.id] = (one.beat_at, since if beat == one.beat_at else now)

    def lost(self) -> None:
        """Forget it all: nobody was seen for a while, and that was not their fault."""
        self._since.clear()

    def dead(self, one: Vanished, now: float) -> bool:
        """Whether it has given no sign for too long, or said that others shall go on."""
        if one.beat_at == SAID_SO:
            return True
        beat, since = self._since.get(one.id, (one.beat_at, now))
        return beat == one.beat_at and now - since >= SILENT_SECONDS

    def left(self, processes: Iterable[Vanished], now: float) -> list[Vanished]:
        """Name those that are dead and whom nobody living sees to."""
        found = {one.id: one for one in processes}
        living = {name for name, one in found.items() if not one.heir and not self.dead(one, now)}
        return [
            one
            for one in found.values()
            if one.id not in living and (not one.heir or one.heir not in living)
        ]
