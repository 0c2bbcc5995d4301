"""When an agent runs by itself, as its manifest says."""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from openfang.config.fields import Seconds, Section, Text
from openfang.config.manifest_parts import Scheduling


class Periodic(Section):
    """By the clock."""

    cron: Scheduling = Field(description="When it runs: a cron expression, or `every 1h`.")


class Proactive(Section):
    """When something happens."""

    conditions: tuple[Text, ...] = Field(
        min_length=1, description="What it waits for; any of these starts it."
    )


class Continuous(Section):
    """Again and again."""

    check_interval_secs: Seconds = Field(
        default=60,
        description="Seconds between runs; while one is under way no other begins.",
    )


class Schedule(Section):
    """When the agent runs without being asked: one of three ways."""

    periodic: Periodic | None = Field(default=None, description="By the clock.")
    proactive: Proactive | None = Field(default=None, description="When something happens.")
    continuous: Continuous | None = Field(default=None, description="Again and again.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(way is not None for way in (self.periodic, self.proactive, self.continuous)) != 1:
            raise PydanticCustomError("expected", "one of periodic, proactive and continuous")
        return self


def _schedule_form(schedule: object) -> str:
    return "ways" if isinstance(schedule, dict | Schedule) else "word"


Scheduled = Annotated[
    Annotated[Literal["reactive"], Tag("word")] | Annotated[Schedule, Tag("ways")],
    Discriminator(_schedule_form),
]
