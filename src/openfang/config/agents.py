"""What holds for all agents of a node, whatever their manifests say."""

from typing import Literal, TypeAlias

from pydantic import Field

from openfang.config.fields import FolderPath, Section

Sandbox: TypeAlias = Literal["required", "auto", "off"]


class Agents(Section):
    """The agents of the node."""

    sandbox: Sandbox = Field(
        default="required",
        description="How an agent that is a program is confined, unless its manifest says so.",
    )
    workspace_roots: tuple[FolderPath, ...] = Field(
        default=(),
        description="Folders in which a workspace may lie, beside the home's own workspaces.",
    )
