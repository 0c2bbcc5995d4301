"""`/.well-known/oauth-protected-resource`: where the clients of each resource get their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from openfang.core.errors import NotFound
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.oauth import WELL_KNOWN, metadata
from openfang.edges.api.schemas import listed, whole

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.edges.api.exchange import Answer, Asked

_TEXT = {"type": "string"}
_METADATA = whole(
    {
        "resource": _TEXT,
        "authorization_servers": listed(_TEXT),
        "bearer_methods_supported": listed(_TEXT),
    },
    scopes_supported=listed(_TEXT),
)


def _describing(path: str) -> Callable[[Asked], Awaitable[Answer]]:
    """Make what answers for the resource at a path, in which names are filled in."""

    async def describe(asked: Asked) -> Answer:
        authority = asked.node.authority()
        if authority is None:
            raise NotFound(
                "No issuer of access tokens is configured: this node knows its own keys alone.",
                way_out="set auth.issuer, or use a key made with: openfang keys create NAME",
            )
        names = {name: quote(value, safe="") for name, value in asked.path.items()}
        return json_answer(metadata(authority, asked.headers, path.format_map(names)))

    return describe


def _endpoint(path: str, name: str, what: str) -> Endpoint:
    return Endpoint(
        method="GET",
        path=WELL_KNOWN + path,
        name=f"describe_{name}",
        summary=f"Whose access tokens open {what}.",
        handle=_describing(path),
        access=Access.PUBLIC,
        answers={200: _METADATA},
        problems=(404,),
    )


ENDPOINTS = (
    _endpoint("", "node", "the node"),
    _endpoint("/api", "api", "the HTTP API"),
    _endpoint("/mcp", "mcp", "the MCP server"),
    _endpoint("/mcp/{toolset}", "toolset", "a toolset"),
    _endpoint("/mcp/agents/{name}", "agent_server", "an agent's MCP server"),
)
