"""The MCP servers of a node: from configuration to running sources, and from one to the next."""

from __future__ import annotations

import logging
from collections import ChainMap
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from openfang.app.servers.translate import outline_of, reached_of, rules_of, spec_of
from openfang.core.errors import NotFound, OpenFangError
from openfang.core.ids import Kind, wire_name
from openfang.core.values import dataclass
from openfang.sources.mcp.abilities import OPERATIONS
from openfang.sources.mcp.health import Status
from openfang.sources.mcp.pace import Pace

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable, Mapping

    from anyio.abc import TaskGroup

    from openfang.app.parts import Parts
    from openfang.app.servers.connecting import Connecting
    from openfang.app.servers.trial import Trial
    from openfang.config.models import Config
    from openfang.config.servers import McpServer
    from openfang.host.machine import Layer
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.source import McpSource
    from openfang.sources.mcp.spec import ServerSpec

_log = logging.getLogger("openfang.mcp")
_SETTLE_SECONDS = 20.0
_LIST_SECONDS = 5.0
# Each is there for three ids. One that was forgotten is known again when it is asked next.


@dataclass(slots=True)
class Servers:
    """Runs one task for each enabled server."""

    parts: Parts
    environ: Mapping[str, str]
    running: dict[str, McpSource] = field(default_factory=dict[str, "McpSource"])
    said: dict[str, deque[str]] = field(default_factory=dict[str, "deque[str]"])
    kept: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    guests: dict[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    layers: dict[str, tuple[Layer, ...]] = field(default_factory=dict[str, "tuple[Layer, ...]"])
    pace: Pace = field(default_factory=Pace)
    _group: TaskGroup | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _connecting: Connecting | None = None

    @property
    def _means(self) -> Connecting:
        if self._connecting is None:
            # The client of MCP is a twentieth of a command's start, and many homes have no server.
            from openfang.app.servers.connecting import Connecting  # noqa: PLC0415 - as above

            self._connecting = Connecting(self)
        return self._connecting

    async def run(self) -> None:
        """Keep every server of the configuration until the node ends, once anybody wants one."""
        await self._wanted.wait()
        async with anyio.create_task_group() as group:
            self._group = group
            self.kept |= await to_thread.run_sync(self._stored)
            self.apply(self.parts.config)
            self._begun.set()
            await anyio.sleep_forever()

    def _stored(self) -> dict[str, str]:
        store = self.parts.secrets
        return {name: store.get(name) for name in store.names()}

    async def keep(self, secrets: Mapping[str, str]) -> None:
        """Store secrets that entries refer to; they are redacted from now on."""
        for name, value in secrets.items():
            await to_thread.run_sync(self.parts.redactor.learn, [value], name)
            await to_thread.run_sync(self.parts.secrets.set, name, value)
        self.kept |= secrets

    async def forget(self, names: Iterable[str]) -> None:
        """Delete secrets that no entry refers to any more."""
        for name in names:
            self.kept.pop(name, None)
            with suppress(NotFound):
                await to_thread.run_sync(self.parts.secrets.delete, name)

    async def sign_out(self, name: str) -> None:
        """Forget the sign-in to a server."""
        await self._means.sign_out(name)

    @property
    def variables(self) -> Mapping[str, str]:
        """What `${NAME}` stands for: a variable of ours, else a secret that is stored."""
        return ChainMap(dict(self.environ), self.kept)

    def want(self) -> None:
        """Begin to connect, in the background."""
        self._wanted.set()

    async def settled(self, *, woken: bool = True, lists: bool = False) -> None:
        """Begin, and wait until it is known of each server whether it can be reached.

        Those that sleep until they are called are left alone unless they are to be `woken`. With
        `lists`, wait a little longer for what they list besides their tools.
        """
        await self._begin_all()
        with anyio.move_on_after(_SETTLE_SECONDS):
            for source in list(self.running.values()):
                if woken or not source.spec.lazy:
                    await source.settled()
        if lists:
            await self._listed()

    async def _begin_all(self) -> None:
        """Begin, and wait until each server offers what is remembered of it."""
        if self._enabled(self.parts.config):
            self.want()
            await self._begun.wait()

    async def _listed(self) -> None:
        with anyio.move_on_after(_LIST_SECONDS):
            for source in list(self.running.values()):
                if source.connected:
                    await source.lists.known.wait()

    def apply(self, config: Config) -> None:
        """Begin what is new, end what is gone, replace what changed; the others go on."""
        if self._group is None:
            return
        wanted = self._enabled(config)
        for name in [name for name in self.running if name not in wanted]:
            self._end(name)
        rules = rules_of(config)
        for server in wanted.values():
            spec, fault = self._spec(server)
            current = self.running.get(server.name)
            if current is None or (current.spec, current.fault) != (spec, fault):
                self._begin(spec, fault, rules)
            else:
                current.judge(rules)

    def _enabled(self, config: Config) -> dict[str, McpServer]:
        configured = {server.name: server for server in config.mcp_servers if server.enabled}
        return {**self.guests, **configured}

    def knows(self, name: str) -> bool:
        """Whether the configuration has a server of this name."""
        return any(server.name == name for server in self.parts.config.mcp_servers)

    def invite(self, server: McpServer) -> None:
        """Connect a server that stands in no file, until it is dismissed."""
        self.guests[server.name] = server
        self.want()
        self.apply(self.parts.config)

    def dismiss(self, name: str) -> None:
        """Let such a server go."""
        self.guests.pop(name, None)
        self.apply(self.parts.config)

    async def wake(self, tool: str) -> None:
        """Connect a server that sleeps and never said what it offers, if this may be its tool."""
        await self._begin_all()
        for source in list(self.running.values()):
            if source.spec.lazy and _unheard_of(source, tool) and _may_offer(source.name, tool):
                await self.reached(source.name)

    async def reached(self, name: str) -> bool:
        """Wait until it is known whether a server can be reached, and say so."""
        self.want()
        await self._begun.wait()
        source = self.find(name)
        with anyio.move_on_after(_SETTLE_SECONDS):
            await source.settled()
        return source.connected

    def _begin(self, spec: ServerSpec, fault: str, rules: Rules) -> None:
        assert self._group is not None  # noqa: S101 - `run` was called
        former = self.running.get(spec.name)
        source = self.running[spec.name] = self._means.source(spec, fault, rules)
        self.parts.sources[Kind.MCP, spec.name] = source
        if former is not None:
            source.inherit(former)
            former.retire()
        else:
            self._means.recall(source)
        self._group.start_soon(source.run)

    def _end(self, name: str) -> None:
        source = self.running.pop(name)
        source.retire()
        self.parts.remove(Kind.MCP, name)
        source.lists.clear()
        self.parts.spoken.forget(name)

    def changed(self, source: McpSource) -> None:
        """Offer what a server offers now."""
        if self.running.get(source.name) is source:
            self.parts.add(Kind.MCP, source)
            total = sum(map(_count, self.running.values()))
            _log.info("%s offers %d tools", source.name, _count(source))
            _log.info("Total MCP tools: %d", total)

    def back(self, source: McpSource) -> None:
        """Let the next call try a server that was begun anew, however often the last one failed."""
        breakers = self.parts.pipeline.guards.breakers
        breakers.revived(f"{Kind.MCP.value}:{source.name}", self.parts.clock.monotonic())

    def find(self, name: str) -> McpSource:
        """Find a server that is enabled."""
        source = self.running.get(name)
        if source is None:
            raise NotFound(f"No MCP server {name} is enabled.", way_out="openfang servers list")
        return source

    async def refresh(self) -> dict[str, str]:
        """Ask all but those asleep for their tools again; say of each why it did not answer."""
        found: dict[str, str] = {}

        async def renew(source: McpSource) -> None:
            found[source.name] = await source.renew()

        async with anyio.create_task_group() as group:
            for source in self.running.values():
                if source.health.status is not Status.SLEEPING:
                    group.start_soon(renew, source)
        return found

    async def trial(self, server: McpServer) -> Trial:
        """Connect to a server once more, to see whether it works; it need not be enabled."""
        self.kept |= await to_thread.run_sync(self._stored)
        return await self._means.trial(server)

    def health(self) -> dict[str, str]:
        """The contract's word for each server."""
        return {name: source.health.word for name, source in sorted(self.running.items())}

    def _spec(self, server: McpServer) -> tuple[ServerSpec, str]:
        """Translate; what depends on the world and is not there is a fault of that server alone."""
        fault = ""
        try:
            reached = reached_of(server, self.variables, self.parts.home.path)
        except OpenFangError as error:
            reached, fault = outline_of(server, self.parts.home.path), _fault(error)
        return spec_of(server, reached), fault


def _fault(error: OpenFangError) -> str:
    return f"{error.message.removesuffix('.')}: {error.way_out}" if error.way_out else error.message


def _count(source: McpSource) -> int:
    return sum(not tool.operation for tool in source.tools())


def _unheard_of(source: McpSource, tool: str) -> bool:
    """Whether it never said that it offers this: of its tools enough is remembered to know."""
    operation = tool.rpartition(":")[2] in OPERATIONS
    return not source.tools() or (operation and not source.version)


def _may_offer(server: str, tool: str) -> bool:
    return tool.startswith((f"{Kind.MCP.value}:{server}:", f"{wire_name('mcp', server)}_"))
