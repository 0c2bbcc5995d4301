"""The agents of a node: from manifests to sources of tools, and from one set to the next."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio import to_thread

from openfang.agents.code.programs import CodePrograms
from openfang.agents.loop import Budget, smaller
from openfang.agents.planner.model import PlannerModel
from openfang.agents.ports import Around
from openfang.agents.sessions import StoredSessions
from openfang.agents.source import AgentSource
from openfang.agents.spec import AgentSpec, Mind, Program
from openfang.app.confine import Confiner
from openfang.config.home import user_home
from openfang.config.manifests import FOLDER, parse_manifest, read_manifests
from openfang.core.agents import Ended, Ending, Speaker
from openfang.core.calls import Call, Mode
from openfang.core.errors import (
    ConfigError,
    Conflict,
    NotFound,
    OpenFangError,
    PolicyViolation,
)
from openfang.core.ids import Kind
from openfang.core.keys import Key
from openfang.policy.context import NO_WISH, bind
from openfang.policy.context import Wish as Bound
from openfang.policy.grants import exceeding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyio.abc import TaskGroup

    from openfang.agents.sessions import Interrupted
    from openfang.app.build import Parts
    from openfang.config.manifest_models import Manifest
    from openfang.config.problems import Problem
    from openfang.core.agents import Model, Wish
    from openfang.core.calls import Caller, Grants
    from openfang.core.tools import Tool

_log = logging.getLogger("openfang.agents")
_LOOK_SECONDS = 0.5
_OURS = frozenset({"default", "embedded", "planner"})
Signature: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(slots=True, kw_only=True)
class Agents:
    """Keeps one source for each agent; a manifest that is wrong leaves the others alone."""

    parts: Parts
    sessions: StoredSessions
    programs: CodePrograms
    running: dict[str, AgentSource] = field(default_factory=dict[str, AgentSource])
    problems: tuple[Problem, ...] = ()
    guests: dict[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    _written: Mapping[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    ready: anyio.Event = field(default_factory=anyio.Event)
    resumes: anyio.Event = field(default_factory=anyio.Event)
    interrupted: dict[str, Interrupted] = field(default_factory=dict[str, "Interrupted"])

    async def run(self) -> None:
        """Look at the manifests now and then, and act on what changed."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.programs.run)
            group.start_soon(self._go_on, group)
            await self._watch()

    async def _go_on(self, group: TaskGroup) -> None:
        """Go on with what a process of this home began and did not end; a command does not."""
        await self.resumes.wait()
        await self.ready.wait()
        for one in await self.sessions.interrupted():
            group.start_soon(self._resume, one)

    async def _resume(self, one: Interrupted) -> None:
        caller = self._holder(one.caller)
        if caller is None or one.agent not in self.running:
            ended = Ended(answer="", ending=Ending.FAILED)
            await self.sessions.end(one.session, one.run, ended, one.labels)
            return
        message = next((turn.text for turn in one.turns if turn.speaker is Speaker.USER), "")
        call = Call(
            tool=self.running[one.agent].spec.id,
            caller=caller,
            arguments={"message": message, "session": one.name},
            context=bind(caller, NO_WISH, self.parts.config.policy.blacklist),
            labels=one.labels,
            edge="resume",
            resumes=one.run,
        )
        self.interrupted[one.run] = one
        try:
            await self.parts.invoke(call)
        except OpenFangError as error:
            _log.warning("A run of %s did not go on: %s", one.agent, error.message)
        finally:
            del self.interrupted[one.run]

    def _holder(self, caller: str) -> Caller | None:
        """Who began it, if the key is still in force."""
        now = self.parts.clock.time_ns()
        keys = (key for key in self.parts.keys.all() if isinstance(key, Key))
        return next(
            (
                key.caller()
                for key in keys
                if key.caller().id == caller
                and key.revoked_at is None
                and (key.expires_at is None or key.expires_at > now)
            ),
            None,
        )

    def _is_safe(self, wish: Wish) -> bool:
        """Whether a call may be made again though it may have been made."""
        tool = self.parts.registry.find(wish.tool)
        return tool is not None and (tool.idempotent or not tool.effects)

    async def _watch(self) -> None:
        seen: Signature | None = None
        while True:
            now = await to_thread.run_sync(_signature, self._folder)
            if now != seen:
                seen = now
                await self.load()
                self.ready.set()
            await anyio.sleep(_LOOK_SECONDS)

    @property
    def _folder(self) -> Path:
        return self.parts.home.path / FOLDER

    async def load(self) -> None:
        """Read the manifests, and put what they say in force."""
        manifests, problems = await to_thread.run_sync(read_manifests, self.parts.home.path)
        for problem in set(problems) - set(self.problems):
            _log.error("An agent is left out: %s", problem)
        self.problems = problems
        self._written = {name: self._spec(one) for name, one in manifests.items()}
        self.apply()

    def apply(self) -> None:
        """Begin what is new, end what is gone, replace what changed."""
        wanted = {**self.guests, **self._written}
        self.programs.retain(wanted)
        for name in [name for name in self.running if name not in wanted]:
            del self.running[name]
            self.parts.remove(Kind.AGENT, name)
        for name, spec in wanted.items():
            known = self.running.get(name)
            if known is None or known.spec != spec:
                self.running[name] = AgentSource(spec, self._around)
                self.parts.add(Kind.AGENT, self.running[name])

    def find(self, name: str) -> AgentSource:
        """Find an agent that runs."""
        source = self.running.get(name)
        if source is None:
            raise NotFound(f"No agent {name} is there.", way_out="openfang agents list")
        return source

    def known(self, caller: Caller) -> list[Mapping[str, Any]]:
        """Describe the agents that a caller may call."""
        visible = {tool.name for tool in self.parts.catalog.list(caller, kind=Kind.AGENT)}
        return [one for one in self.cards() if one["name"] in visible]

    def cards(self) -> list[Mapping[str, Any]]:
        """Describe every agent, by name."""
        return [_card(source.spec) for _, source in sorted(self.running.items())]

    async def spawn(self, call: Call, manifest: str) -> str:
        """Begin an agent that has at most what its parent has."""
        child = self._child(call.caller, parse_manifest(manifest, self.parts.home.path))
        if child.name in self.running:
            raise Conflict(f"There is an agent {child.name} already.", way_out="another name")
        self.guests[child.name] = child
        self.apply()
        return child.name

    async def kill(self, call: Call, name: str) -> None:
        """End an agent that was spawned; one with a manifest is ended by removing that."""
        if name not in self.guests:
            if name in self.running and self.parts.catalog.find(call.caller, f"agent:{name}"):
                raise Conflict(
                    f"{name} has a manifest of its own, and was not started by an agent.",
                    way_out=f"remove agents/{name} from the home",
                )
            raise NotFound(f"No agent {name} was started by another.", way_out="agent_list")
        ended = [name, *(one.name for one in self.guests.values() if one.parent == name)]
        for one in ended:
            self.guests.pop(one, None)
        self.apply()

    def _child(self, parent: Caller, manifest: Manifest) -> AgentSpec:
        spec = self._spec(manifest)
        name = parent.id.removeprefix(f"{Kind.AGENT.value}:")
        above = self.running[name].spec if name in self.running else None
        grants = above.grants if above else _of_a_person(parent)
        if more := exceeding(spec.grants, grants):
            raise PolicyViolation(
                f"{spec.name} would have more than {parent.id}: {', '.join(more)}.",
                rule="grants.subset",
                way_out="grant it at most what its parent has",
            )
        if isinstance(spec.does, Program):
            raise PolicyViolation(
                "A spawned agent is a model in a loop, and no program.",
                rule="grants.subset",
                way_out='module = "builtin:chat"',
            )
        if above is None:
            return replace(spec, parent=name)
        return replace(
            spec,
            parent=name,
            workspace=above.workspace,
            budget=smaller(spec.budget, above.budget),
            projects=tuple(one for one in spec.projects if one in above.projects),
            blacklist=spec.blacklist | above.blacklist,
        )

    def workspace(self, space: str) -> Path | None:
        """The folder of an agent's own files, where its manifest names one."""
        found = (one.spec for one in self.running.values() if one.spec.caller.space == space)
        spec = next(found, None)
        return spec.workspace if spec else None

    @property
    def _around(self) -> Around:
        parts = self.parts
        return Around(
            invoke=parts.invoke,
            check=parts.pipeline.stamper.check,
            tools=self._tools,
            bind=self._bound,
            model=_model,
            sessions=self.sessions,
            programs=self.programs,
            clock=parts.clock,
            safe=self._is_safe,
            interrupted=self.interrupted,
        )

    def _tools(self, caller: Caller) -> Sequence[Tool]:
        return self.parts.catalog.list(caller)

    def _bound(self, agent: Caller, call: Call) -> Call:
        """Bind a call to the agent; what its own caller is bound to can only tighten it."""
        theirs = call.context
        mode = Mode.PLANNING if theirs.mode is Mode.PLANNING else None
        wish = Bound(mode=mode, task_id=theirs.task_id, blacklist=theirs.blacklist)
        context = bind(agent, wish, self.parts.config.policy.blacklist)
        return replace(call, caller=agent, context=context)

    def _spec(self, manifest: Manifest) -> AgentSpec:
        limits, resources, policy = manifest.limits, manifest.resources, manifest.policy
        name = manifest.name
        return AgentSpec(
            name=name,
            title=manifest.title or "",
            description=manifest.description,
            version=manifest.version,
            tags=manifest.tags,
            does=self._does(manifest),
            grants=manifest.grants(),
            mode=Mode(policy.mode),
            projects=(policy.project,) if policy.project else (),
            spec=policy.spec,
            blacklist=frozenset(policy.blacklist),
            workspace=Path(manifest.workspace or self.parts.home.workspace(f"agent-{name}")),
            budget=Budget(
                rounds=limits.tool_rounds,
                tokens=resources.max_llm_tokens_per_hour,
                cost_usd=resources.max_cost_per_hour_usd,
                seconds=limits.deadline_secs,
                at_once=limits.tools_at_once or Budget().at_once,
            ),
            history=manifest.max_history_messages,
            allow_reentry=manifest.allow_reentry,
        )

    def _does(self, manifest: Manifest) -> Mind | Program:
        kind, _, path = manifest.module.partition(":")
        if kind == "builtin":
            model = manifest.model
            return Mind(
                provider=model.provider,
                model=model.model,
                system=model.system_prompt,
                max_tokens=model.max_tokens,
                temperature=model.temperature,
            )
        file, _, function = path.partition(":")
        return Program(
            file=self._folder / manifest.name / file,
            function=function or "run",
            python=manifest.python,
            requirements=manifest.requirements,
            memory_bytes=manifest.resources.max_memory_bytes,
            cpu_seconds=manifest.resources.max_cpu_time_ms / 1000,
        )


def open_agents(parts: Parts, environ: Mapping[str, str]) -> Agents:
    """Put together what the agents of a home need."""
    confiner = Confiner(parts.home.path, user_home(environ))
    return Agents(
        parts=parts,
        sessions=StoredSessions(
            database=parts.database,
            writer=parts.writer,
            process=parts.broker.process,
            now=parts.clock.time_ns,
        ),
        programs=CodePrograms(
            confine=confiner.program,
            environments=parts.home.path / "agents-env",
            environ=environ,
        ),
    )


def _of_a_person(caller: Caller) -> Grants:
    """What somebody who is no agent can hand on: agents as tools, and all that its role allows."""
    kill = ("*",) if caller.admin else caller.grants.agent_kill
    spawn = caller.admin or caller.grants.agent_spawn
    return replace(caller.grants, agents=caller.grants.tools, agent_spawn=spawn, agent_kill=kill)


def _card(spec: AgentSpec) -> Mapping[str, Any]:
    does = spec.does
    return {
        "name": spec.name,
        "title": spec.title or spec.name,
        "description": spec.description,
        "version": spec.version,
        "tags": list(spec.tags),
        "model": "planner" if isinstance(does, Mind) else f"python:{does.file.name}",
        "tools": list(spec.grants.tools),
        "agents": list(spec.grants.agents or ()),
        "workspace": str(spec.workspace),
        "parent": spec.parent or None,
    }


def _model(mind: Mind) -> Model:
    if mind.provider not in _OURS:
        raise ConfigError(
            f"The provider {mind.provider} is not served by this version.",
            way_out='provider = "default": the embedded planner',
        )
    return PlannerModel()


def _signature(folder: Path) -> Signature:
    found: list[tuple[str, int, int]] = []
    for file in sorted(folder.glob("*/agent.*")):
        with suppress(OSError):  # it may have gone a moment ago
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)
