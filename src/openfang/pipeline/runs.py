"""What has entered a run: the union of the labels of everything it has seen (C9.1)."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.storage.state import DAY_NS, RunStore, grow_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Call


@dataclass(frozen=True, slots=True)
class RunLabels:
    """Reads and grows what runs hold. Not remembered here: another process may carry a run on.

    That one is gone on with is noted once a day, if it holds anything.
    """

    store: RunStore
    now: Callable[[], int]
    _aged: set[str] = field(init=False, default_factory=set[str])

    async def held(self, call: Call) -> Labels:
        """Return what the call's run has seen so far."""
        run = call.run_id
        if run is None:
            return Labels.NONE
        labels, noted = await self.store.kept(run)
        if labels and noted <= self.now() - DAY_NS:
            self._aged.add(run)
        return labels

    def absorb(
        self, call: Call, held: Labels, labels: Labels
    ) -> tuple[tuple[str, Sequence[Any]], ...]:
        """Let a call and its result enter the run; returns what must be stored with the ending."""
        run = call.run_id
        entering = call.labels | labels
        if call.apart and entering.untrusted:
            return ()
        if run is None or (entering | held == held and run not in self._aged):
            return ()
        self._aged.discard(run)
        return (grow_run(run, entering, self.now()),)
