"""What has entered a run: the union of the labels of everything it has seen (C9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openfang.core.labels import Labels
from openfang.storage.state import RunStore, grow_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Call


@dataclass(frozen=True, slots=True)
class RunLabels:
    """Reads and grows what runs hold. Not remembered here: another process may carry a run on."""

    store: RunStore

    def held(self, call: Call) -> Labels:
        """Return what the call's run has seen so far."""
        run = call.run_id
        return Labels.NONE if run is None else self.store.labels(run)

    def absorb(
        self, call: Call, held: Labels, labels: Labels
    ) -> tuple[tuple[str, Sequence[Any]], ...]:
        """Let a call and its result enter the run; returns what must be stored with the ending."""
        run = call.run_id
        entering = call.labels | labels
        if run is None or entering | held == held:
            return ()
        return (grow_run(run, entering),)
