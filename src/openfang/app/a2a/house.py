"""The node as A2A peers see it: its agents with what they can do, and what becomes of messages."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.app.a2a.desk import Desk
from openfang.core.errors import UnknownTool
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass
from openfang.edges.a2a.ports import Described, Settings, Skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.agents.spec import AgentSpec
    from openfang.app.a2a.signing import Signer
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.trace import Chain
    from openfang.registry.snapshot import Snapshot

_MOST_SKILLS: Final = 200
_EVERYTHING: Final = "*"
_PATTERN: Final = frozenset("*?[")
_BUILTIN: Final = f"{Kind.BUILTIN.value}:"
_SKILL: Final = f"{Kind.EXTENSION.value}:"


@dataclass(slots=True)
class NodeHouse:
    """An open home, offered to agents elsewhere."""

    parts: Parts
    _signer: Signer | None = None
    _skills: dict[str, tuple[AgentSpec, tuple[Skill, ...]]] = field(
        default_factory=dict[str, "tuple[AgentSpec, tuple[Skill, ...]]"]
    )
    _skills_at: Snapshot | None = None

    @property
    def signer(self) -> Signer:
        """Who signs for the node; made when something is first signed."""
        if self._signer is None:
            from openfang.app.a2a.signing import Signer  # noqa: PLC0415 - it takes 0.2 s

            key, parts = self.parts.master.signing_key(), self.parts
            self._signer = Signer(key, parts.clock, lambda: parts.reached_at)
        return self._signer

    def settings(self) -> Settings | None:
        """How it is served now; nothing if it is not."""
        config = self.parts.config
        if not config.a2a.enabled:
            return None
        return Settings(
            base=self.parts.reached_at,
            path=config.a2a.listen_path,
            merged=config.a2a.card == "merged",
            primary=self._primary(),
            require_chain=config.a2a.require_chain,
        )

    def _primary(self) -> str | None:
        named = self.parts.config.a2a.primary_agent
        agents = self.parts.agents and self.parts.agents.agents
        if agents is None or named is None:
            return agents and agents.first
        return named if named in agents.running else None

    async def agents(self, caller: Caller | None) -> Sequence[Described]:
        """The agents that this caller may call, by name; without one, those that are published."""
        if self.parts.agents is None:
            return ()
        agents = await self.parts.agents.opened()
        if caller is not None:
            return [_described(spec, self._seen(spec)) for spec in agents.seen_by(caller)]
        running = sorted(agents.running.items())
        return [_introduced(source.spec) for name, source in running if self._publishes(name)]

    async def agent(self, name: str, caller: Caller | None) -> Described | None:
        """One of them by its name; nothing if it is not there for this caller."""
        if self.parts.agents is None:
            return None
        agents = await self.parts.agents.opened()
        source = agents.running.get(name)
        if source is None:
            return None
        if caller is None:
            return _introduced(source.spec) if self._publishes(name) else None
        if not await self.knows(name, caller):
            return None
        return _described(source.spec, self._seen(source.spec))

    def _publishes(self, name: str) -> bool:
        return name == self._primary() or name in self.parts.config.a2a.publish

    async def knows(self, name: str, caller: Caller) -> bool:
        """Whether this caller may call the agent."""
        if self.parts.agents is None:
            return False
        agents = await self.parts.agents.opened()
        try:
            self.parts.catalog.find(caller, tool_id(Kind.AGENT, name))
        except UnknownTool:
            return False
        return name in agents.running

    def _seen(self, spec: AgentSpec) -> tuple[Skill, ...]:
        """What it can do for who may call it: everything that it may use by now."""
        if _EVERYTHING not in spec.grants.tools:
            return tuple(public_skills(spec.grants.tools))
        snapshot = self.parts.registry.snapshot
        if self._skills_at is not snapshot:
            self._skills_at = snapshot
            self._skills.clear()
        kept = self._skills.get(spec.name)
        if kept is None or kept[0] is not spec:
            kept = self._skills[spec.name] = spec, self._used_by(spec)
        return kept[1]

    def _used_by(self, spec: AgentSpec) -> tuple[Skill, ...]:
        tools = self.parts.catalog.list(spec.caller)[:_MOST_SKILLS]
        return tuple([_of_tool(tool.wire_name) for tool in tools if tool.id != spec.id])

    def tasks(self, caller: Caller, chain: Chain) -> Desk:
        """What this caller can do with tasks."""
        return Desk(self.parts, caller, chain)

    def sign(self, card: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sign a card as this node."""
        return self.signer.sign(card)

    def sign_body(self, body: bytes, audience: str) -> str:
        """Sign what a peer is told, for nobody else."""
        return self.signer.sign_body(body, audience)

    def keys(self) -> Mapping[str, Any]:
        """The key that signatures are checked with."""
        return self.signer.keys()


def _introduced(spec: AgentSpec) -> Described:
    """Describe an agent as everybody may see it."""
    return _described(spec, tuple(public_skills(spec.grants.tools)))


def _described(spec: AgentSpec, skills: tuple[Skill, ...]) -> Described:
    return Described(
        name=spec.name,
        title=spec.title or spec.name,
        description=spec.description,
        version=spec.version,
        skills=skills,
    )


def public_skills(tools: Iterable[str]) -> Iterable[Skill]:
    """What everybody may know: the tools and skills that a manifest names, each of them once."""
    named = map(_named, tools)
    return {skill.id: skill for skill in named if not _PATTERN & set(skill.id)}.values()


def _named(granted: str) -> Skill:
    """What a grant speaks of; all tools of an extension are the one skill that it is."""
    if granted.startswith(_SKILL):
        return _of_skill(granted.split(":")[1])
    return _of_tool(granted.removeprefix(_BUILTIN))


def _of_tool(name: str) -> Skill:
    return Skill(
        id=name,
        name=name.replace("_", " "),
        description=f"Can use the {name} tool",
        tags=("tool",),
    )


def _of_skill(name: str) -> Skill:
    words = name.replace("_", " ").replace("-", " ")
    return Skill(id=name, name=words, description=f"Has the skill {name}", tags=("skill",))
