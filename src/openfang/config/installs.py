"""What the operator says of anything that is installed: an extension, or a skill."""

from typing import Literal

from pydantic import Field

from openfang.config.fields import FolderPath, Section, TrustName
from openfang.core.tools import Trust


class InstallSettings(Section):
    """How far it is trusted, and what its programs reach."""

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
