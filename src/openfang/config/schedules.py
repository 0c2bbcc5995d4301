"""`[schedules]` and `[[triggers]]`: what agents do at its time, and when something happens."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from openfang.config.fields import Count, Name, Section, Text, meaning
from openfang.core.errors import Rejected
from openfang.core.triggers import EVENT_GLOB, USUAL_MESSAGE, USUAL_PER_HOUR


def _zone(name: str) -> str:
    from openfang.agents.when import read_zone  # noqa: PLC0415 - few files name one

    try:
        read_zone(name)
    except Rejected:
        raise PydanticCustomError("expected", "a time zone such as Europe/Berlin") from None
    return name


Zone = Annotated[str, AfterValidator(_zone)]


class Schedules(Section):
    """What agents do at its time."""

    timezone: Zone = Field(
        default="UTC", description="The time zone of schedules that name none, by its IANA name."
    )
    missed: Literal["once", "skip"] = Field(
        default="once",
        description="What becomes of runs that were missed while no daemon ran: one is made up "
        "for all of them, or none.",
    )
    min_interval_secs: Annotated[int, Field(ge=1, le=86_400)] = Field(
        default=60, description="Seconds that runs of a schedule are apart at least."
    )
    max_per_caller: Count = Field(
        default=50, description="Schedules of a key, with those that agents made for it."
    )
    max_total: Count = Field(default=500, description="Schedules that the node has at most.")


EventGlob = Annotated[
    str, Field(pattern=EVENT_GLOB, json_schema_extra=meaning("a type of events, or a pattern"))
]


class Trigger(Section):
    """An agent that is started by events."""

    name: Name = Field(description="The trigger's name.")
    event: EventGlob = Field(description="Types of events; `*` stands for anything.")
    agent: Name = Field(description="The agent that is told of them.")
    message: Text = Field(
        default=USUAL_MESSAGE,
        max_length=16_384,
        description="What it is told; `{event_type}` and `{payload}` stand for the event.",
    )
    max_per_hour: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=USUAL_PER_HOUR, description="Runs that it starts in an hour at most."
    )
