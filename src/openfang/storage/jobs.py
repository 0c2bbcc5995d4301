"""A unit on its way into the database, and whoever waits for it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.values import dataclass
from openfang.storage.units import NOWHERE, Head, Written

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from openfang.storage.units import Fate, Line, Unit

    Digest: TypeAlias = Callable[[str, int, int, Line, bytes], bytes]


@dataclass(slots=True)
class Job:
    """A unit, whoever waits for it and, once it is through, its place or its own error.

    `fate` hears what became of it, even if nobody waits any more.
    """

    unit: Unit
    done: asyncio.Future[Written] | None = None
    fate: Fate | None = None
    written: Written = NOWHERE
    error: Exception | None = None
    weight: int = field(init=False)

    def __post_init__(self) -> None:
        self.weight = _weight(self.unit)

    def settle(self) -> None:
        """Tell whoever waits, if they still do."""
        if self.error is not None and self.fate is not None:
            self.fate.lost(self.unit)
        if self.done is None or self.done.done():
            return
        if self.error is None:
            self.done.set_result(self.written)
        else:
            self.done.set_exception(self.error)


def settle(jobs: list[Job]) -> None:
    """Tell all of them."""
    for job in jobs:
        job.settle()


def blame(jobs: list[Job], error: Exception) -> None:
    """Let all fail for the same reason, unless they have one of their own."""
    for job in jobs:
        job.error = job.error or error


def chained(
    jobs: Iterable[Job], head: Head, *, node: str, digest: Digest, at: int
) -> tuple[list[Any], Head]:
    """Number and chain the records of all of them: the values of the rows, and the head behind."""
    rows: list[Any] = []
    seq, last = head
    for job in jobs:
        first = seq + 1
        for line in job.unit.lines:
            seq += 1
            last = digest(node, seq, at, line, last)
            rows += (node, seq, at, *line, last)
        job.written = Written(range(first, seq + 1), last)
    return rows, Head(seq, last)


def _weight(unit: Unit) -> int:
    """How much text and content it stores."""
    weight = 0
    for _, parameters in unit.statements:
        for value in parameters:
            if isinstance(value, (str, bytes)):
                weight += len(value)
    return weight
