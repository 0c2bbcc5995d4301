"""The seed's Python names, over our own parts.

The names need an open home and somebody who calls: together a house. Either hand it in,

    registry = CapabilityRegistry(House(parts, caller))

or put one in use, and make the objects without arguments, before or inside:

    async with open_local() as local, use(local.parts, local.caller):
        tools = CapabilityRegistry().list_tools(source_types=["mcp"])
        result = await ToolRouter().invoke_tool("builtin:system_time", {}, InvocationContext())

A process has one house in use; inside another `use` the inner one counts. Who calls is decided by
the credential that the house was opened with, never by an `InvocationContext`. Without a house a
`ToolPolicyEngine` can still be asked: it then takes a context at its word, and nothing runs by it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openfang.compat.a2a import A2aClient, build_agent_card
    from openfang.compat.a2a_tasks import (
        A2aArtifact,
        A2aMessage,
        A2aTask,
        A2aTaskStatus,
        A2aTaskStore,
    )
    from openfang.compat.adapter import MCPAdapter
    from openfang.compat.audit import AuditEvent, AuditLogger, audit_logger
    from openfang.compat.client import MCPClient, MCPHealthCheck, mcp_health_check
    from openfang.compat.config import MCPConfigManager, MCPServerConfig
    from openfang.compat.daemon import find_daemon
    from openfang.compat.house import House, use
    from openfang.compat.names import extract_mcp_server, format_mcp_tool_name, is_mcp_tool
    from openfang.compat.policy import ALLOWED, DENIED, PolicyGate, ToolPolicyEngine
    from openfang.compat.registry import CapabilityRegistry
    from openfang.compat.router import ToolRouter
    from openfang.compat.words import (
        HealthStatus,
        InvocationContext,
        MCPResult,
        MCPTool,
        PolicyDecision,
        RiskLevel,
        ToolDescriptor,
        ToolResult,
        ToolSource,
    )

__all__ = [
    "ALLOWED",
    "DENIED",
    "A2aArtifact",
    "A2aClient",
    "A2aMessage",
    "A2aTask",
    "A2aTaskStatus",
    "A2aTaskStore",
    "AuditEvent",
    "AuditLogger",
    "CapabilityRegistry",
    "HealthStatus",
    "House",
    "InvocationContext",
    "MCPAdapter",
    "MCPClient",
    "MCPConfigManager",
    "MCPHealthCheck",
    "MCPResult",
    "MCPServerConfig",
    "MCPTool",
    "PolicyDecision",
    "PolicyGate",
    "RiskLevel",
    "ToolDescriptor",
    "ToolPolicyEngine",
    "ToolResult",
    "ToolRouter",
    "ToolSource",
    "audit_logger",
    "build_agent_card",
    "extract_mcp_server",
    "find_daemon",
    "format_mcp_tool_name",
    "is_mcp_tool",
    "mcp_health_check",
    "use",
]

_MODULES = {
    "a2a": ("A2aClient", "build_agent_card"),
    "a2a_tasks": ("A2aArtifact", "A2aMessage", "A2aTask", "A2aTaskStatus", "A2aTaskStore"),
    "adapter": ("MCPAdapter",),
    "audit": ("AuditEvent", "AuditLogger", "audit_logger"),
    "client": ("MCPClient", "MCPHealthCheck", "mcp_health_check"),
    "config": ("MCPConfigManager", "MCPServerConfig"),
    "daemon": ("find_daemon",),
    "house": ("House", "use"),
    "names": ("extract_mcp_server", "format_mcp_tool_name", "is_mcp_tool"),
    "policy": ("ALLOWED", "DENIED", "PolicyGate", "ToolPolicyEngine"),
    "registry": ("CapabilityRegistry",),
    "router": ("ToolRouter",),
    "words": (
        "HealthStatus",
        "InvocationContext",
        "MCPResult",
        "MCPTool",
        "PolicyDecision",
        "RiskLevel",
        "ToolDescriptor",
        "ToolResult",
        "ToolSource",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: a gate's file needs no configuration library."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
