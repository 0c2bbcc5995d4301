"""The shapes of schedules, as JSON Schema."""

from __future__ import annotations

from openfang.core.schedules import (
    LONGEST_DESCRIPTION,
    LONGEST_MESSAGE,
    LONGEST_SCHEDULE,
    LONGEST_ZONE,
    OVERLAPS,
    ScheduleState,
)
from openfang.edges.api.schemas import (
    COUNT,
    TEXT,
    Schema,
    exact,
    listed,
    one_of,
    or_null,
    page,
    ref,
    whole,
    word,
)

_MOMENT: Schema = {"type": "string", "format": "date-time"}

WANTED = exact(
    {
        "description": word(maxLength=LONGEST_DESCRIPTION),
        "schedule": word(maxLength=LONGEST_SCHEDULE),
        "agent": word(maxLength=64),
        "timezone": word(maxLength=LONGEST_ZONE),
        "message": word(maxLength=LONGEST_MESSAGE),
        "overlap": one_of(*OVERLAPS),
    },
    "description",
    "schedule",
    "agent",
)
COMPONENTS: dict[str, Schema] = {
    "ScheduleRun": whole(
        {
            "due": _MOMENT,
            "at": _MOMENT,
            "outcome": TEXT,
            "reason": or_null(TEXT),
            "labels": listed(TEXT),
            "task": or_null(TEXT),
            "session": or_null(TEXT),
        }
    ),
    "Schedule": whole(
        {
            "id": TEXT,
            "agent": TEXT,
            "owner": TEXT,
            "root": TEXT,
            "description": TEXT,
            "message": TEXT,
            "schedule": TEXT,
            "cron": or_null(TEXT),
            "timezone": TEXT,
            "overlap": one_of(*OVERLAPS),
            "from_manifest": {"type": "boolean"},
            "labels": listed(TEXT),
            "state": one_of(*(state.value for state in ScheduleState)),
            "reason": or_null(TEXT),
            "next_run": or_null(_MOMENT),
            "runs": COUNT,
            "last_run": or_null(ref("ScheduleRun")),
            "skipped": or_null(whole({"count": COUNT, "due": _MOMENT, "reason": TEXT})),
            "created_at": _MOMENT,
        }
    ),
    "Schedules": page("schedules", ref("Schedule")),
}
