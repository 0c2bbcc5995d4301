"""A schedule: what an agent is told at its time, on whose behalf, and how it went."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

from openfang.core.labels import Labels
from openfang.core.values import dataclass

Overlap: TypeAlias = Literal["skip", "queue"]
OVERLAPS: Final = ("skip", "queue")
LONGEST_DESCRIPTION: Final = 4_096
LONGEST_MESSAGE: Final = 16_384
LONGEST_SCHEDULE: Final = 200
LONGEST_ZONE: Final = 64


class ScheduleState(Enum):
    """Whether it runs. One that was for once, and ran, stays to be seen."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class RunOutcome(Enum):
    """What became of a due moment."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """How it went: when it was due, when that was seen to, and the task that it began."""

    due: int
    at: int
    outcome: RunOutcome
    reason: str = ""
    task: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Something that an agent does at its time.

    `owner` runs it, `root` is who began the chain in which it was made, `origin` what that was
    bound to, and `labels` what it carried. `of_manifest`: the agent's own manifest asks for it.
    `skips` are the moments at which it was due and left out.
    """

    id: str
    owner: str
    root: str
    agent: str
    description: str
    message: str
    schedule: str
    timezone: str
    overlap: Overlap = "skip"
    origin: str = ""
    labels: Labels = Labels.NONE
    of_manifest: bool = False
    state: ScheduleState = ScheduleState.ACTIVE
    reason: str = ""
    version: int = 1
    due: int = 0
    runs: int = 0
    refusals: int = 0
    last: ScheduleRun | None = None
    skips: int = 0
    skipped_at: int = 0
    skipped_why: str = ""
    created_at: int = 0
