"""What a fault is: something that is done to the node, felt by callers, and undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.ledger import Seen


class Fault(ABC):
    """One fault. `name` says what happens; `touches` is the server that it happens to, if one.

    `kinds` are the answers that it explains, for callers of that server alone if there is one.
    """

    kinds: ClassVar[frozenset[str]] = frozenset()
    name: str
    touches: str = ""

    @abstractmethod
    def begin(self) -> None:
        """Do it."""

    @abstractmethod
    def end(self) -> None:
        """Undo it, and wait until everything works again."""

    def felt(self, seen: Sequence[Seen]) -> bool:
        """Say whether it has lasted long enough, from what callers were told since it began."""
        return any(self.explains(one) for one in seen)

    def explains(self, seen: Seen) -> bool:
        """Say whether a call may have gone wrong because of it."""
        return seen.answer.kind in self.kinds and self.touches in {"", seen.server}
