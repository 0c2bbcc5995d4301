"""The seed's helpers for wire names. A name is looked up in the table, never taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.compat.house import current
from openfang.registry import names
from openfang.registry.names import format_mcp_tool_name, is_mcp_tool

if TYPE_CHECKING:
    from openfang.compat.house import House

__all__ = ["extract_mcp_server", "format_mcp_tool_name", "is_mcp_tool"]


def extract_mcp_server(name: str, house: House | None = None) -> str | None:
    """Return the server behind a wire name; None where it is no server's tool."""
    house = house or current()
    return names.extract_mcp_server(name, house.parts.registry.names)
