"""`[schedules]`: what agents do at its time."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from openfang.config.fields import Count, Section
from openfang.core.errors import Rejected


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
        default=50, description="Schedules that a key or an agent may have."
    )
    max_total: Count = Field(default=500, description="Schedules that the node has at most.")
