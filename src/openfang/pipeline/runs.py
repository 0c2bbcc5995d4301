"""What has entered a run: the union of the labels of everything it has seen (C9.1)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openfang.core.labels import Labels
from openfang.storage.state import RunStore, grow_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Call

_REMEMBERED = 10_000


@dataclass(slots=True)
class RunLabels:
    """Remembers recent runs; a label that is new to a run is also stored."""

    store: RunStore
    _known: OrderedDict[str, Labels] = field(init=False, default_factory=OrderedDict[str, Labels])

    def entered(self, call: Call) -> Labels:
        """Return what the call carries: its own labels and those of its run."""
        run = call.run_id
        return call.labels if run is None else call.labels | self._of(run)

    def _of(self, run: str) -> Labels:
        known = self._known.get(run)
        if known is None:
            known = self._known[run] = self.store.labels(run)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def absorb(self, call: Call, labels: Labels) -> tuple[tuple[str, Sequence[Any]], ...]:
        """Let a result's labels enter the run; returns what must be stored with the ending."""
        run = call.run_id
        if run is None:
            return ()
        known = self._of(run)
        if labels | known == known:
            return ()
        self._known[run] = known | labels
        return (grow_run(run, labels),)
