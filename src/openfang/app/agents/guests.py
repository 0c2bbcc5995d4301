"""Agents that somebody started: each has at most what its parent has, for as long as it has it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.agents.loop import smaller
from openfang.agents.models.providers import DEFAULT, PLANNER, Choice
from openfang.agents.spec import AgentSpec, Mind, Program
from openfang.app.agents.minds import files_of
from openfang.config.manifests import FOLDER, parse_manifest
from openfang.core.errors import Conflict, NotFound, PolicyViolation
from openfang.core.ids import Kind, random_hex, wire_name
from openfang.core.values import dataclass
from openfang.policy.grants import exceeding, held_to
from openfang.storage.memory import forget
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from openfang.app.parts import Parts
    from openfang.config.manifest_models import Manifest
    from openfang.core.calls import Call, Caller, Grants

MOST_OF_ONE: Final = 16
MOST: Final = 256
LONGEST_MANIFEST: Final = 32_000
_AGENT: Final = f"{Kind.AGENT.value}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """What a parent has, and can hand on."""

    caller: Caller
    grants: Grants
    workspace: Path
    spec: AgentSpec | None = None


@dataclass(slots=True, kw_only=True)
class Guests:
    """Who was started and not ended yet, by name. `written` are the agents with a manifest."""

    parts: Parts
    describe: Callable[[Manifest], AgentSpec]
    written: Callable[[], Collection[AgentSpec]]
    known: dict[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    _people: dict[str, Above] = field(default_factory=dict[str, Above])
    _ended: set[str] = field(default_factory=set[str])
    _left: list[str] = field(default_factory=list[str])

    async def start(self, call: Call, text: str) -> str:
        """Take one in, as its manifest says and its parent can grant."""
        if len(text) > LONGEST_MANIFEST:
            raise Conflict(
                f"The manifest has {len(text)} characters; at most {LONGEST_MANIFEST} are read.",
                way_out="a shorter one",
            )
        home = self.parts.home.path
        manifest = await to_thread.run_sync(parse_manifest, text, home)
        folders = await to_thread.run_sync(_names, home / FOLDER)
        above = self._above(call)
        child = self._child(above, call, self.describe(manifest))
        self._check_name(child.name, folders)
        self._check_room(child.parent)
        self.known[child.name] = child
        if above.spec is None:
            self._people[child.parent] = above
        return child.name

    async def end(self, name: str) -> None:
        """End one, and all that it started."""
        if name not in self.known:
            await self._explain(name)
        for one in (name, *self._below(name)):
            self._drop(one)

    async def look(self) -> None:
        """See whose keys have ended meanwhile."""
        for parent in {spec.parent for spec in self.known.values()}:
            kind, _, name = parent.partition(":")
            if kind == "key" and await self.parts.keys.ended(name):
                self._ended.add(name)

    def check(self) -> None:
        """Hold each to what its parent has now; one that has more, or has none, is ended."""
        taken = {wire_name(spec.name) for spec in self.written()}
        for name, spec in list(self.known.items()):
            if name not in self.known:
                continue
            above = self._parent(spec)
            if above is None or wire_name(name) in taken or self._has_more(spec, above):
                for one in (name, *self._below(name)):
                    self._drop(one)
            else:
                self.known[name] = _bounded(spec, above)

    async def tidy(self) -> None:
        """Forget what those remembered who are gone."""
        if self._left:
            gone, self._left = self._left, []
            statements = tuple(one for space in gone for one in forget(space))
            await self.parts.writer.write(Unit(statements=statements))

    def purse(self, spec: AgentSpec) -> str:
        """Whose budget an agent takes from: its own, or that of who started it, all the way up."""
        top = spec
        while (above := self._named(top.parent)) is not None:
            top = above
        return top.place

    def _above(self, call: Call) -> Above:
        caller = call.caller
        if caller.id.startswith(_AGENT):
            spec = self._named(caller.id.removeprefix(_AGENT))
            if spec is None:
                raise _nobody(f"{caller.id} is gone, and starts no agents.")
            return Above(caller=caller, grants=caller.grants, workspace=spec.workspace, spec=spec)
        if caller.within is not None:
            raise _nobody(f"{caller.id} came in by a selection of tools, and starts no agents.")
        workspace = self.parts.home.workspace(caller.space)
        return Above(caller=caller, grants=_of_a_person(caller), workspace=workspace)

    def _parent(self, spec: AgentSpec) -> Above | None:
        """What the parent has now, if it is still there."""
        if ":" not in spec.parent:
            found = self._named(spec.parent)
            return _of_an_agent(found) if found else None
        kind, _, name = spec.parent.partition(":")
        if kind == "key" and name in self._ended:
            return None
        return self._people.get(spec.parent)

    def _named(self, name: str) -> AgentSpec | None:
        written = {spec.name: spec for spec in self.written()}
        return written.get(name) or self.known.get(name)

    def _below(self, name: str) -> Iterator[str]:
        for one in [spec.name for spec in self.known.values() if spec.parent == name]:
            yield one
            yield from self._below(one)

    def _drop(self, name: str) -> None:
        spec = self.known.pop(name, None)
        if spec is not None:
            self._left.append(memory_space(spec))

    def _child(self, above: Above, call: Call, spec: AgentSpec) -> AgentSpec:
        parent = above.caller.id.removeprefix(_AGENT)
        if more := exceeding(spec.grants, above.grants):
            raise PolicyViolation(
                f"{spec.name} would have more than {above.caller.id}: {', '.join(more)}.",
                rule="grants.subset",
                way_out="grant it at most what its parent has",
            )
        if isinstance(spec.does, Program):
            raise PolicyViolation(
                "A spawned agent is a model in a loop, and no program.",
                rule="grants.subset",
                way_out='module = "builtin:chat"',
            )
        spec = replace(spec, does=self._mind(spec.does, above))
        # What the call itself was tightened to holds for whatever comes of it.
        asked = replace(spec, blacklist=spec.blacklist | call.context.blacklist)
        return _bounded(replace(asked, parent=parent, life=random_hex(4)), above)

    def _mind(self, mind: Mind, above: Above) -> Mind:
        """Let it think with what its parent or the node has, at their addresses, with their keys.

        An address of its own choosing could be sent any key of ours.
        """
        parents = _choices(above.spec)
        held = [self._held(one, parents) for one in (mind.choice, *mind.fallbacks)]
        mind = replace(mind, choice=held[0], fallbacks=tuple(held[1:]))
        if own := self._own_files(mind, above):
            raise PolicyViolation(
                f"A spawned agent chooses no model file: {', '.join(sorted(own))}.",
                rule="grants.subset",
                way_out="leave the model out of its manifest, or name its parent's",
            )
        return mind

    def _own_files(self, mind: Mind | Program, above: Above) -> set[str]:
        """Name the model files that neither its parent nor the node thinks with."""
        config = self.parts.config
        parents = above.spec.does if above.spec else None
        lent = files_of(Mind(), config) | files_of(parents, config)
        return files_of(mind, config) - lent

    def _held(self, choice: Choice, parents: Sequence[Choice]) -> Choice:
        if choice.base_url or choice.api_key_env:
            raise PolicyViolation(
                "A spawned agent chooses no address and no key of a model.",
                rule="grants.subset",
                way_out="leave base_url and api_key_env out of its manifest",
            )
        theirs = next((one for one in parents if one.provider == choice.provider), None)
        if theirs is not None:
            model = theirs.model if choice.model == DEFAULT else choice.model
            return replace(theirs, model=model)
        config = self.parts.config
        nodes = {*PLANNER, DEFAULT, config.default_model.provider, *config.providers}
        if choice.provider not in nodes:
            raise PolicyViolation(
                f"Neither its parent nor the node has the provider {choice.provider}.",
                rule="grants.subset",
                way_out=f"[providers.{choice.provider}] in the configuration",
            )
        return choice

    def _has_more(self, spec: AgentSpec, above: Above) -> bool:
        """Whether it has a grant, or an address, key or file of a model, that its parent lost."""
        lent = {replace(one, model="") for one in _choices(spec) if one.base_url or one.api_key_env}
        theirs = {replace(one, model="") for one in _choices(above.spec)}
        more = exceeding(spec.grants, above.grants) or self._own_files(spec.does, above)
        return bool(more) or not lent <= theirs

    def _check_name(self, name: str, folders: Collection[str]) -> None:
        taken = {wire_name(one) for one in (*folders, *self.known)}
        if wire_name(name) in taken:
            raise Conflict(f"There is an agent {name} already.", way_out="another name")

    def _check_room(self, parent: str) -> None:
        own = sum(spec.parent == parent for spec in self.known.values())
        if own >= MOST_OF_ONE or len(self.known) >= MOST:
            whose = f"{parent} has {own}" if own >= MOST_OF_ONE else f"The node has {MOST}"
            raise Conflict(
                f"{whose} agents that were started, and no more can be.",
                way_out="agent_kill one that has done its work",
            )

    async def _explain(self, name: str) -> None:
        """Say why there is nobody to end."""
        folders = await to_thread.run_sync(_names, self.parts.home.path / FOLDER)
        if name in folders:
            raise Conflict(
                f"{name} has a manifest of its own, and was not started by an agent.",
                way_out=f"remove {FOLDER}/{name} from the home",
            )
        raise NotFound(f"No agent {name} was started by another.", way_out="agent_list")


def _bounded(spec: AgentSpec, above: Above) -> AgentSpec:
    """Hold a spec to its parent's; its grants are known to be within."""
    caller = held_to(spec.caller, above.caller)
    budget = smaller(spec.budget, above.spec.budget) if above.spec else spec.budget
    return replace(
        spec,
        grants=replace(spec.grants, closed=caller.grants.closed),
        mode=caller.mode,
        projects=caller.projects,
        spec=above.caller.spec,
        blacklist=caller.blacklist,
        workspace=above.workspace,
        budget=budget,
        shares_memory=False,
    )


def _choices(spec: AgentSpec | None) -> tuple[Choice, ...]:
    mind = spec.does if spec else None
    return (mind.choice, *mind.fallbacks) if isinstance(mind, Mind) else ()


def _of_an_agent(spec: AgentSpec) -> Above:
    return Above(caller=spec.caller, grants=spec.grants, workspace=spec.workspace, spec=spec)


def _of_a_person(caller: Caller) -> Grants:
    """What somebody who is no agent can hand on: agents as tools, and all that its role allows."""
    kill = ("*",) if caller.admin else caller.grants.agent_kill
    spawn = caller.admin or caller.grants.agent_spawn
    return replace(caller.grants, agents=caller.grants.tools, agent_spawn=spawn, agent_kill=kill)


def _nobody(why: str) -> PolicyViolation:
    return PolicyViolation(why, rule="grants.agent_spawn", way_out="the node's own address")


def memory_space(spec: AgentSpec) -> str:
    """Where an agent's memories are kept, of everybody who talks to it."""
    return replace(spec.caller, id=f"{_AGENT}{spec.place}").space


def _names(folder: Path) -> frozenset[str]:
    """Name all that may be agents, also those whose files are wrong. Blocks."""
    if not folder.is_dir():
        return frozenset()
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_dir())
