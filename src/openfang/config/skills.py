"""`[skills.NAME]`: what the operator says of a skill that is installed."""

from typing import Literal

from pydantic import Field

from openfang.config.fields import (
    FolderPath,
    Seconds,
    SecretText,
    Section,
    TrustName,
    Variable,
)
from openfang.core.tools import Trust


class SkillSettings(Section):
    """One skill, by its name."""

    config: dict[Variable, SecretText] = Field(
        default={}, description="Values for the settings that it declares; `${NAME}` expands."
    )
    scripts: bool = Field(
        default=True, description="Whether its scripts can be run, by the tool `run`."
    )
    sandbox: Literal["auto", "required", "off"] = Field(
        default="auto", description="Whether its programs run sandboxed."
    )
    network: bool = Field(
        default=True,
        description="False keeps its programs from the network, also where it asks for it.",
    )
    fs_read: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that its programs may read."
    )
    fs_write: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that its programs may write."
    )
    trust: TrustName = Field(default=Trust.MEDIUM, description="How far it is trusted.")
    timeout_secs: Seconds = Field(
        default=30, description="How long one run of its programs may take, in seconds."
    )


NO_SETTINGS = SkillSettings()
