"""To whom an answer is owed that says where it comes from: who told of a chain with a message.

In memory, because the number that a signature answers is good for a minute anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass
from openfang.protocols.hops.labels import LABELS, hints_of
from openfang.protocols.hops.words import ANSWER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.labels import Labels
    from openfang.core.tasks import Task
    from openfang.core.trace import Chain, Claim

_MOST: Final = 10_000


@dataclass(slots=True)
class Owed:
    """By task, what its messages said of their chain."""

    vouch: Callable[[Sequence[Claim], Labels], str]
    _claims: OrderedDict[str, tuple[Claim, ...]] = field(
        default_factory=OrderedDict[str, "tuple[Claim, ...]"]
    )

    def note(self, task: str, chain: Chain) -> None:
        """Keep in mind what a message to a task said; the oldest is forgotten first."""
        if not chain.claims:
            return
        self._claims[task] = (*self._claims.pop(task, ()), *chain.claims)
        if len(self._claims) > _MOST:
            self._claims.popitem(last=False)

    def told(self, task: Task) -> Task:
        """Put beside an answer what is said of it."""
        claims = self._claims.get(task.id)
        if claims is None or not task.state.resting:
            return task
        beside: dict[str, Any] = {LABELS: hints_of(task.labels)}
        if token := self.vouch(claims, task.labels):
            beside[ANSWER] = token
        return replace(task, metadata={**task.metadata, **beside})
