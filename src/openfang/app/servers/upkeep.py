"""What an administrator does to the MCP servers: add, remove, switch, restart. All on record.

What is added waits until somebody enables it. The configuration file is changed first checked and
then whole; the node acts on it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.app.build import reconfigure
from openfang.app.home.editing import Editing
from openfang.app.servers.census import find_server, running, server_body
from openfang.app.servers.entries import check_entry
from openfang.app.servers.sealing import own_secrets, referred, seal
from openfang.config.edit import switched, with_server, without_server
from openfang.core.errors import Conflict, HomeError
from openfang.core.events import SERVER_CHANGED, Record
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.app.home.editing import Change
    from openfang.app.parts import Parts
    from openfang.app.servers.running import Servers
    from openfang.config.models import Config
    from openfang.config.servers import McpServer
    from openfang.core.calls import Caller

SIGNING: Final = ("login", "logout")


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Acts for one caller. Whoever makes it has seen to it that the caller may."""

    parts: Parts
    caller: Caller

    async def add(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Write a new server down, with `enabled = false`; its secrets go to the secret store."""
        check_entry(entry)
        async with self.parts.changing:
            return await self._add(entry)

    async def _add(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        name = entry["name"]
        if any(one.name == name for one in self.parts.config.mcp_servers):
            raise Conflict(
                f"There is an MCP server {name} already.", way_out=f"openfang servers show {name}"
            )
        stored = await to_thread.run_sync(self.parts.secrets.names)
        sealed = seal(entry, {*stored, *self._servers.environ})
        written = {**sealed.entry, "enabled": False}
        main = self.parts.home.config_file
        change = await self._prepared(main, lambda text: with_server(text, written))
        await self._on_record(name, "add")
        await self._servers.keep(sealed.secrets)
        await self._made(change)
        return server_body(self.parts, name)

    async def remove(self, name: str) -> dict[str, Any]:
        """Take a server out of its file, and what was stored for it out of the secret store."""
        async with self.parts.changing:
            return await self._remove(name)

    async def _remove(self, name: str) -> dict[str, Any]:
        server, file = self._written(name)
        body = server_body(self.parts, name)
        change = await self._prepared(file, lambda text: without_server(text, name))
        await self._on_record(name, "remove")
        await self._made(change)
        others = (one for one in self.parts.config.mcp_servers if one.name != name)
        still_used = {used for one in others for used in referred(one)}
        await self._servers.forget(own_secrets(server) - still_used)
        await self._servers.sign_out(name)
        return body

    async def act(self, name: str, what: str) -> dict[str, Any]:
        """Enable, disable or restart a server, or take note of a sign-in."""
        if what == "restart":
            await self._restart(name)
        elif what in SIGNING:
            await self._sign(name, what)
        else:
            async with self.parts.changing:
                await self._switch(name, enabled=what == "enable")
        return server_body(self.parts, name)

    async def trial(self, name: str) -> dict[str, Any]:
        """Connect once more, to see whether it works."""
        server = find_server(self.parts, name)
        await self._on_record(name, "test")
        found = (await self._servers.trial(server)).body(name)
        return self.parts.redactor.tree(found)

    async def refresh(self) -> dict[str, Any]:
        """Ask for all tools again; count the servers that answered, and name the others."""
        found = await self._servers.refresh()
        failed = [{"name": name, "reason": why} for name, why in sorted(found.items()) if why]
        body = {"refreshed": len(found) - len(failed), "failed": failed}
        return self.parts.redactor.tree(body)

    async def _restart(self, name: str) -> None:
        source = running(self.parts, name)
        if source is None:
            raise _not_running(find_server(self.parts, name))
        await self._on_record(name, "restart")
        source.restart()

    async def _sign(self, name: str, what: str) -> None:
        """Take note of a sign-in, or forget it; either way the server is connected anew."""
        find_server(self.parts, name)
        await self._on_record(name, what)
        if what == "logout":
            await self._servers.sign_out(name)
        if (source := running(self.parts, name)) is not None:
            source.restart()

    async def _switch(self, name: str, *, enabled: bool) -> None:
        server, file = self._written(name)
        if server.enabled is enabled:
            return
        change = await self._prepared(file, lambda text: switched(text, name, enabled=enabled))
        await self._on_record(name, "enable" if enabled else "disable")
        await self._made(change)

    def _written(self, name: str) -> tuple[McpServer, Path]:
        """Find a server and the file of ours that it stands in."""
        server, place = find_server(self.parts, name), self.parts.config.origin(name)
        file = self.parts.home.path / (place.file if place else "config.toml")
        if file.suffix != ".toml":
            raise Conflict(
                f"{name} is written in {file}, which is another program's.",
                way_out="change it there, or take the file out of `include`",
            )
        return server, file

    async def _prepared(self, file: Path, edit: Callable[[str], str]) -> Change:
        return await to_thread.run_sync(self._editing.prepare, file, edit)

    async def _made(self, change: Change) -> None:
        """Write the file, and act on it: what it says of the servers is in force now."""
        await to_thread.run_sync(self._editing.commit, change)
        config = _with_servers_of(self.parts.config, change.config)
        reconfigure(self.parts, config)
        self._servers.apply(config)

    @property
    def _servers(self) -> Servers:
        servers = self.parts.servers
        if servers is None:
            raise HomeError("The home is not open.", way_out="openfang start")
        return servers

    @property
    def _editing(self) -> Editing:
        return Editing(self.parts.home.path, self._servers.environ)

    async def _on_record(self, server: str, act: str) -> None:
        record = Record(
            event=SERVER_CHANGED,
            payload={"server": server, "act": act},
            context={"caller": self.caller.id},
        )
        await self.parts.broker.append([record])


def _not_running(server: McpServer) -> Conflict:
    if not server.enabled:
        return Conflict(
            f"The MCP server {server.name} is disabled.",
            way_out=f"openfang servers enable {server.name}",
        )
    return Conflict(
        f"No daemon runs that {server.name} could be restarted in.",
        way_out="openfang start; without one every command connects anew",
    )


def _with_servers_of(config: Config, other: Config) -> Config:
    """Take over what another configuration says of the servers, and nothing else."""
    placed = ((one, other.origin(one.name)) for one in other.mcp_servers)
    return config.with_servers({one.name: (one, place) for one, place in placed if place})
