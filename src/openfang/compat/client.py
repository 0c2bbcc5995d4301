"""The seed's MCP client: one server of a house, called on the one path like everybody else's tools.

client = MCPClient("echo-math")          # a server of the configuration, or an MCPServerConfig
await client.connect()
result = await client.call_tool("echo", {"text": "hello"})
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from openfang.compat.house import House, current
from openfang.compat.router import ToolRouter
from openfang.compat.words import HealthStatus, InvocationContext, MCPResult, MCPTool
from openfang.config.agentos import AgentosServer, to_server
from openfang.core.errors import HomeError
from openfang.core.ids import Kind
from openfang.core.results import text_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.servers.running import Servers
    from openfang.compat.config import MCPServerConfig
    from openfang.compat.words import ToolResult
    from openfang.config.servers import McpServer
    from openfang.core.tools import Tool


class MCPClient:
    """Uses one server of a house, else of the one in use.

    A server that the configuration does not know is connected for as long as the client is.
    """

    def __init__(
        self,
        server: MCPServerConfig | str,
        *,
        house: House | None = None,
        context: InvocationContext | None = None,
    ) -> None:
        self.server_id = server if isinstance(server, str) else server.id
        self._config = None if isinstance(server, str) else server
        self._house = house
        self._context = context or InvocationContext()
        self._guest = False

    async def connect(self) -> bool:
        """Connect, and say whether the server can be reached."""
        servers = self._servers
        if self._config is not None and not servers.knows(self.server_id):
            servers.invite(await to_thread.run_sync(_server, self._config))
            self._guest = True
        return await servers.reached(self.server_id)

    async def list_tools(self) -> list[MCPTool]:
        """List the tools of the server that the caller of the house can see."""
        house = self._house or current()
        visible = house.parts.catalog.list(house.caller, kind=Kind.MCP)
        return [_described(tool) for tool in visible if tool.source == self.server_id]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> MCPResult:
        """Call a tool on the one path, gates and audit included."""
        router = ToolRouter(self._house)
        tool_id = f"mcp:{self.server_id}:{name}"
        return _result(await router.invoke_tool(tool_id, arguments, self._context))

    async def health_check(self) -> HealthStatus:
        """Say how the server is."""
        return HealthStatus(self._servers.health().get(self.server_id, "unhealthy"))

    async def disconnect(self) -> None:
        """Let go of the server; one that belongs to the house goes on for the others."""
        if self._guest:
            self._guest = False
            self._servers.dismiss(self.server_id)

    @property
    def _servers(self) -> Servers:
        return servers_of(self._house)


class MCPHealthCheck:
    """Says how all servers of a house, else of the one in use, are."""

    def __init__(self, house: House | None = None) -> None:
        self._house = house

    async def check_all(self) -> dict[str, str]:
        """Say of each enabled server: healthy, degraded or unhealthy."""
        servers = servers_of(self._house)
        await servers.settled(woken=False)
        return servers.health()


mcp_health_check = MCPHealthCheck()


def servers_of(house: House | None) -> Servers:
    """Return the servers of a house, else of the one in use."""
    servers = (house or current()).parts.servers
    if servers is None:
        raise HomeError("The house runs no MCP servers.", way_out="open it with open_local()")
    return servers


def _server(config: MCPServerConfig) -> McpServer:
    """Read it by the rules of its file; relative paths count from its folder, or from here."""
    entry = AgentosServer.model_validate(
        {
            "id": config.id,
            "command": tuple(config.command),
            "allow_tools": tuple(config.allow_tools),
            "deny_side_effect_tags": tuple(config.deny_side_effect_tags),
            "timeout_ms": config.timeout_ms,
            "env": dict(config.env),
        }
    )
    return to_server(entry, config.folder or Path.cwd())


def _described(tool: Tool) -> MCPTool:
    return MCPTool(
        name=tool.name,
        description=tool.description.removeprefix(f"[MCP:{tool.source}]").lstrip(),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        title=tool.title,
    )


def _result(answer: ToolResult) -> MCPResult:
    body = answer.metadata
    if "content" not in body:
        return MCPResult(content=(text_part(answer.error or ""),), is_error=True)
    content = cast("Sequence[Mapping[str, Any]]", body["content"])
    return MCPResult(
        content=tuple(content),
        structured_content=body.get("structured"),
        is_error=not answer.success,
    )
