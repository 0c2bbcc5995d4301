"""The seed's view of `mcp_servers.yaml`, by the rules that our own configuration reads it with."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from openfang.config.agentos import AgentosFile, AgentosServer
from openfang.config.documents import Document, read_document
from openfang.config.merge import frozen
from openfang.config.problems import Problem, explain, spell
from openfang.config.schema import shape_of
from openfang.core.errors import ConfigError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """One server of that file. Its variables may hold secrets, so they are not shown."""

    id: str
    command: list[str]
    enabled: bool = True
    transport: str = "stdio"
    allow_tools: list[str] = field(default_factory=list[str])
    deny_side_effect_tags: list[str] = field(default_factory=list[str])
    timeout_ms: int = 30_000
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    folder: Path | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, entry: AgentosServer, folder: Path | None = None) -> MCPServerConfig:
        """Read a validated entry; its relative paths count from this folder."""
        return cls(
            id=entry.id,
            command=list(entry.command),
            enabled=entry.enabled,
            transport=entry.transport,
            allow_tools=list(entry.allow_tools),
            deny_side_effect_tags=list(entry.deny_side_effect_tags),
            timeout_ms=entry.timeout_ms,
            env={name: value.get_secret_value() for name, value in entry.env.items()},
            folder=folder,
        )


class MCPConfigManager:
    """Reads `~/.agentos/mcp_servers.yaml`, or another file, and answers from what it read last."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path or "~/.agentos/mcp_servers.yaml").expanduser()
        self._required = path is not None
        self._servers: dict[str, MCPServerConfig] | None = None

    def load_config(self) -> list[MCPServerConfig]:
        """Read the file. A mistake in it is a ConfigError; without the usual file there are none.

        The answer is of one piece: a file with a mistake leaves what was read before in force.
        """
        entries = _entries(self.path) if self._required or self.path.exists() else ()
        folder = self.path.absolute().parent
        self._servers = {entry.id: MCPServerConfig.of(entry, folder) for entry in entries}
        return list(self._servers.values())

    def get_enabled_servers(self) -> list[MCPServerConfig]:
        """List the servers that are switched on."""
        return [server for server in self._known().values() if server.enabled]

    def is_tool_allowed(self, server_id: str, tool: str) -> bool:
        """Whether the server's list has the tool, or no list; a server not there allows none."""
        server = self._known().get(server_id)
        return server is not None and (not server.allow_tools or tool in server.allow_tools)

    def is_side_effect_denied(self, server_id: str, effects: Collection[str] | str) -> bool:
        """Whether any of the effects is denied to the server; one that is not there has none."""
        server = self._known().get(server_id)
        wanted = {effects} if isinstance(effects, str) else set(effects)
        return server is None or not wanted.isdisjoint(server.deny_side_effect_tags)

    def _known(self) -> dict[str, MCPServerConfig]:
        if self._servers is None:
            self.load_config()
        return self._servers or {}


def _entries(path: Path) -> tuple[AgentosServer, ...]:
    match read_document(path, str(path)):
        case Problem() as problem:
            raise _wrong([problem])
        case document:
            return _distinct(document, _validated(document))


def _validated(document: Document) -> tuple[AgentosServer, ...]:
    data = frozen(document.data)
    try:
        return AgentosFile.model_validate(data).mcp_servers
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        found = [explain(detail, data, shape_of(AgentosFile)) for detail in details]
        raise _wrong(
            Problem(document.place(key), spell(key, data, "id"), message) for key, message in found
        ) from None


def _distinct(document: Document, entries: tuple[AgentosServer, ...]) -> tuple[AgentosServer, ...]:
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        if entry.id in seen:
            place = document.place(("mcp_servers", number))
            key = f"mcp_servers.{entry.id}"
            raise _wrong([Problem(place, key, "expected one entry of this name, got another")])
        seen.add(entry.id)
    return entries


def _wrong(problems: Iterable[Problem]) -> ConfigError:
    lines = "\n".join(str(problem) for problem in problems)
    return ConfigError(lines, way_out="mend the file; openfang config check reads it as well")
