"""The half of a session that manages the node: its servers, secrets, specs and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.app.admin import Admin
from openfang.app.auth.identify import require
from openfang.app.calling import ONE_SHOT, Calling
from openfang.app.definitions import Definitions
from openfang.app.servers.census import health_body, said, server_body, servers_body
from openfang.app.servers.secrets import Secrets
from openfang.app.servers.upkeep import Upkeep
from openfang.core.calls import Role
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.keys import AdminToken, Key, Spec
    from openfang.core.tools import Tool


@dataclass(frozen=True, slots=True)
class Managing(Calling):
    """What one caller can do with the node itself; most of it only an administrator."""

    async def accept_tool(self, name: str) -> Tool:
        """Take a tool that changed as it is now."""
        return await (await self._admin()).accept_tool(name)

    async def held(self, source: str = "") -> Sequence[Mapping[str, Any]]:
        """List what is held back of what others say of themselves, and why."""
        await require(self.parts, self.caller, Role.AUDITOR)
        await self._known(lists=True)
        return Definitions(self.parts, self.caller).held(source)

    async def accept(self, id_: str, digest: str = "") -> Mapping[str, Any]:
        """Take what is held back as it is now; with a digest, only if it is still that."""
        await require(self.parts, self.caller)
        await self._known(lists=True)
        return await Definitions(self.parts, self.caller).accept(id_, digest)

    async def specs(self) -> list[Spec]:
        """List the frozen specs, oldest first."""
        return await self.parts.specs.all()

    async def freeze_spec(self, name: str, content: bytes, project: str) -> Spec:
        """Freeze a plan; freezing the same content again changes nothing."""
        return await (await self._admin()).freeze_spec(name, content, project)

    async def keys(self) -> list[Key | AdminToken]:
        """List all keys and tokens, never their secrets."""
        return await (await self._admin()).keys()

    async def create_key(self, key: Key, *, ttl: float | None = None) -> tuple[Key, str]:
        """Make a key; its secret is returned once and kept nowhere."""
        return await (await self._admin()).create_key(key, ttl=ttl)

    async def create_token(
        self, token: AdminToken, *, ttl: float | None = None
    ) -> tuple[AdminToken, str]:
        """Make an admin token, for gate 6."""
        return await (await self._admin()).create_token(token, ttl=ttl)

    async def revoke_key(self, name: str) -> Key | AdminToken:
        """End a key or token, by name or id."""
        return await (await self._admin()).revoke_key(name)

    async def servers(self) -> Mapping[str, Any]:
        """Show the MCP servers: `configured`, and `connected` with the tools of each."""
        await self._known()
        return servers_body(self.parts, self.caller)

    async def server(self, name: str) -> Mapping[str, Any]:
        """Show everything that is known of one MCP server."""
        await require(self.parts, self.caller, Role.AUDITOR)
        await self._known()
        return server_body(self.parts, name)

    async def server_health(self) -> Mapping[str, str]:
        """Say of each MCP server that is enabled: healthy, degraded or unhealthy."""
        await self._known()
        return health_body(self.parts, self.caller)

    async def server_log(self, name: str) -> Sequence[str]:
        """Read what an MCP server last wrote for people."""
        await require(self.parts, self.caller, Role.AUDITOR)
        await self._known()
        return said(self.parts, name)

    async def try_server(self, name: str) -> Mapping[str, Any]:
        """Connect to an MCP server once more, to see what is wrong; it need not be enabled."""
        return await (await self._upkeep()).trial(name)

    async def refresh_servers(self) -> Mapping[str, Any]:
        """Ask the MCP servers for their tools again: how many answered, and who did not."""
        upkeep = await self._upkeep()
        await self._known()
        return await upkeep.refresh()

    async def change_server(self, name: str, act: str) -> Mapping[str, Any]:
        """Enable, disable or restart an MCP server."""
        return await (await self._upkeep()).act(name, act)

    async def add_server(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a new MCP server down; it waits until it is enabled."""
        return await (await self._upkeep()).add(entry)

    async def remove_server(self, name: str) -> Mapping[str, Any]:
        """Take an MCP server out of the configuration."""
        return await (await self._upkeep()).remove(name)

    async def secrets(self) -> Sequence[Mapping[str, Any]]:
        """List the names that are stored, and those that servers miss; never a value."""
        return await (await self._secrets()).all()

    async def set_secret(self, name: str, value: str) -> Mapping[str, Any]:
        """Store or replace a secret; servers that refer to it get it at once."""
        return await (await self._secrets()).set(name, value)

    async def remove_secret(self, name: str, *, force: bool = False) -> Mapping[str, Any]:
        """Delete a secret; one that a server refers to only with `force`."""
        return await (await self._secrets()).remove(name, force=force)

    async def _known(self, *, lists: bool = False) -> None:
        """Find out how the servers are; a daemon knows."""
        if self.edge == ONE_SHOT and self.parts.servers is not None:
            await self.parts.servers.settled(woken=False, lists=lists)

    async def _upkeep(self) -> Upkeep:
        await require(self.parts, self.caller)
        return Upkeep(self.parts, self.caller)

    async def _secrets(self) -> Secrets:
        await require(self.parts, self.caller)
        return Secrets(self.parts, self.caller)

    async def _admin(self) -> Admin:
        await require(self.parts, self.caller)
        return Admin(self.parts, self.caller)
