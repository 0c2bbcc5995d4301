"""The MCP servers as the API shows them: in the seed's shape, and no secret in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.app.servers.allowed import may_words
from openfang.app.servers.translate import trust_of
from openfang.config.show import as_dict
from openfang.core.bodies import tool_body
from openfang.core.calls import Role
from openfang.core.errors import NotFound
from openfang.core.ids import Kind
from openfang.sources.mcp.health import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.parts import Parts
    from openfang.config.servers import McpServer
    from openfang.core.calls import Caller
    from openfang.core.tools import Tool
    from openfang.sources.mcp.source import McpSource

_INSIDERS: Final = (Role.AUDITOR, Role.ADMIN)
_LAST_LINES: Final = 20
_OURS: Final = ("enabled", "lazy", "singleton", "allow_tools", "deny_side_effect_tags")


def servers_body(parts: Parts, caller: Caller) -> dict[str, Any]:
    """All servers; a caller without a role sees only those that it can see a tool of."""
    tools = _tools(parts, caller)
    insider = caller.role in _INSIDERS
    shown = [one for one in parts.config.mcp_servers if insider or one.name in tools]
    configured = [_configured(parts, one) for one in shown]
    if not insider:
        configured = [{"name": one["name"], "health": one["health"]} for one in configured]
    connected = [
        {
            "name": one.name,
            "tools_count": len(tools.get(one.name, ())),
            "tools": [
                {"name": tool.wire_name, "description": tool.description}
                for tool in tools.get(one.name, ())
            ],
            "connected": True,
        }
        for one in shown
        if (source := running(parts, one.name)) is not None and source.connected
    ]
    return {"configured": configured, "connected": connected}


def health_body(parts: Parts, caller: Caller) -> dict[str, str]:
    """The contract's word for each server that is enabled and that the caller may know of."""
    known = parts.servers.health() if parts.servers else {}
    if caller.role in _INSIDERS:
        return known
    visible = _tools(parts, caller)
    return {name: word for name, word in known.items() if name in visible}


def server_body(parts: Parts, name: str) -> dict[str, Any]:
    """Everything that is known of one server."""
    server = find_server(parts, name)
    source = running(parts, name)
    rejected = dict(source.rejected) if source else {}
    place = parts.config.origin(name)
    return {
        **_configured(parts, server),
        "origin": str(place) if place else "",
        "may": [parts.redactor.text(words).text for words in may_words(server)],
        "connected": source is not None and source.connected,
        "protocol_version": (source.version if source else "") or None,
        "server_info": dict(source.server_info) if source else {},
        "node": _node(parts, server),
        "layers": _layers(parts, name),
        "tools": [tool_body(tool) for tool in _all_tools(parts).get(name, ())],
        "rejected_tools": [{"name": tool, "reason": why} for tool, why in rejected.items()],
        "stderr": said(parts, name)[-_LAST_LINES:],
    }


def _node(parts: Parts, server: McpServer) -> str | None:
    """Name the node that has a server which runs once; on a file there is one node."""
    if not server.singleton or parts.once is None:
        return None
    return parts.once.holder(server.name) or None


def _layers(parts: Parts, name: str) -> list[dict[str, Any]]:
    """What holds the server's child, as it was seen when it was started."""
    found = parts.servers.layers.get(name, ()) if parts.servers else ()
    return [
        {"name": layer.name, "active": layer.present, "detail": layer.detail} for layer in found
    ]


def said(parts: Parts, name: str) -> list[str]:
    """What the server last wrote for people."""
    find_server(parts, name)
    lines = parts.servers.said.get(name, ()) if parts.servers else ()
    return [parts.redactor.text(line).text for line in lines]


def find_server(parts: Parts, name: str) -> McpServer:
    """Find a server of the configuration."""
    found = next((one for one in parts.config.mcp_servers if one.name == name), None)
    if found is None:
        raise NotFound(f"No MCP server {name} is configured.", way_out="openfang servers list")
    return found


def running(parts: Parts, name: str) -> McpSource | None:
    """Find the source of a server that is enabled."""
    return parts.servers.running.get(name) if parts.servers else None


def _configured(parts: Parts, server: McpServer) -> dict[str, Any]:
    """Show what is written of a server, and how it is."""
    written = as_dict(server)
    source = running(parts, server.name)
    return {
        "name": server.name,
        "transport": parts.redactor.tree(written["transport"]),
        "timeout_secs": written["timeout_secs"],
        "env": sorted(server.env),
        **{key: written[key] for key in _OURS},
        "trust": trust_of(server).value,
        "health": source.health.word if source else None,
        "state": _state(server, source),
        "last_error": _redacted(parts, source.health.error) if source else None,
    }


def _redacted(parts: Parts, error: str) -> str | None:
    return parts.redactor.text(error).text or None


def _state(server: McpServer, source: McpSource | None) -> str:
    if source is None:
        return "waiting" if server.enabled else "disabled"
    if source.connected:
        return "connected"
    if source.health.status is Status.SLEEPING:
        return "sleeping"
    return "connecting" if source.health.status is Status.STARTING else "failed"


def _tools(parts: Parts, caller: Caller) -> dict[str, Sequence[Tool]]:
    """The tools of each server, as far as the caller may know of them."""
    if caller.role in _INSIDERS:
        return _all_tools(parts)
    return _by_server(parts.catalog.list(caller, kind=Kind.MCP, disabled=True))


def _all_tools(parts: Parts) -> dict[str, Sequence[Tool]]:
    found = parts.registry.snapshot.select(kinds=(Kind.MCP,))
    return _by_server(sorted(found, key=lambda tool: tool.wire_name))


def _by_server(tools: Sequence[Tool]) -> dict[str, Sequence[Tool]]:
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(tool.source, []).append(tool)
    return cast("dict[str, Sequence[Tool]]", found)
