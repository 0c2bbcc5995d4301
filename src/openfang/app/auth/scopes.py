"""What a key is bound to: toolsets and agents by name, and what those hold as it is configured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from openfang.app.auth.callers import Credential
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.policy.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.config.models import Config
    from openfang.core.calls import Caller
    from openfang.core.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The toolsets and agents that somebody may use. `chosen` is what those toolsets hold."""

    toolsets: tuple[str, ...]
    agents: tuple[str, ...]
    chosen: Selection

    def holds(self, tool: Tool) -> bool:
        """Whether it is one of these agents, or in one of these toolsets."""
        if tool.kind is Kind.AGENT and self.names_agent(tool.name):
            return True
        if "*" in self.toolsets:
            return tool.kind is not Kind.AGENT
        return self.chosen.holds(tool)

    def names_toolset(self, name: str) -> bool:
        """Whether this toolset is one of them."""
        return "*" in self.toolsets or name in self.toolsets

    def names_agent(self, name: str) -> bool:
        """Whether this agent is one of them, in its own right."""
        return "*" in self.agents or name in self.agents


class Binding(Credential, Protocol):
    """A key, or a token, that may be bound to toolsets and agents by their names."""

    @property
    def bound(self) -> bool:
        """Whether it opens some toolsets or some agents only."""
        ...

    @property
    def toolsets(self) -> tuple[str, ...]:
        """Those that it opens, by name."""
        ...

    @property
    def agents(self) -> tuple[str, ...]:
        """Those that it opens, by name."""
        ...


@dataclass(frozen=True, slots=True)
class BoundKey:
    """A key that is bound to toolsets or agents, under the configuration that is in force."""

    key: Binding
    config: Config

    @property
    def expires_at(self) -> int | None:
        """When it ends, in nanoseconds since the epoch, if it does."""
        return self.key.expires_at

    def opens(self, edge: str) -> bool:
        """Whether it is good for this edge."""
        return self.key.opens(edge)

    def caller(self) -> Caller:
        """Who calls with it: for that one there is nothing else."""
        key = self.key
        chosen = _chosen(self.config, key.toolsets)
        within = Scope(toolsets=key.toolsets, agents=key.agents, chosen=chosen)
        return replace(key.caller(), within=within)


def _chosen(config: Config, names: Iterable[str]) -> Selection:
    """Join the toolsets of these names; one that is not there holds nothing."""
    found = [config.toolsets[name] for name in names if name in config.toolsets]
    return Selection(
        servers=frozenset(server for toolset in found for server in toolset.servers),
        tools=tuple(glob for toolset in found for glob in toolset.tools),
        agents=tuple(glob for toolset in found for glob in toolset.agents),
    )
