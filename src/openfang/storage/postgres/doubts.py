"""Groups of which nobody knows whether they were kept: found out once the server answers again.

Whoever waited for one was told that nobody knows. Whoever would write what was lost once more hears
of it only when it was lost: else it would be there twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openfang.storage.postgres.address import CONNECT_SECONDS, STATEMENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.storage.jobs import Job
    from openfang.storage.postgres.attempt import Attempt
    from openfang.storage.units import Unit

_RUNS: Final = "SELECT 1 FROM pg_stat_activity WHERE pid = ANY($1::int[])"
_LONGEST: Final = STATEMENT_SECONDS + CONNECT_SECONDS


@dataclass(slots=True)
class Doubt:
    """The attempts at one group that broke in their commit."""

    attempts: Sequence[Attempt]
    losers: Sequence[tuple[Job, Callable[[Unit], None]]]
    _since: float = field(init=False, default_factory=time.monotonic)

    async def is_over(self, connection: Any) -> bool:  # noqa: ANN401 - the driver has no types
        """Find out, unless the server may still be at it; who has lost something hears of it."""
        if await self._may_go_on(connection):
            return False
        for attempt in self.attempts:
            if await attempt.is_there(connection):
                attempt.recall()
                self._tell([(job, lost) for job, lost in self.losers if job.error is not None])
                return True
        self._tell(self.losers)
        return True

    async def _may_go_on(self, connection: Any) -> bool:  # noqa: ANN401 - as above
        """Whether a process that was told to commit is there yet; no statement takes longer."""
        processes = [attempt.process for attempt in self.attempts]
        runs = await connection.fetchval(_RUNS, processes) is not None
        return runs and time.monotonic() < self._since + _LONGEST

    def _tell(self, losers: Sequence[tuple[Job, Callable[[Unit], None]]]) -> None:
        for job, lost in losers:
            lost(job.unit)


def doubt(attempts: Sequence[Attempt], jobs: Sequence[Job]) -> Doubt | None:
    """Take over whom to tell of a loss, if any of these attempts can be known later."""
    doubtful = [one for one in attempts if one.unsure and one.may_be_repeated]
    if not doubtful:
        return None
    losers = [(job, job.lost) for job in jobs if job.lost is not None]
    for job in jobs:
        job.lost = None
    return Doubt(doubtful, losers)
