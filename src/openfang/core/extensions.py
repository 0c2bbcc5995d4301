"""One extension as a value: what it is, what it offers, what it runs with and what it may reach."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openfang.core.calls import Grants
from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Risk, Sink, Trust
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Sandbox: TypeAlias = Literal["auto", "required", "off"]
RuntimeKind: TypeAlias = Literal["python", "node", "mcp"]
NOTHING = Grants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What runs it: a file of its folder, or the command of an MCP server, and how far it may go.

    `requirements` are pinned packages of Python, installed into an environment of its own.
    """

    kind: RuntimeKind
    entry: tuple[str, ...]
    python: str | None = None
    requirements: tuple[str, ...] = ()
    memory_bytes: int = 512 << 20
    cpu_seconds: float = 300.0
    disk_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What it may reach: tools and memory by grants, and of the machine what is named here."""

    grants: Grants = NOTHING
    network: bool = False
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One tool of an extension, as its manifest declares it; `shown_as` is its wire name."""

    name: str
    shown_as: str = ""
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    risk: Risk | None = None
    tags: frozenset[str] | None = None
    sink: Sink | None = None
    timeout: float | None = None


NO_PERMISSIONS = Permissions()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionSpec:
    """What is known of an extension. Two that are equal are the same.

    `folder` is its code, which it can only read; `workspace` is its own to write. `digest` is that
    of all its files, as they were accepted. Its process ends when nobody called for `idle` seconds.
    """

    id: str
    version: str = "0.0.0"
    title: str = ""
    description: str = ""
    folder: Path
    workspace: Path
    digest: str = ""
    runtime: Runtime
    capabilities: tuple[Capability, ...] = ()
    permissions: Permissions = NO_PERMISSIONS
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trust: Trust = Trust.MEDIUM
    sandbox: Sandbox = "auto"
    timeout: float = 30.0
    at_once: int = 10
    idle: float = 600.0

    @property
    def caller_id(self) -> str:
        """Who it is where it calls."""
        return tool_id(Kind.EXTENSION, self.id)
