"""How a server is, decided from what happened: a pure function of events (C3.7)."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.chatter import legible

if TYPE_CHECKING:
    import random

SLOW_PROBE_SECONDS: Final = 5.0
GIVEN_UP_AFTER: Final = 3
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_LONGEST_ERROR: Final = 500


class Status(Enum):
    """What a server is good for now."""

    STARTING = "starting"
    SLEEPING = "sleeping"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Where a server stands. `failures` are those in a row; `error` is the last one's reason."""

    status: Status = Status.STARTING
    failures: int = 0
    error: str = ""

    @property
    def word(self) -> str:
        """One of the contract's three words."""
        if self.status is Status.HEALTHY or self.status is Status.SLEEPING:
            return "healthy"
        return "degraded" if self.status is Status.DEGRADED else "unhealthy"


def answered(health: Health, seconds: float = 0.0) -> Health:
    """It works; one that is slow is degraded."""
    slow = seconds > SLOW_PROBE_SECONDS
    status = Status.DEGRADED if slow else Status.HEALTHY
    error = f"a probe took {seconds:.1f} s" if slow else ""
    return replace(health, status=status, failures=0, error=error)


def failed(health: Health, error: str) -> Health:
    """It is connected, and did not do what it was asked to."""
    failures = health.failures + 1
    return Health(status=_worse(failures), failures=failures, error=in_short(error))


def lost(error: str, *, row: int, known: bool) -> Health:
    """The connection is gone, for the `row`th time; what was never there is not just degraded."""
    status = _worse(row) if known else Status.UNHEALTHY
    return Health(status=status, failures=row, error=in_short(error))


def wait_before(failures: int, chance: random.Random) -> float:
    """Seconds until the next attempt: doubling from 1 s to 60 s, with full jitter."""
    return chance.uniform(0.0, min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures - 1, 10)))


def in_short(error: str) -> str:
    """Say in one legible line what a server may have said in a thousand."""
    line = legible(" ".join(error[: 2 * _LONGEST_ERROR].split()))
    return line if len(line) <= _LONGEST_ERROR else line[:_LONGEST_ERROR] + "..."


def _worse(failures: int) -> Status:
    return Status.UNHEALTHY if failures >= GIVEN_UP_AFTER else Status.DEGRADED
