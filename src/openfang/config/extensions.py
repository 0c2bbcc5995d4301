"""`[extensions.ID]`: what the operator says of an extension that is installed."""

from typing import Annotated

from pydantic import Field

from openfang.config.fields import (
    Count,
    Seconds,
    SecretText,
    Variable,
    meaning,
)
from openfang.config.installs import InstallSettings

ExtensionId = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$",
        max_length=64,
        json_schema_extra=meaning("an id of letters and digits, with single . _ - between them"),
    ),
]


class ExtensionSettings(InstallSettings):
    """One extension, by the id in its manifest."""

    config: dict[Variable, SecretText | bool | int | float] = Field(
        default={},
        description="Values for what its manifest declares in `config`; `${NAME}` expands.",
    )
    timeout_secs: Seconds = Field(
        default=30, description="How long one call of its tools may take, in seconds."
    )
    max_concurrency: Count = Field(
        default=10, description="Calls at once; the others wait in turn."
    )
    idle_secs: Seconds = Field(
        default=600, description="After how long without a call its process ends, in seconds."
    )


NO_SETTINGS = ExtensionSettings()
