"""`[extensions.ID]`: what the operator says of an extension that is installed."""

from typing import Annotated, Literal

from pydantic import Field

from openfang.config.fields import (
    Count,
    FolderPath,
    Seconds,
    SecretText,
    Section,
    TrustName,
    Variable,
    meaning,
)
from openfang.core.tools import Trust

ExtensionId = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$",
        max_length=64,
        json_schema_extra=meaning("an id of letters and digits, with single . _ - between them"),
    ),
]


class ExtensionSettings(Section):
    """One extension, by the id in its manifest."""

    config: dict[Variable, SecretText | bool | int | float] = Field(
        default={},
        description="Values for what its manifest declares in `config`; `${NAME}` expands.",
    )
    sandbox: Literal["auto", "required", "off"] = Field(
        default="auto", description="Whether its process runs sandboxed."
    )
    network: bool = Field(
        default=True,
        description="False keeps it from the network, also where its manifest asks for it.",
    )
    fs_read: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that its process may read."
    )
    fs_write: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that its process may write."
    )
    trust: TrustName = Field(default=Trust.MEDIUM, description="How far it is trusted.")
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
