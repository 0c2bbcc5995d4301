"""How MCP servers are connected: confined, signed in, and with their last words at hand."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from anyio import to_thread

from openfang.app.clients import client_known
from openfang.app.confine import Confiner
from openfang.app.servers.sealing import handed_over
from openfang.app.servers.translate import reached_of, spec_of
from openfang.app.servers.trial import Trial, try_out
from openfang.app.servers.vault import StoredVault
from openfang.config.home import user_home
from openfang.core.errors import OpenFangError
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.protocols.mcp.meta import ClientInfo
from openfang.sources.mcp.adapter import as_listed
from openfang.sources.mcp.lists import BELIEVING
from openfang.sources.mcp.oauth.sign_in import SignIns, entry_name
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.source import McpSource, Surroundings, unheard
from openfang.sources.mcp.stdio import StdioTransport as Over
from openfang.sources.mcp.transport import Lost
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from openfang.app.confine import Prepared
    from openfang.app.parts import Parts
    from openfang.config.servers import McpServer
    from openfang.host.machine import Layer
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.pace import Pace
    from openfang.sources.mcp.spec import ServerSpec
    from openfang.sources.mcp.transport import Peer

_log = logging.getLogger("openfang.mcp")
_LAST_WORDS = 200


class Keeping(Protocol):
    """Who keeps servers: what they said last, what holds them, and what becomes of changes."""

    parts: Parts
    environ: Mapping[str, str]
    pace: Pace
    said: dict[str, deque[str]]
    layers: dict[str, tuple[Layer, ...]]

    @property
    def variables(self) -> Mapping[str, str]:
        """What `${NAME}` stands for."""
        ...

    def changed(self, source: McpSource) -> None:
        """Offer what a server offers now."""
        ...

    def back(self, source: McpSource) -> None:
        """Hear that a server is connected again."""
        ...


@dataclass(slots=True)
class Connecting:
    """Makes the sources of servers, and connects them."""

    servers: Keeping
    _sign_ins: SignIns = field(init=False)
    _reach: Reach = field(init=False)
    _confiner: Confiner = field(init=False)

    def __post_init__(self) -> None:
        parts = self.servers.parts
        self._sign_ins = SignIns(vault=StoredVault(parts.secrets, parts.redactor.learn))
        self._reach = Reach(
            client=ClientInfo(name="openfang", version=__version__),
            complained=self._complained,
            sign_ins=self._sign_ins,
        )
        self._confiner = Confiner(parts.home.path, user_home(self.servers.environ))

    def source(self, spec: ServerSpec, fault: str, rules: Rules) -> McpSource:
        """Make the source of a server."""
        servers, parts = self.servers, self.servers.parts
        around = Surroundings(
            connect=self._connect,
            check=parts.pipeline.stamper.check,
            changed=servers.changed,
            rules=rules,
            back=servers.back,
            clean=parts.redactor.tree,
            invoke=parts.invoke,
            client_known=partial(client_known, parts),
            news=parts.news.publish,
            foresee=parts.registry.foresee,
            judge=parts.spoken,
            held=lambda tool: tool in parts.registry.snapshot.held,
            pace=servers.pace,
            hops=parts.hops,
        )
        if spec.kind is not Kind.MCP:  # nobody is passed on what it says besides its tools
            around = replace(around, judge=BELIEVING, news=unheard)
        return McpSource(spec, around, fault=fault)

    def recall(self, source: McpSource) -> None:
        """Offer what it did before a restart: who calls such a tool waits for its server."""
        known = self.servers.parts.registry.remembered(f"{source.spec.kind.value}:{source.name}:")
        source.recall([as_listed(source.spec, definition) for definition in known])

    async def trial(self, server: McpServer) -> Trial:
        """Connect to a server once more, and say what came of it."""
        if server.singleton and server.enabled and self.servers.parts.database.dialect != "sqlite":
            return Trial(
                problem=f"{server.name} runs once in the cluster: to try it would be a second.",
                way_out=f"openfang servers show {server.name}, or disable it first",
            )
        try:
            reached = reached_of(server, self.servers.variables, self.servers.parts.home.path)
            async with AsyncExitStack() as stack:
                ready = await self._confiner.prepared(spec_of(server, reached), stack)
                return await try_out(ready.spec, self._sign_ins)
        except OpenFangError as error:
            return Trial(problem=error.message, way_out=error.way_out)

    async def sign_out(self, name: str) -> None:
        """Forget the sign-in to a server."""
        await self._sign_ins.vault.remove(entry_name(name))

    @asynccontextmanager
    async def _connect(self, spec: ServerSpec, peer: Peer) -> AsyncGenerator[Connection]:
        learn, secrets = self.servers.parts.redactor.learn, handed_over(spec.reached)
        await to_thread.run_sync(learn, secrets, f"{spec.kind.value}:{spec.name}")
        async with self._way(spec, peer) as connection:
            yield connection

    def _way(self, spec: ServerSpec, peer: Peer) -> AbstractAsyncContextManager[Connection]:
        """Say where it is connected: here, unless it runs once and there may be other nodes."""
        parts = self.servers.parts
        if not spec.singleton or parts.database.dialect == "sqlite":
            return self._here(spec, peer, _unchanged)
        if parts.once is None:
            raise Lost(f"{spec.name} runs once in the cluster, on a daemon: openfang start")
        return parts.once.connect(spec, peer, self._here)

    @asynccontextmanager
    async def _here(
        self, spec: ServerSpec, peer: Peer, change: Callable[[ServerSpec], ServerSpec]
    ) -> AsyncGenerator[Connection]:
        layers = self.servers.layers
        async with AsyncExitStack() as stack:
            ready = await self._confiner.prepared(spec, stack)
            connection = await stack.enter_async_context(self._reach(change(ready.spec), peer))
            held = layers[spec.name] = await _layers(ready, connection)
            try:
                yield connection
            finally:
                if layers.get(spec.name) is held:  # else a newer connection's
                    del layers[spec.name]

    def _complained(self, server: str, line: str) -> None:
        """Keep what a server writes for people: in the log, and its last words at hand."""
        words = self.servers.said.setdefault(server, deque(maxlen=_LAST_WORDS))
        words.append(line)
        _log.info("%s: %s", server, line)


def _unchanged(spec: ServerSpec) -> ServerSpec:
    return spec


async def _layers(ready: Prepared, connection: Connection) -> tuple[Layer, ...]:
    """Say what holds the child at the other end, if it is one."""
    child = connection.transport.child if isinstance(connection.transport, Over) else None
    if child is None:
        return ()
    await child.joined.wait()
    return await to_thread.run_sync(ready.layers, child.process.pid)
