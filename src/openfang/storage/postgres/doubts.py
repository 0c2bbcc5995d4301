"""Groups of which nobody knows whether they were kept: found out once the server answers again.

Whoever waited for one was told that nobody knows. Whoever would write what was lost once more hears
of it only when it was lost: else it would be there twice. Whoever must end what was begun hears of
it when it was kept.

What was sent may arrive long after the connection broke: so the server's process that was told to
commit is ended before anything is made of it, as one of a dead node is (`fence.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.jobs import Job
    from openfang.storage.postgres.attempt import Attempt
    from openfang.storage.units import Fate

# One that is in the middle of its commit ends behind it. Another one may have its number by now, if
# the server was restarted: so it is known by our name as well.
_END: Final = (
    "SELECT pg_terminate_backend(pid, 200) FROM pg_stat_activity WHERE pid = ANY($1::int[]) "
    "AND pid <> pg_backend_pid() AND datname = current_database() "
    "AND application_name = current_setting('application_name')"
)


@dataclass(slots=True)
class Doubt:
    """The attempts at one group that broke in their commit, and who hears what became of it."""

    attempts: Sequence[Attempt]
    hearers: Sequence[tuple[Job, Fate]]

    async def is_over(self, connection: Any) -> bool:  # noqa: ANN401 - the driver has no types
        """Find out, unless the server is still at it; who has to know hears of it."""
        processes = [attempt.process for attempt in self.attempts]
        if not all(row[0] for row in await connection.fetch(_END, processes)):
            return False
        kept = await self._came_through(connection)
        for job, fate in self.hearers:
            if kept and job.error is None:
                fate.kept(job.unit)
            else:
                fate.lost(job.unit)
        return True

    async def _came_through(self, connection: Any) -> bool:  # noqa: ANN401 - as above
        for attempt in self.attempts:
            if await attempt.is_there(connection):
                attempt.recall()
                return True
        return False


def doubt(attempts: Sequence[Attempt], jobs: Sequence[Job]) -> Doubt | None:
    """Take over whom to tell what became of it, if any of these attempts can be known later."""
    doubtful = [one for one in attempts if one.unsure and one.may_be_repeated]
    if not doubtful:
        return None
    hearers = [(job, job.fate) for job in jobs if job.fate is not None]
    for job in jobs:
        job.fate = None
    return Doubt(doubtful, hearers)
