"""All tools at one moment, found by any of their names. A new moment is a new snapshot."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from openfang.core.ids import Kind
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from openfang.core.tools import Risk, Tool
    from openfang.registry.pins import Held

_KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Immutable. `index` holds ids, wire names and aliases; `held` why a tool waits."""

    tools: Mapping[str, Tool] = field(default_factory=lambda: MappingProxyType({}))
    index: Mapping[str, Tool] = field(default_factory=lambda: MappingProxyType({}))
    held: Mapping[str, Held] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, tools: Iterable[Tool], held: Mapping[str, Held]) -> Snapshot:
        """Index the tools. An id beats a wire name, that an alias, and a built-in's any other."""
        by_id = {tool.id: tool for tool in tools}
        index: dict[str, Tool] = {}
        aliased = [tool for tool in by_id.values() if tool.aliases]
        for tool in sorted(aliased, key=lambda tool: tool.kind is not Kind.BUILTIN):
            for alias in filter(_usable, tool.aliases):
                index.setdefault(alias, tool)
        index.update({tool.wire_name: tool for tool in by_id.values() if tool.wire_name})
        index.update(by_id)
        return cls(
            tools=MappingProxyType(by_id),
            index=MappingProxyType(index),
            held=MappingProxyType(dict(held)),
        )

    def find(self, name: str) -> Tool | None:
        """Look a tool up by canonical id, wire name or alias."""
        return self.index.get(name)

    def select(
        self,
        *,
        kinds: Collection[Kind] | None = None,
        risks: Collection[Risk] | None = None,
        max_risk: Risk | None = None,
        tags: Collection[str] | None = None,
        enabled: bool | None = None,
    ) -> tuple[Tool, ...]:
        """List the tools that meet every condition; of `tags` one will do, held is not enabled."""
        return tuple(
            tool
            for tool in self.tools.values()
            if not tool.operation
            and (kinds is None or tool.kind in kinds)
            and (risks is None or tool.risk in risks)
            and (max_risk is None or tool.risk <= max_risk)
            and (tags is None or not tool.tags.isdisjoint(tags))
            and (enabled is None or tool.available is enabled)
        )


def _usable(alias: str) -> bool:
    """Refuse what looks like an id: it could stand in for a tool that is not there yet."""
    kind, colon, _ = alias.partition(":")
    return not (colon and kind in _KINDS)
