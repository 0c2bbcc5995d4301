"""On what terms a place offers: who it says it is, what is in it, what things are called there."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openfang.app.auth.scopes import Scope
from openfang.app.offering.naming import PLAIN, Naming
from openfang.core.calls import Mode, Role
from openfang.core.errors import NotFound
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass
from openfang.policy.grants import meet
from openfang.policy.selection import AGENTS, Both, Either, Exposure, Selection, ToolsOnly
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.agents.spec import AgentSpec
    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.config.tools import Toolset
    from openfang.core.calls import Caller, Within
    from openfang.edges.mcp.ports import Place

T = TypeVar("T")
_MOST: Final = 256
_OURS: Final[Mapping[str, Any]] = {"name": "openfang", "version": __version__}
_HOW_TO_SEARCH: Final = (
    "The tools are not listed. Find those that fit with search_tools, and use one with call_tool."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Those of one place. `agent` is whose it is; `server` the only one, that is seen through."""

    info: Mapping[str, Any] = field(default_factory=lambda: _OURS)
    instructions: str = ""
    selection: Within | None = None
    naming: Naming = PLAIN
    server: str = ""
    search: bool = False
    agent: AgentSpec | None = None

    def bound(self, caller: Caller) -> Caller:
        """Bind a caller to the place: what is not in it does not exist for it."""
        if self.selection is None:
            return caller
        held = caller if self.agent is None else _with(caller, self.agent)
        return replace(held, within=self._within(caller.within))

    def bound_to_tools(self, caller: Caller) -> Caller:
        """Bind a caller to the tools of the place: operations have ways of their own."""
        held = caller if self.agent is None else _with(caller, self.agent)
        return replace(held, within=ToolsOnly(self._within(caller.within)))

    def _within(self, own: Within | None) -> Within | None:
        """Join what a caller is held to and the place; at home, agents are beside a toolset.

        A key that is bound to an agent is bound to what that one shows.
        """
        if own is None or self.selection is None:
            return own or self.selection
        if isinstance(own, Scope) and self.agent and own.names_agent(self.agent.name):
            return self.selection
        if own is AGENTS and self.agent is None:
            return Either(own, self.selection)
        return Both(own, self.selection)


def _with(caller: Caller, agent: AgentSpec) -> Caller:
    """Leave a caller what it and an agent may both."""
    planning = Mode.PLANNING in (caller.mode, agent.mode)
    return replace(
        caller,
        role=Role.USER,
        grants=meet(caller.grants, agent.grants),
        mode=Mode.PLANNING if planning else caller.mode,
        blacklist=caller.blacklist | agent.blacklist,
    )


WHOLE: Final = Terms()


@dataclass(slots=True)
class Places:
    """Finds places. Their terms are the same object for as long as they are the same."""

    parts: Parts
    _known: dict[Place, tuple[object, Terms]] = field(
        default_factory=dict["Place", "tuple[object, Terms]"]
    )
    _bound: dict[tuple[int, int], tuple[Caller, Terms, Caller]] = field(
        default_factory=dict["tuple[int, int]", "tuple[Caller, Terms, Caller]"]
    )

    def terms(self, caller: Caller, place: Place) -> Terms:
        """Find a place; what is not there for this caller is not there."""
        if place.agent:
            return self._made(place, _agent(self.parts, caller, place.agent), agent_terms)
        if place.toolset:
            toolset = _toolset(self.parts.config, caller, place.toolset)
            return self._made(place, toolset, toolset_terms)
        return WHOLE

    def bound_to_tools(self, caller: Caller, terms: Terms) -> Caller:
        """Bind a caller to the tools of a place: who comes again is the same object again.

        Both are known by their identity: they are held, so that no others can have the same.
        """
        key = id(caller), id(terms)
        known = self._bound.get(key)
        if known is None:
            if len(self._bound) >= _MOST:
                self._bound.clear()
            known = self._bound[key] = (caller, terms, terms.bound_to_tools(caller))
        return known[2]

    def _made(self, place: Place, origin: T, make: Callable[[T], Terms]) -> Terms:
        known = self._known.get(place)
        if known is None or known[0] is not origin:
            known = self._known[place] = (origin, make(origin))
        return known[1]


def toolset_of(config: Config, name: str) -> Toolset:
    """Find a toolset of the configuration."""
    toolset = config.toolsets.get(name)
    if toolset is None:
        raise no_toolset(name)
    return toolset


def no_toolset(name: str) -> NotFound:
    """Say that there is none, also of one that there is not for who asks."""
    return NotFound(f"No toolset {name} is there.", way_out="[toolsets.NAME] in config.toml")


def _toolset(config: Config, caller: Caller, name: str) -> Toolset:
    if isinstance(caller.within, Scope) and not caller.within.names_toolset(name):
        raise no_toolset(name)
    return toolset_of(config, name)


def toolset_terms(toolset: Toolset) -> Terms:
    """Say on what terms a toolset is offered; one server without a prefix is seen through."""
    server = toolset.servers[0] if len(toolset.servers) == 1 and not toolset.prefix else ""
    return Terms(
        instructions=_HOW_TO_SEARCH if toolset.mode == "search" else "",
        selection=Selection(
            servers=frozenset(toolset.servers), tools=toolset.tools, agents=toolset.agents
        ),
        naming=Naming(
            prefix=toolset.prefix,
            rename=toolset.rename,
            descriptions=toolset.descriptions,
            server=server,
        ),
        server=server,
        search=toolset.mode == "search",
    )


def _agent(parts: Parts, caller: Caller, name: str) -> AgentSpec:
    agents = parts.agents.agents if parts.agents else None
    source = agents.running.get(name) if agents else None
    tool = parts.registry.find(tool_id(Kind.AGENT, name))
    if source is None or tool is None or not parts.catalog.sees(caller, tool):
        raise NotFound(f"No agent {name} is there.", way_out="openfang agents list")
    return source.spec


def agent_terms(spec: AgentSpec) -> Terms:
    """Say on what terms an agent's own tools are offered."""
    return Terms(
        info={"name": spec.name, "version": spec.version},
        instructions=spec.description,
        selection=Exposure(
            exposed=spec.exports.tools,
            private=spec.exports.private,
            resources=spec.exports.resources,
        ),
        agent=spec,
    )
