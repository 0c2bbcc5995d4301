"""Resources and prompts of the servers that are in a place, as far as a caller may use them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.app.offering.addresses import Addresses, Library
from openfang.app.offering.prompts import Instructions, Prompts, Repertoire
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass
from openfang.sources.mcp.abilities import PROMPT, READ
from openfang.sources.skills.source import SkillSource

if TYPE_CHECKING:
    from openfang.app.offering.terms import Terms
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.edges.mcp.ports import Place
    from openfang.sources.mcp.source import McpSource

_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Federation:
    """What a caller can read and get in a place."""

    addresses: Addresses
    prompts: Prompts


@dataclass(slots=True)
class Federations:
    """Keeps what was asked for last; what is made anew and is the same stays."""

    parts: Parts
    _kept: dict[object, Federation] = field(default_factory=dict[object, Federation])

    def of(self, caller: Caller, place: Place, terms: Terms) -> Federation:
        """Find what a caller that is bound to a place can read and get there."""
        exposed = terms.agent.exports.resources if terms.agent else None
        fresh = Federation(
            Addresses(self._libraries(caller, terms), exposed),
            Prompts(self._repertoires(caller), terms.server, self._instructions(caller)),
        )
        key = (place, caller.grants, caller.within)
        kept = self._kept.pop(key, None)
        if len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = fresh if kept is None else _newer(kept, fresh)
        return self._kept[key]

    def _libraries(self, caller: Caller, terms: Terms) -> tuple[Library, ...]:
        found = [
            Library(server=name, resources=source.resources, templates=source.templates)
            for name, source in self._usable(caller, READ)
            if source.resources or source.templates or "resources" in source.capabilities
        ]
        return tuple(sorted(found, key=lambda one: (one.server != terms.server, one.server)))

    def _repertoires(self, caller: Caller) -> tuple[Repertoire, ...]:
        found = self._usable(caller, PROMPT)
        return tuple(
            Repertoire(server=name, prompts=source.prompts)
            for name, source in found
            if source.prompts
        )

    def _instructions(self, caller: Caller) -> tuple[Instructions, ...]:
        find, sees = self.parts.registry.find, self.parts.catalog.sees
        return tuple(
            Instructions(name=tool.wire_name, description=source.spec.description, tool=tool.id)
            for source in sorted(skills_of(self.parts), key=lambda one: one.name)
            if (tool := find(source.read_by)) and tool.available and sees(caller, tool)
        )

    def _usable(self, caller: Caller, operation: str) -> list[tuple[str, McpSource]]:
        servers = self.parts.servers.running if self.parts.servers else {}
        find, sees = self.parts.registry.find, self.parts.catalog.sees
        return [
            (name, source)
            for name, source in sorted(servers.items())
            if (tool := find(tool_id(Kind.MCP, name, operation))) and sees(caller, tool)
        ]


def skills_of(parts: Parts) -> list[SkillSource]:
    """The skills that are in force."""
    return [one for one in parts.sources.values() if isinstance(one, SkillSource)]


def _newer(kept: Federation, fresh: Federation) -> Federation:
    """Keep what is the same: it has its lists made already."""
    return Federation(
        kept.addresses if kept.addresses == fresh.addresses else fresh.addresses,
        kept.prompts if kept.prompts == fresh.prompts else fresh.prompts,
    )
