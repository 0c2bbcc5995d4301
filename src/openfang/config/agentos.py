"""AgentOS's `mcp_servers.yaml`, read in place by the rules of its own documentation."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from openfang.config.fields import (
    DAY,
    Name,
    Program,
    SecretText,
    Section,
    TagName,
    Text,
    Variable,
)
from openfang.config.servers import McpServer


class AgentosServer(Section):
    """One entry of that file."""

    id: Name = Field(description="The server's name.")
    enabled: bool = Field(default=True, description="Whether the server is connected.")
    transport: Literal["stdio"] = Field(default="stdio", description="The only transport there is.")
    command: tuple[Program, ...] = Field(min_length=1, description="The program and its arguments.")
    allow_tools: tuple[Text, ...] = Field(default=(), description="Empty means all tools.")
    deny_side_effect_tags: tuple[TagName, ...] = Field(default=(), description="Refused tags.")
    timeout_ms: Annotated[int, Field(gt=0, le=DAY * 1000)] = Field(
        default=30_000, description="How long one request may take, in milliseconds."
    )
    env: dict[Variable, SecretText] = Field(default={}, description="Variables and their values.")


class AgentosFile(Section):
    """The whole file."""

    mcp_servers: tuple[AgentosServer, ...] = Field(description="The servers.")


def to_server(entry: AgentosServer, folder: Path) -> McpServer:
    """Say the same in our words; relative paths count from the file's folder."""
    program, *arguments = entry.command
    data: dict[str, Any] = {
        "name": entry.id,
        "enabled": entry.enabled,
        "transport": {
            "type": "stdio",
            "command": _from(folder, program) if "/" in program else program,
            "args": tuple(_from(folder, argument) for argument in arguments),
        },
        "allow_tools": entry.allow_tools,
        "deny_side_effect_tags": entry.deny_side_effect_tags,
        "timeout_secs": entry.timeout_ms / 1000,
        "env": dict(entry.env) or (),
    }
    return McpServer.model_validate(data)


def _from(folder: Path, element: str) -> str:
    """Resolve what exists there."""
    path = Path(element)
    if path.is_absolute() or element.startswith("-"):
        return element
    return str(folder / path) if _exists(folder / path) else element


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a word that is too long to be a path is no path
        return False
