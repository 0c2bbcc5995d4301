"""The agents of a node: from manifests to sources of tools, and from one set to the next."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio import to_thread

from openfang.agents.loop import Budget
from openfang.agents.ports import Around
from openfang.agents.sessions import StoredSessions
from openfang.agents.source import AgentSource
from openfang.agents.spec import AgentSpec, Exports, Mind, Program, Takes
from openfang.agents.takes import untaken
from openfang.app.a2a.operations import operate
from openfang.app.agents.budgets import Budgets
from openfang.app.agents.cards import card, open_card
from openfang.app.agents.eyes import Eyes
from openfang.app.agents.guests import Guests, memory_space
from openfang.app.agents.handles import KeptResults
from openfang.app.agents.minds import Minds, mind_of
from openfang.app.agents.programs import LaterPrograms
from openfang.app.agents.resuming import Resuming
from openfang.app.clients import client_known
from openfang.app.schedules.due import never_begun
from openfang.app.schedules.manifests import Manifested, acts_of
from openfang.config.manifests import FOLDER, read_manifests
from openfang.core.agents import Image
from openfang.core.calls import Bounds, Excess, Mode
from openfang.core.errors import NotFound
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.news import Listed
from openfang.core.values import dataclass
from openfang.policy.context import Wish as Bound
from openfang.policy.context import bind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from anyio.abc import TaskGroup

    from openfang.app.parts import Parts
    from openfang.config.agents import Agents as AgentsConfig
    from openfang.config.manifest_models import Manifest
    from openfang.config.problems import Problem
    from openfang.core.calls import Call, Caller
    from openfang.core.tools import Tool

_log = logging.getLogger("openfang.agents")
_LOOK_SECONDS = 0.5
_STOP_SECONDS = 0.05
_AGENT = f"{Kind.AGENT.value}:"
Signature: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(slots=True, kw_only=True)
class Agents:
    """Keeps one source for each agent; a manifest that is wrong leaves the others alone.

    `first` is the first by name of those with a manifest.
    """

    parts: Parts
    sessions: StoredSessions
    programs: LaterPrograms
    minds: Minds
    running: dict[str, AgentSource] = field(default_factory=dict[str, AgentSource])
    problems: tuple[Problem, ...] = ()
    first: str | None = None
    guests: Guests = field(init=False)
    budgets: Budgets = field(init=False)
    resuming: Resuming = field(init=False)
    _written: Mapping[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    ready: anyio.Event = field(default_factory=anyio.Event)
    resumes: anyio.Event = field(default_factory=anyio.Event)
    recovered: anyio.Event = field(default_factory=anyio.Event)
    _taking_over: anyio.Lock = field(default_factory=anyio.Lock)
    _group: TaskGroup | None = None

    def __post_init__(self) -> None:
        self.guests = Guests(parts=self.parts, describe=self._spec, written=self._with_manifest)
        self.budgets = Budgets(parts=self.parts, purse=self.guests.purse)
        self.resuming = Resuming(parts=self.parts, sessions=self.sessions, running=self.running)

    def _with_manifest(self) -> Collection[AgentSpec]:
        return self._written.values()

    async def run(self) -> None:
        """Look at the manifests now and then, and act on what changed."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self.programs.run)
            group.start_soon(self.minds.run)
            group.start_soon(self._go_on)
            await self._watch()

    async def _go_on(self) -> None:
        """Go on with what a process of this home began and did not end; a command does not."""
        await self.resumes.wait()
        await self.take_over()
        self.recovered.set()

    async def take_over(self) -> None:
        """Go on with what processes that are gone began and did not end, or end it."""
        await self.ready.wait()
        async with self._taking_over:
            found = await self.sessions.interrupted(self.parts.tasks.engine.left)
            for_tasks = {one.task: partial(self.resuming.go_on, one) for one in found if one.task}
            await self._follow()
            await self.parts.tasks.recover(
                {**await never_begun(self.parts, self), **for_tasks},
                self.resuming.ended,
                self.resuming.is_elsewhere,
            )
            for one in found:
                if not one.task and self._group is not None:
                    self._group.start_soon(self.resuming.resume, one)

    def interrupt(self) -> None:
        """Stop all runs: nobody hears of this node, and another one may go on with them."""
        for source in self.running.values():
            source.interrupt()

    async def stopped(self) -> None:
        """Wait until no run is under way."""
        while any(source.busy for source in self.running.values()):  # noqa: ASYNC110 - seldom
            await anyio.sleep(_STOP_SECONDS)

    async def _follow(self) -> None:
        """Keep the schedules that manifests ask for; a command leaves them to the daemon."""
        if self.resumes.is_set():
            await Manifested(self.parts).follow(self._written.values())

    async def _watch(self) -> None:
        seen: tuple[Signature, AgentsConfig] | None = None
        while True:
            now = await to_thread.run_sync(_signature, self._folder), self.parts.config.agents
            if now != seen:
                seen = now
                await self.load()
                if self.ready.is_set():
                    await self._follow()
                self.ready.set()
            elif self.guests.known:
                await self.guests.look()  # a parent's key may have ended
                self.apply()
            await self.guests.tidy()
            await anyio.sleep(_LOOK_SECONDS)

    @property
    def _folder(self) -> Path:
        return self.parts.home.path / FOLDER

    async def load(self) -> None:
        """Read the manifests, and put what they say in force."""
        roots = self.parts.config.agents.workspace_roots
        home = self.parts.home.path
        manifests, problems = await to_thread.run_sync(read_manifests, home, roots)
        for problem in set(problems) - set(self.problems):
            _log.error("An agent is left out: %s", problem)
        self.problems = problems
        self._written = {name: self._spec(one) for name, one in manifests.items()}
        self.apply()

    def apply(self) -> None:
        """Begin what is new, end what is gone, replace what changed."""
        self.guests.check()
        wanted = {**self.guests.known, **self._written}
        self.programs.retain(wanted)
        for name, source in list(self.running.items()):
            # Another of the same name is another agent: runs of the one do not become the other's.
            if name not in wanted or wanted[name].place != source.spec.place:
                source.end()
                del self.running[name]
                self.parts.checks.pop(source.spec.id, None)
                self.parts.remove(Kind.AGENT, name)
        for name, spec in wanted.items():
            self._put(name, spec)
        self.first = min(self._written, default=None)
        reentrant = frozenset(spec.id for spec in wanted.values() if spec.allow_reentry)
        self.parts.pipeline.guards.chains.reenter(reentrant)

    def _put(self, name: str, spec: AgentSpec) -> None:
        source = self.running.get(name)
        if source is None:
            source = self.running[name] = AgentSource(spec, self.around)
        elif source.spec == spec:
            return
        source.spec = spec
        self.parts.checks[spec.id] = partial(untaken, spec)
        self.parts.add(Kind.AGENT, source)
        self.parts.news.publish(Listed.TOOLS)  # it may expose others

    def find(self, name: str) -> AgentSource:
        """Find an agent that runs."""
        source = self.running.get(name)
        if source is None:
            raise NotFound(f"No agent {name} is there.", way_out="openfang agents list")
        return source

    def known(self, caller: Caller) -> list[Mapping[str, Any]]:
        """Describe the agents that a caller may call, as everybody sees them."""
        return [open_card(spec, self.minds.default) for spec in self.seen_by(caller)]

    def cards(self, caller: Caller) -> list[Mapping[str, Any]]:
        """Describe the agents that a caller may call, whole."""
        layers, default = self.programs.layers, self.minds.default
        return [card(spec, default, layers(spec.name)) for spec in self.seen_by(caller)]

    def seen_by(self, caller: Caller) -> list[AgentSpec]:
        """Give the agents that a caller may call, by name."""
        visible = {tool.name for tool in self.parts.catalog.list(caller, kind=Kind.AGENT)}
        return [one.spec for name, one in sorted(self.running.items()) if name in visible]

    async def spawn(self, call: Call, manifest: str) -> str:
        """Begin an agent that has at most what its parent has."""
        name = await self.guests.start(call, manifest)
        self.apply()
        return name

    async def kill(self, call: Call, name: str) -> None:
        """End an agent that was spawned; one with a manifest is ended by removing that."""
        del call
        await self.guests.end(name)
        self.apply()
        await self.guests.tidy()

    def memory(self, call: Call) -> str:
        """The space of what a caller remembers; an agent has one for each who talks to it."""
        source = self.running.get(call.caller.id.removeprefix(_AGENT))
        if source is None or source.spec.id != call.caller.id:
            return call.caller.space
        space = memory_space(source.spec)
        return space if source.spec.shares_memory else f"{space}/{call.root}"

    def workspace(self, space: str) -> Path | None:
        """The folder of an agent's own files, where its manifest names one."""
        found = (one.spec for one in self.running.values() if one.spec.caller.space == space)
        spec = next(found, None)
        return spec.workspace if spec else None

    async def see(self, call: Call, image: bytes, media_type: str, question: str) -> str | None:
        """Ask the model of the agent that calls about an image; None where it has no eyes."""
        source = self.running.get(call.caller.id.removeprefix(_AGENT))
        if source is None or source.spec.id != call.caller.id:
            return None
        eyes = Eyes(parts=self.parts, minds=self.minds, budgets=self.budgets)
        return await eyes.see(source.spec, call, Image(media_type=media_type, data=image), question)

    @property
    def around(self) -> Around:
        """What every agent of the node is handed."""
        parts = self.parts
        return Around(
            invoke=parts.invoke,
            check=parts.pipeline.stamper.check,
            tools=self._tools,
            bind=self._bound,
            model=self.minds.model,
            sees=self.minds.may_see,
            sessions=self.sessions,
            programs=self.programs,
            safe=self.resuming.is_safe,
            budgets=self.budgets,
            interrupted=self.resuming.interrupted,
            client_known=partial(client_known, parts),
            blob=self._blob,
            operate=partial(operate, parts),
            ending=lambda: parts.hands_on,
            hear=parts.pipeline.flow.trusted.hear_in,
            handles=KeptResults(parts),
            thought=parts.thought,
            now=parts.clock.time_ns,
        )

    async def _blob(self, call: Call, blob: str) -> bytes | None:
        """Read what was sent along; a result of a tool, which has labels, is no such thing."""
        found = await self.parts.blobs.get(blob, call.caller.id, self.parts.clock.time_ns())
        return found[0] if found and found[1] | Labels.USER_INPUT == Labels.USER_INPUT else None

    def _tools(self, caller: Caller) -> Sequence[Tool]:
        return self.parts.catalog.list(caller)

    async def _bound(self, agent: Caller, call: Call) -> Call:
        """Bind a call to the agent; what its own caller is bound to can only tighten it."""
        theirs = call.context
        mode = Mode.PLANNING if theirs.mode is Mode.PLANNING else None
        wish = Bound(mode=mode, task_id=theirs.task_id, blacklist=theirs.blacklist)
        context = bind(agent, wish, self.parts.config.policy.blacklist)
        kind, _, name = call.root.partition(":")
        if kind == "key" and await self.parts.keys.ended(name):
            context = replace(context, excess=_ended(call.root))
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
                rounds=min(limits.tool_rounds, manifest.safety.max_loop_ticks),
                run_tokens=manifest.safety.max_token_usage,
                tokens=resources.max_llm_tokens_per_hour,
                cost_usd=resources.max_cost_per_hour_usd,
                daily_usd=resources.max_cost_per_day_usd,
                monthly_usd=resources.max_cost_per_month_usd,
                seconds=limits.deadline_secs,
                at_once=limits.tools_at_once or Budget().at_once,
                bounds=Bounds(
                    tool_calls=limits.tool_calls,
                    calls_per_minute=resources.max_tool_calls_per_minute,
                    tool_seconds=limits.tool_timeout_secs,
                ),
            ),
            acts=acts_of(manifest),
            takes=Takes(
                senders=manifest.communication.receive_from,
                bytes=manifest.communication.max_message_bytes,
            ),
            runs=limits.runs_at_once,
            history=manifest.max_history_messages,
            allow_reentry=manifest.allow_reentry,
            shares_memory=manifest.capabilities.memory_shared,
            exports=Exports(
                tools=manifest.mcp.expose_tools,
                private=manifest.mcp.private_tools,
                resources=manifest.mcp.expose_resources,
            ),
        )

    def _does(self, manifest: Manifest) -> Mind | Program:
        kind, _, path = manifest.module.partition(":")
        if kind == "builtin":
            return mind_of(manifest)
        file, _, function = path.partition(":")
        return Program(
            file=self._folder / manifest.name / file,
            folder=self._folder / manifest.name,
            function=function or "run",
            python=manifest.python,
            requirements=manifest.requirements,
            memory_bytes=manifest.resources.max_memory_bytes,
            cpu_seconds=manifest.resources.max_cpu_time_ms / 1000,
            sandbox=manifest.sandbox or self.parts.config.agents.sandbox,
        )


def open_agents(parts: Parts, environ: Mapping[str, str]) -> Agents:
    """Put together what the agents of a home need."""
    return Agents(
        parts=parts,
        sessions=StoredSessions(
            database=parts.database,
            writer=parts.writer,
            process=parts.broker.process,
            now=parts.clock.time_ns,
        ),
        programs=LaterPrograms(parts.home.path, environ),
        minds=Minds(parts, environ),
    )


def _ended(asker: str) -> Excess:
    return Excess(
        rule="context.asker",
        message=f"the key of {asker}, who asked for this, is no longer in force",
        way_out="send the message again with a key that is: openfang keys list",
    )


def _signature(folder: Path) -> Signature:
    found: list[tuple[str, int, int]] = []
    for file in sorted(folder.glob("*/agent.*")):
        with suppress(OSError):  # it may have gone a moment ago
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)
