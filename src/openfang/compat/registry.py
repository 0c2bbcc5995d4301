"""The seed's registry: the tools that the caller of the house can see."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openfang.compat.house import House, current
from openfang.compat.words import RiskLevel, ToolDescriptor, ToolSource
from openfang.core.errors import UnknownTool
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.registry.rules import check_tags

if TYPE_CHECKING:
    from collections.abc import Collection

    from openfang.core.tools import Tool


_log = logging.getLogger("openfang.registry")


@dataclass(frozen=True, slots=True)
class CapabilityRegistry:
    """Reads the registry of a house, else of the one in use."""

    house: House | None = None

    def list_tools(
        self,
        source_types: Collection[ToolSource | str] | None = None,
        risk_levels: Collection[RiskLevel | str] | None = None,
        side_effect_tags: Collection[str] | None = None,
    ) -> list[ToolDescriptor]:
        """List the tools that are switched on, by wire name; of the tags one is enough.

        A word that does not exist is a ValueError, not an empty list.
        """
        sources = None if source_types is None else {ToolSource(word) for word in source_types}
        risks = None if risk_levels is None else {RiskLevel(word) for word in risk_levels}
        tags = None if side_effect_tags is None else check_tags(side_effect_tags)
        house = self.house or current()
        tools = (_described(house, tool) for tool in house.parts.catalog.list(house.caller))
        return [
            tool
            for tool in tools
            if (sources is None or tool.source_type in sources)
            and (risks is None or tool.risk_level in risks)
            and (tags is None or not tags.isdisjoint(tool.side_effect_tags))
        ]

    def get_tool(self, tool_id: str) -> ToolDescriptor | None:
        """Find a tool by any of its names, one that is switched off included."""
        house = self.house or current()
        try:
            return _described(house, house.parts.catalog.find(house.caller, tool_id))
        except UnknownTool:
            return None

    async def refresh_mcp_servers(self) -> int:
        """Ask every MCP server that is connected what it offers now; say how many answered."""
        parts = (self.house or current()).parts
        running = parts.servers.running if parts.servers else {}
        asked = await parts.servers.refresh() if parts.servers else {}
        answered = sum(not why for why in asked.values())
        for (kind, name), source in tuple(parts.sources.items()):
            if kind is not Kind.MCP or name in running:
                continue
            try:
                tools = source.tools()
            except Exception:  # noqa: BLE001 - a source may be other people's code
                _log.exception("MCP server %s cannot list its tools; those it had stay", name)
                continue
            parts.registry.replace_source(f"{kind.value}:{name}", tools)
            answered += 1
        return answered


def _described(house: House, tool: Tool) -> ToolDescriptor:
    return ToolDescriptor.of(tool, limit=house.parts.config.tools.timeout_secs)
