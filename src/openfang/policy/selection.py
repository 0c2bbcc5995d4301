"""Selections of tools: for who comes in by one of them, there are no others. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.policy.grants import matches

if TYPE_CHECKING:
    from openfang.core.calls import Within
    from openfang.core.tools import Tool

_FOREIGN: Final = (Kind.MCP, Kind.EXTENSION)
_OF_RESOURCES: Final = "resources/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is named: whole servers, tools by pattern, agents by pattern."""

    servers: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def holds(self, tool: Tool) -> bool:
        """Whether any of it names the tool."""
        if tool.kind is Kind.AGENT and matches(self.agents, tool.name):
            return True
        if tool.kind is Kind.MCP and tool.source in self.servers:
            return True
        return matches(self.tools, tool.id) or matches(self.tools, tool.wire_name)


AGENTS: Final = Selection(agents=("*",))
NOTHING: Final = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What an agent shows of what it can reach. What is private stays so, wherever it stands."""

    exposed: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def holds(self, tool: Tool) -> bool:
        """Whether it is shown: by its id, its wire name, or as `plugin:tool`."""
        if tool.operation:
            return bool(self.resources) and tool.name.startswith(_OF_RESOURCES)
        names = names_of(tool)
        shown = any(matches(self.exposed, name) for name in names)
        return shown and not any(matches(self.private, name) for name in names)


@dataclass(frozen=True, slots=True)
class Either:
    """What one of two selections holds."""

    one: Within
    other: Within

    def holds(self, tool: Tool) -> bool:
        """Whether the tool is in any of them."""
        return self.one.holds(tool) or self.other.holds(tool)


@dataclass(frozen=True, slots=True)
class Both:
    """What each of two selections holds."""

    one: Within
    other: Within

    def holds(self, tool: Tool) -> bool:
        """Whether the tool is in both of them."""
        return self.one.holds(tool) and self.other.holds(tool)


@dataclass(frozen=True, slots=True)
class ToolsOnly:
    """Of a selection what is a tool: an operation has a way of its own."""

    inner: Within | None = None

    def holds(self, tool: Tool) -> bool:
        """Whether it is one of them."""
        return not tool.operation and (self.inner is None or self.inner.holds(tool))


def names_of(tool: Tool) -> tuple[str, ...]:
    """Give every name that a tool may be exposed by."""
    plugin = (plugin_name(tool),) if tool.kind in _FOREIGN else ()
    return (tool.id, tool.wire_name, *tool.aliases, *plugin)


def plugin_name(tool: Tool) -> str:
    """Name a tool by who brings it, as agents' exports do: `fs:read_file`."""
    return f"{tool.source}:{tool.name}"
