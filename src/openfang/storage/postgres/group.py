"""Units that are committed together, and the rows that their records become. No I/O."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass
from openfang.storage.jobs import chained
from openfang.storage.postgres.dialect import is_needed, numbered, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.storage.jobs import Job
    from openfang.storage.units import Head, Line

FEW: Final = 8
"""So many rows are written out; more go as one list for each column."""
_COLUMNS: Final = 10
_MANY: Final = (
    "INSERT INTO audit SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[],"
    " $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])"
)


@cache
def _few(count: int) -> str:
    rows = (
        ", ".join(f"${row * _COLUMNS + column}" for column in range(1, _COLUMNS + 1))
        for row in range(count)
    )
    return f"INSERT INTO audit VALUES ({'), ('.join(rows)})"  # noqa: S608 - marks


@dataclass(frozen=True, slots=True)
class Group:
    """What is committed together by one node."""

    jobs: Sequence[Job]
    node: str
    digest: Callable[[str, int, int, Line, bytes], bytes]
    now: Callable[[], int]

    @property
    def statements(self) -> list[tuple[str, Sequence[Any]]]:
        """All statements, as the server takes them."""
        return statements(self.jobs)

    def chained(self, jobs: Iterable[Job], head: Head) -> tuple[list[Any], Head]:
        """The values of their rows, one after the other, and the head behind them."""
        return chained(jobs, head, node=self.node, digest=self.digest, at=self.now())


def statements(jobs: Iterable[Job]) -> list[tuple[str, Sequence[Any]]]:
    """The statements of units, as the server takes them."""
    return [
        (numbered(sql), storable(given))
        for job in jobs
        for sql, given in job.unit.statements
        if is_needed(sql)
    ]


def insert(rows: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """One statement for all rows."""
    count = len(rows) // _COLUMNS
    if count <= FEW:
        return _few(count), rows
    return _MANY, (rows[0], *(rows[column::_COLUMNS] for column in range(1, _COLUMNS)))
