"""`[skills.NAME]`: what the operator says of a skill that is installed."""

from pydantic import Field

from openfang.config.fields import (
    Seconds,
    SecretText,
    Variable,
)
from openfang.config.installs import InstallSettings


class SkillSettings(InstallSettings):
    """One skill, by its name."""

    config: dict[Variable, SecretText] = Field(
        default={}, description="Values for the settings that it declares; `${NAME}` expands."
    )
    scripts: bool = Field(
        default=True, description="Whether its scripts can be run, by the tool `run`."
    )
    timeout_secs: Seconds = Field(
        default=30, description="How long one run of its programs may take, in seconds."
    )


NO_SETTINGS = SkillSettings()
