"""The names that prompts of servers and skills have in one place, and whose they are. Pure."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from openfang.core.ids import WIRE_NAME_LENGTH, Kind, tool_id, wire_name
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

_SUFFIX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Repertoire:
    """The prompts of one server, as it lists them."""

    server: str
    prompts: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """What a skill says, as a prompt: to get it is to call the tool that reads the skill."""

    name: str
    description: str
    tool: str


@dataclass(frozen=True)
class Prompts:
    """Those of all servers in a place; of one that is seen through, under their own names."""

    repertoires: tuple[Repertoire, ...] = ()
    through: str = ""
    instructions: tuple[Instructions, ...] = ()

    @cached_property
    def listed(self) -> tuple[Mapping[str, Any], ...]:
        """List them."""
        theirs = ({**entry, "name": name} for name, (_, _, entry) in self._named.items())
        skills = (
            {"name": one.name, "description": one.description}
            for one in self.instructions
            if one.name not in self._named
        )
        return (*theirs, *skills)

    def read_by(self, name: str) -> str:
        """Say by which tool a prompt is read that is a skill's; nothing of any other."""
        found = (one.tool for one in self.instructions if one.name == name)
        return "" if name in self._named else next(found, "")

    def find(self, name: str) -> tuple[str, str] | None:
        """Say whose a prompt is, and what that server calls it."""
        found = self._named.get(name)
        return (found[0], found[1]) if found else None

    @cached_property
    def _named(self) -> Mapping[str, tuple[str, str, Mapping[str, Any]]]:
        named: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        for server, own, entry in self._entries():
            name = own if server == self.through else _name(server, own, named)
            named[name] = (server, own, entry)
        return named

    def _entries(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Take what has a name, once; whose names stay as they are comes first."""
        for one in sorted(self.repertoires, key=lambda one: one.server != self.through):
            seen: set[str] = set()
            for entry in one.prompts:
                own = entry.get("name")
                if isinstance(own, str) and own not in seen:
                    seen.add(own)
                    yield one.server, own, entry


def _name(server: str, own: str, taken: Container[str]) -> str:
    """Name a prompt as tools are named; who comes second, or is too long, gets a suffix."""
    name = wire_name(Kind.MCP.value, server, own)
    digest = sha256(tool_id(Kind.MCP, server, own).encode(errors="replace")).hexdigest()
    length = 0
    while name in taken or len(name) > WIRE_NAME_LENGTH:
        length += _SUFFIX
        base = wire_name(Kind.MCP.value, server, own)[: WIRE_NAME_LENGTH - 1 - length]
        name = f"{base}_{digest[:length]}"
    return name
