"""Wire names: assigned once, kept in a table, and never parsed back (C1.2, C1.3)."""

from __future__ import annotations

import re
from dataclasses import field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from openfang.core.errors import Conflict
from openfang.core.ids import WIRE_NAME_LENGTH, Kind, wire_name
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from openfang.core.tools import Tool

_VALID = re.compile(r"\A[a-z0-9_]{1,64}\Z")
_MCP = "mcp_"
# What these begin belongs to one kind of tool: an extension cannot take a server's name in advance.
_PREFIXES = {Kind.MCP: _MCP, Kind.AGENT: "openfang_agent_", Kind.A2A: "a2a_"}
_OURS = (Kind.BUILTIN, Kind.AGENT)
_SUFFIX = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """Two tools claimed one name: `holder` has it, `claimant` got `given` instead."""

    name: str
    holder: str
    claimant: str
    given: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTable:
    """Who has which name, and what built-ins reserve (their aliases)."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    reserved: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, stored: Mapping[str, str]) -> NameTable:
        """Read a stored table. A name that is not valid, or given twice, is assigned anew."""
        names: dict[str, str] = {}
        owners: dict[str, str] = {}
        for tool_id, name in sorted(stored.items(), key=_ours_first):
            if _VALID.match(name) and name not in owners:
                names[tool_id], owners[name] = name, tool_id
        return cls(names=names, owners=owners)

    def server_of(self, wire: str) -> str | None:
        """Return the MCP server behind a wire name; None for all that is not an MCP tool."""
        owner = self.owners.get(wire, "")
        kind, _, rest = owner.partition(":")
        return rest.partition(":")[0] if kind == Kind.MCP.value else None

    def may_use(self, alias: str, tool_id: str) -> bool:
        """Whether an alias is nobody else's name, present or absent."""
        holder = self.owners.get(alias) or self.reserved.get(alias)
        return holder is None or holder == tool_id

    def assign(self, tools: Sequence[Tool]) -> tuple[NameTable, Sequence[Collision]]:
        """Name the tools that have no name yet. Who has one keeps it, save from a built-in."""
        newcomers = [tool for tool in tools if tool.id not in self.names]
        reserved = {alias: t.id for t in tools if t.kind is Kind.BUILTIN for alias in t.aliases}
        if not newcomers and reserved.keys() <= self.reserved.keys():
            return self, ()
        work = _Assignment(
            names=dict(self.names),
            owners=dict(self.owners),
            reserved={**self.reserved, **reserved},
        )
        work.run(newcomers, reserved)
        table = replace(self, names=work.names, owners=work.owners, reserved=work.reserved)
        return table, tuple(work.collisions)


@dataclass(slots=True, kw_only=True)
class _Assignment:
    names: dict[str, str]
    owners: dict[str, str]
    reserved: dict[str, str]
    collisions: list[Collision] = field(default_factory=list[Collision])

    def run(self, newcomers: Iterable[Tool], reserved: Mapping[str, str]) -> None:
        tools = sorted(newcomers, key=lambda tool: tool.kind not in _OURS)
        for alias, tool_id in reserved.items():
            self._evict(alias, tool_id)
        for tool in tools:
            if tool.kind in _OURS:
                self._evict(_claims(tool)[0], tool.id)
        for tool in tools:
            if tool.id not in self.names:
                self._give(tool.id, _claims(tool))

    def _evict(self, name: str, tool_id: str) -> None:
        """Take a name from a foreign tool that has it only because it came first."""
        holder = self.owners.get(name)
        if holder is None or holder == tool_id or _is_ours(holder):
            return
        del self.owners[name], self.names[holder]
        self.owners[name] = tool_id
        self._give(holder, (name,))
        del self.owners[name]

    def _give(self, tool_id: str, claims: Sequence[str]) -> None:
        name = next((c for c in claims if self._free(c, tool_id)), None)
        name = name or self._suffixed(claims[-1], tool_id)
        self.names[tool_id], self.owners[name] = name, tool_id
        holder = self.owners.get(claims[0]) or self.reserved.get(claims[0])
        if holder is not None and holder != tool_id:
            self.collisions.append(
                Collision(name=claims[0], holder=holder, claimant=tool_id, given=name)
            )

    def _free(self, name: str, tool_id: str) -> bool:
        if not _VALID.match(name) or name in self.owners:
            return False
        return self.reserved.get(name, tool_id) == tool_id

    def _suffixed(self, base: str, tool_id: str) -> str:
        digest = sha256(tool_id.encode()).hexdigest()
        for length in range(_SUFFIX, WIRE_NAME_LENGTH, _SUFFIX):
            name = f"{base[: WIRE_NAME_LENGTH - 1 - length]}_{digest[:length]}"
            if self._free(name, tool_id):
                return name
        raise Conflict(f"No wire name is left for {tool_id}", way_out="openfang tools list")


def format_mcp_tool_name(server: str, tool: str) -> str:
    """Make the name that a server's tool claims; the table says whether it got it."""
    return wire_name("mcp", server, tool)


def is_mcp_tool(name: str) -> bool:
    """Whether a wire name is of a server's tool: the prefix is kept for them."""
    return name.startswith(_MCP)


def extract_mcp_server(name: str, table: NameTable) -> str | None:
    """Return the server behind a wire name, from the table."""
    return table.server_of(name)


def _claims(tool: Tool) -> tuple[str, ...]:
    """Return the names that a tool would have, best first."""
    rest = tool.id.partition(":")[2]
    match tool.kind:
        case Kind.BUILTIN:
            return (wire_name(tool.name),)
        case Kind.AGENT:
            return (wire_name("openfang_agent", rest),)
        case Kind.A2A:
            return (wire_name("a2a", rest),)
        case Kind.MCP:
            return (format_mcp_tool_name(tool.source, tool.name),)
        case Kind.EXTENSION:
            return tuple(_extension_claims(tool, rest))
        case Kind.CLIENT:
            return (wire_name("client", rest),)


def _extension_claims(tool: Tool, rest: str) -> Iterator[str]:
    declared = wire_name(tool.wire_name or tool.name)
    if not declared.startswith(tuple(_PREFIXES.values())):
        yield declared
    yield wire_name("ext", rest)


def _is_ours(tool_id: str) -> bool:
    return tool_id.startswith(("builtin:", "agent:"))


def _ours_first(item: tuple[str, str]) -> tuple[bool, str]:
    return (not _is_ours(item[0]), item[0])
