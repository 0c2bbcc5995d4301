"""What tools are called in a place, and how they are described there. Pure."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.edges.mcp.ports import Offered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.tools import Tool

_OWN: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How one place calls its tools: by their wire names, unless it says otherwise.

    `server` is the one whose tools are described as if nobody stood between.
    """

    prefix: bool = True
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    server: str = ""

    def offered(self, tools: Sequence[Tool]) -> list[Offered]:
        """Name and describe them, in the order of their names."""
        names = self.names(tools)
        offered = [
            Offered(name=names[tool.id], tool=tool, description=self._described(tool))
            for tool in tools
        ]
        return sorted(offered, key=lambda one: one.name)

    def names(self, tools: Sequence[Tool]) -> dict[str, str]:
        """Name each by its id. Of two that want one name the first by id gets it.

        What somebody in the place has as its wire name is nobody else's.
        """
        names = {tool.id: tool.wire_name for tool in tools}
        if self.prefix and not self.rename:
            return names
        taken = set(names.values())
        wishes = ((self._wish(tool), tool.id) for tool in tools)
        for (_, wish), tool_id in sorted(wishes):
            if wish and wish not in taken:
                names[tool_id] = wish
                taken.add(wish)
        return names

    def _wish(self, tool: Tool) -> tuple[bool, str]:
        """Say what a tool would be called; what the operator wrote comes first."""
        written = self.rename.get(tool.id) or self.rename.get(tool.wire_name)
        if written:
            return False, written
        own = not self.prefix and tool.kind is Kind.MCP and _OWN.fullmatch(tool.name)
        return True, tool.name if own else ""

    def _described(self, tool: Tool) -> str:
        written = self.descriptions.get(tool.id) or self.descriptions.get(tool.wire_name)
        if written:
            return written
        if self.server and tool.kind is Kind.MCP and tool.source == self.server:
            return f"{tool.description} ".removeprefix(f"[MCP:{self.server}] ").rstrip()
        return tool.description


PLAIN: Final = Naming()
