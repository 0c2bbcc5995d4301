"""The MCP servers of a node: from configuration to running sources, and from one to the next."""

from __future__ import annotations

import logging
from collections import ChainMap, deque
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from openfang.app.trial import Trial, try_out
from openfang.config.home import user_home
from openfang.config.servers import HttpTransport, StdioTransport
from openfang.core.errors import NotFound, OpenFangError
from openfang.core.ids import Kind
from openfang.core.tools import Trust
from openfang.protocols.mcp.meta import ClientInfo
from openfang.registry.classify import Declared
from openfang.registry.rules import DEFAULT_RULES
from openfang.safety.environment import child_environment, expand
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.source import McpSource, Surroundings
from openfang.sources.mcp.spec import Http, Override, ServerSpec, Stdio
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from anyio.abc import TaskGroup

    from openfang.app.build import Parts
    from openfang.app.confine import Confiner
    from openfang.config.models import Config
    from openfang.config.servers import McpServer, ToolOverride
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.transport import Peer

_log = logging.getLogger("openfang.mcp")
_LAST_WORDS = 200
_SETTLE_SECONDS = 20.0
_RUNNERS = frozenset({"npx", "uvx", "bunx", "pipx"})


@dataclass(slots=True)
class Servers:
    """Runs one task for each enabled server."""

    parts: Parts
    environ: Mapping[str, str]
    running: dict[str, McpSource] = field(default_factory=dict[str, McpSource])
    said: dict[str, deque[str]] = field(default_factory=dict[str, "deque[str]"])
    kept: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    guests: dict[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    _group: TaskGroup | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _reach: Reach = field(init=False)
    _confiner: Confiner | None = None

    def __post_init__(self) -> None:
        client = ClientInfo(name="openfang", version=__version__)
        self._reach = Reach(client=client, capabilities={}, complained=self._complained)

    @asynccontextmanager
    async def _connect(self, spec: ServerSpec, peer: Peer) -> AsyncGenerator[Connection]:
        async with AsyncExitStack() as stack:
            ready = await self._confined(spec, stack)
            yield await stack.enter_async_context(self._reach(ready, peer))

    async def _confined(self, spec: ServerSpec, stack: AsyncExitStack) -> ServerSpec:
        from openfang.app.confine import Confiner  # noqa: PLC0415 - most commands start no server

        if self._confiner is None:
            self._confiner = Confiner(self.parts.home.path, user_home(self.environ))
        return await self._confiner.prepared(spec, stack)

    def _complained(self, server: str, line: str) -> None:
        """Keep what a server writes for people: in the log, and its last words at hand."""
        words = self.said.setdefault(server, deque(maxlen=_LAST_WORDS))
        words.append(line)
        _log.info("%s: %s", server, line)

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
            await to_thread.run_sync(self.parts.secrets.set, name, value)
        self.kept |= secrets
        self.parts.redactor.learn(secrets.values())

    async def forget(self, names: Iterable[str]) -> None:
        """Delete secrets that no entry refers to any more."""
        for name in names:
            self.kept.pop(name, None)
            with suppress(NotFound):
                await to_thread.run_sync(self.parts.secrets.delete, name)

    @property
    def variables(self) -> Mapping[str, str]:
        """What `${NAME}` stands for: a variable of ours, else a secret that is stored."""
        return ChainMap(dict(self.environ), self.kept)

    def want(self) -> None:
        """Begin to connect, in the background."""
        self._wanted.set()

    async def settled(self, *, woken: bool = True) -> None:
        """Begin, and wait until it is known of each server whether it can be reached.

        Those that sleep until they are called are left alone unless they are to be `woken`.
        """
        if not self._enabled(self.parts.config):
            return
        self.want()
        await self._begun.wait()
        with anyio.move_on_after(_SETTLE_SECONDS):
            for source in list(self.running.values()):
                if woken or not source.spec.lazy:
                    await source.settled()

    def apply(self, config: Config) -> None:
        """Begin what is new, end what is gone, replace what changed; the others go on."""
        if self._group is None:
            return
        wanted = self._enabled(config)
        for name in [name for name in self.running if name not in wanted]:
            self._end(name)
        rules = _rules(config)
        for server in wanted.values():
            spec, fault = self._spec(server)
            current = self.running.get(server.name)
            if current is None or current.spec != spec:
                self._begin(spec, fault, rules)

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
        around = Surroundings(
            connect=self._connect,
            check=self.parts.pipeline.stamper.check,
            changed=self._changed,
            clock=self.parts.clock,
            rules=rules,
        )
        source = self.running[spec.name] = McpSource(spec, around, fault=fault)
        if former is not None:
            former.retire()
        self.parts.sources[Kind.MCP, spec.name] = source
        self._group.start_soon(source.run)

    def _end(self, name: str) -> None:
        self.running.pop(name).retire()
        self.parts.remove(Kind.MCP, name)

    def _changed(self, source: McpSource) -> None:
        if self.running.get(source.name) is source:
            self.parts.add(Kind.MCP, source)
            total = sum(len(one.tools()) for one in self.running.values())
            _log.info("%s offers %d tools", source.name, len(source.tools()))
            _log.info("Total MCP tools: %d", total)

    def find(self, name: str) -> McpSource:
        """Find a server that is enabled."""
        source = self.running.get(name)
        if source is None:
            raise NotFound(f"No MCP server {name} is enabled.", way_out="openfang servers list")
        return source

    async def refresh(self) -> frozenset[str]:
        """Ask every connected server for its tools again; say which ones answered."""
        answered: set[str] = set()

        async def renew(source: McpSource) -> None:
            if await source.renew():
                answered.add(source.name)

        async with anyio.create_task_group() as group:
            for source in self.running.values():
                group.start_soon(renew, source)
        return frozenset(answered)

    async def trial(self, server: McpServer) -> Trial:
        """Connect to a server once more, to see whether it works; it need not be enabled."""
        self.kept |= await to_thread.run_sync(self._stored)
        try:
            reached = self._reached(server)
        except OpenFangError as error:
            return Trial(problem=error.message, way_out=error.way_out)
        try:
            async with AsyncExitStack() as stack:
                ready = await self._confined(self._spec_of(server, reached), stack)
                return await try_out(ready)
        except OpenFangError as error:
            return Trial(problem=error.message, way_out=error.way_out)

    def health(self) -> dict[str, str]:
        """The contract's word for each server."""
        return {name: source.health.word for name, source in sorted(self.running.items())}

    def _spec(self, server: McpServer) -> tuple[ServerSpec, str]:
        """Translate; what depends on the world and is not there is a fault of that server alone."""
        fault = ""
        try:
            reached = self._reached(server)
        except OpenFangError as error:
            reached, fault = Http(url="http://unreachable.invalid"), error.message
        return self._spec_of(server, reached), fault

    @staticmethod
    def _spec_of(server: McpServer, reached: Stdio | Http) -> ServerSpec:
        return ServerSpec(
            name=server.name,
            reached=reached,
            timeout=server.timeout_secs,
            trust=trust_of(server),
            risk=server.risk,
            allow_tools=server.allow_tools,
            denied_tags=frozenset(server.deny_side_effect_tags),
            overrides={name: _override(stated) for name, stated in server.tools.items()},
            lazy=server.lazy,
            at_once=server.max_concurrency,
        )

    def _reached(self, server: McpServer) -> Stdio | Http:
        match server.transport:
            case StdioTransport() as stdio:
                return self._stdio(server, stdio)
            case HttpTransport() as http:
                variables = self.variables
                headers = {
                    name: expand(value.get_secret_value(), variables)
                    for name, value in http.headers.items()
                }
                return Http(url=http.url, headers=headers, allow_private=server.allow_private)

    def _stdio(self, server: McpServer, stdio: StdioTransport) -> Stdio:
        folder = self.parts.home.path / "servers" / server.name
        home, tmp = folder / "home", folder / "tmp"
        environment = _environment(server, self.variables, str(home), str(tmp))
        return Stdio(
            argv=(stdio.command, *stdio.args),
            cwd=folder,
            environment=environment,
            sandbox=server.sandbox,
            network=server.network,
            allow_private=server.allow_private,
            read=tuple(map(Path, server.fs_read)),
            write=tuple(map(Path, server.fs_write)),
        )


def _environment(
    server: McpServer, environ: Mapping[str, str], home: str, tmp: str
) -> dict[str, str]:
    """`PATH`, private folders and what is listed: names to pass on, or a table of values."""
    env = server.env
    if isinstance(env, tuple):
        return child_environment(environ, names=env, home=home, tmp=tmp)
    values = {name: value.get_secret_value() for name, value in env.items()}
    return child_environment(environ, values=values, home=home, tmp=tmp)


def trust_of(server: McpServer) -> Trust:
    """Low over the network and for packages that may change under our feet, unless stated."""
    if server.trust is not None:
        return Trust(server.trust)
    return Trust.LOW if _may_change(server) else Trust.MEDIUM


def _may_change(server: McpServer) -> bool:
    stdio = server.transport
    if not isinstance(stdio, StdioTransport):
        return True
    if stdio.command.rpartition("/")[2] not in _RUNNERS:
        return False
    package = next((word for word in stdio.args if not word.startswith("-")), "")
    return not _pinned(package)


def _pinned(package: str) -> bool:
    """Whether `name@1.2.3` or `name==1.2.3` names one version; `@scope/name` alone does not."""
    version = package.rpartition("==")[2] if "==" in package else package[1:].rpartition("@")[2]
    return ("==" in package or "@" in package[1:]) and version[:1].isdigit()


def _override(stated: ToolOverride) -> Override:
    declared = Declared(
        risk=stated.risk,
        tags=None if stated.tags is None else frozenset(stated.tags),
        effect=stated.effect,
        targets=stated.targets,
        polls=stated.polls,
        requires_admin_token=stated.requires_admin_token,
    )
    enabled = True if stated.enabled is None else stated.enabled
    return Override(declared=declared, enabled=enabled, timeout=stated.timeout_secs)


def _rules(config: Config) -> Rules:
    words = config.classify
    return DEFAULT_RULES.extended(
        critical=words.critical,
        high=words.high,
        medium=words.medium,
        low=words.low,
        tags=words.tags,
    )
