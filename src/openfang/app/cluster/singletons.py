"""Servers that run once in a cluster: on the node that has the lease, and everywhere through it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast
from urllib.parse import quote

import anyio

from openfang.app.cluster.leases import Leases
from openfang.app.cluster.lender import NodeLender
from openfang.app.cluster.signing import PURPOSE, Signing
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.edges.cluster.edge import ClusterEdge
from openfang.host.fuse import Fuse
from openfang.protocols.mcp.meta import ClientInfo
from openfang.sources.mcp.health import Status
from openfang.sources.mcp.spec import Http, ServerSpec, Stdio
from openfang.sources.mcp.transport import Lost, Unmade
from openfang.storage.postgres.leases import LeaseTable
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection
    from contextlib import AbstractAsyncContextManager

    from openfang.app.cluster.leases import Holder
    from openfang.app.cluster.members import Members
    from openfang.app.parts import Parts
    from openfang.host.http import HttpClient, Request, Streaming
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.lending import Lending
    from openfang.sources.mcp.source import McpSource
    from openfang.sources.mcp.transport import Peer
    from openfang.storage.postgres.address import Address
    from openfang.storage.postgres.writer import PostgresWriter

WAITED: Final = 20.0
"""So many seconds a call waits for a node that has the server: longer than it takes to pass on."""
_PAUSE: Final = 0.5
_CONNECTIONS: Final = 64
# The node itself has stopped by then, if it runs; the lease passes on after two seconds more.
_FUSED: Final = 2.0


class Here(Protocol):
    """Connects a server on this node; `change` says how it is started."""

    def __call__(
        self, spec: ServerSpec, peer: Peer, change: Callable[[ServerSpec], ServerSpec]
    ) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection."""
        ...


@dataclass(slots=True)
class _Running:
    """A server that runs here."""

    connection: Connection | None = None
    pid: int = 0
    ended: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Takers:
    """The members as far as leases care."""

    members: Members

    @property
    def me(self) -> str:
        return self.members.me

    @property
    def draining(self) -> bool:
        return self.members.draining

    def takers(self) -> Collection[str]:
        return [name for name, one in self.members.alive().items() if not one.draining]


@dataclass(slots=True)
class Singletons:
    """Those of one node."""

    parts: Parts
    members: Members
    address: Address
    leases: Leases = field(init=False)
    fuse: Fuse = field(init=False, default_factory=Fuse)
    _table: LeaseTable = field(init=False)
    _signing: Signing = field(init=False)
    _running: dict[str, _Running] = field(init=False, default_factory=dict[str, _Running])

    def __post_init__(self) -> None:
        parts, members = self.parts, self.members
        self._table = LeaseTable(self.address, members.me)
        self.leases = Leases(table=self._table, fellows=_Takers(members), lessee=self)
        key, here = parts.master.derive(PURPOSE), parts.broker.process.id
        self._signing = Signing(key, me=members.me, here=here, clock=parts.clock)

    @property
    def edge(self) -> ClusterEdge:
        """What other nodes ask of this one."""
        return ClusterEdge(NodeLender(self))

    @property
    def signing(self) -> Signing:
        """What this node signs with, as the process that it is now."""
        self._signing.here = self.parts.broker.process.id
        return self._signing

    async def run(self) -> None:
        """Take part until the node ends."""
        self.parts.database.on("leases", lambda _: self.leases.nudge())
        try:
            await self.leases.run()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.fuse.close)
                await self._table.aclose()

    def holder(self, server: str) -> str:
        """Name the node that a server runs on; nobody, if that is not known."""
        found = self.leases.holder(_lease(server))
        return found.node if found else ""

    def lending(self, server: str, term: int) -> Lending | None:
        """Give what is lent of a server, if this node has it under this very term."""
        held, source = self.leases.held(_lease(server)), self._source(server)
        if held is None or held.term != term or source is None:
            return None
        return source.lending

    # What leases ask

    def wanted(self) -> Collection[str]:
        """Name the servers that could run here."""
        servers = self.parts.servers
        return [
            _lease(name)
            for name, source in (servers.running.items() if servers else ())
            if source.spec.singleton and not source.fault
        ]

    def moved(self, name: str) -> None:
        """Connect a server anew, wherever it is now."""
        source = self._source(_server(name))
        if source is not None and source.health.status is not Status.SLEEPING:
            source.restart()

    async def stop(self, name: str) -> None:
        """End a server that runs here, whoever uses it, and return when it is over."""
        running = self._running.get(name)
        if running is None:
            return
        if running.connection is not None:
            running.connection.transport.lose("This node gives the server up")
        self.moved(name)
        await running.ended.wait()

    def renewed(self, name: str, ends: float) -> None:
        """Let the fuse burn anew: this process may be stopped, and its child would live on."""
        running = self._running.get(name)
        if running is not None and running.pid:
            self.fuse.watch(running.pid, ends + _FUSED)

    def _source(self, server: str) -> McpSource | None:
        return self.parts.servers.running.get(server) if self.parts.servers else None

    # How such a server is connected

    @asynccontextmanager
    async def connect(self, spec: ServerSpec, peer: Peer, here: Here) -> AsyncGenerator[Connection]:
        """Hold a connection to a server: to our own, or through the node that has it."""
        async with AsyncExitStack() as stack:
            yield await self._reached(stack, spec, peer, here)

    async def _reached(
        self, stack: AsyncExitStack, spec: ServerSpec, peer: Peer, here: Here
    ) -> Connection:
        """Find the node that has it; one that does not answer may lose it to another."""
        ends, why = anyio.current_time() + WAITED, "no node has it"
        while anyio.current_time() < ends:
            holder = self.leases.holder(_lease(spec.name))
            try:
                if holder is not None:
                    way = self._way(spec, peer, here, holder)
                    return await stack.enter_async_context(way)
            except Unmade as unmade:
                why = str(unmade)
            except Lost as lost:
                if self.holder(spec.name) == self.members.me:
                    raise
                why = str(lost)  # a node may die while it is greeted
            with anyio.move_on_after(_PAUSE):
                await self.leases.changed()
        raise Lost(f"it runs once in the cluster, and for {WAITED:g} s it was nowhere: {why}")

    def _way(
        self, spec: ServerSpec, peer: Peer, here: Here, holder: Holder
    ) -> AbstractAsyncContextManager[Connection]:
        if holder.node == self.members.me:
            return self._own(spec, peer, here, holder.term)
        return self._borrowed(spec, peer, holder)

    @asynccontextmanager
    async def _own(
        self, spec: ServerSpec, peer: Peer, here: Here, term: int
    ) -> AsyncGenerator[Connection]:
        """Run it here, as long as the lease is ours: no request is made under one that is not."""
        name = _lease(spec.name)
        before = self._running.get(name)
        if before is not None:
            await before.ended.wait()
        running = self._running[name] = _Running()
        try:
            async with here(spec, peer, partial(self._fused, name, running)) as connection:
                connection.transport.fence(partial(self._check, name, term))
                running.connection = connection
                yield connection
        finally:
            if running.pid:
                self.fuse.spare(running.pid)
            del self._running[name]
            running.ended.set()

    def _check(self, name: str, term: int) -> None:
        held = self.leases.held(name)
        if held is None or held.term != term:
            raise Unmade(f"{self.members.me} no longer has it")

    def _fused(self, name: str, running: _Running, spec: ServerSpec) -> ServerSpec:
        """Have the child ended in time even if we cannot."""
        if not isinstance(spec.reached, Stdio) or spec.reached.launch is None:
            return spec
        launch = spec.reached.launch
        join = launch.join

        def joined(pid: int) -> None:
            running.pid = pid
            held = self.leases.held(name)
            self.fuse.watch(pid, held.ends + _FUSED if held else 0.0)
            if join is not None:
                join(pid)

        reached = replace(spec.reached, launch=replace(launch, join=joined))
        return replace(spec, reached=reached)

    @asynccontextmanager
    async def _borrowed(
        self, spec: ServerSpec, peer: Peer, holder: Holder
    ) -> AsyncGenerator[Connection]:
        from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s
        from openfang.sources.mcp.borrowed import open_borrowed  # noqa: PLC0415 - as above

        member = self.members.alive().get(holder.node)
        if member is None:
            raise Unmade(f"{holder.node}, which has it, is not alive")
        query = f"server={quote(spec.name, safe='')}&term={holder.term}"
        at = Http(url=f"{member.address}/api/cluster/calls?{query}", allow_private=True)
        async with (
            HttpClient(connections=_CONNECTIONS) as http,
            open_borrowed(
                spec,
                peer,
                http=_Signed(http, self, member.process),
                at=at,
                client=ClientInfo(name="openfang", version=__version__),
                moved=partial(self.moved, _lease(spec.name)),
            ) as connection,
        ):
            yield connection


@dataclass(frozen=True, slots=True)
class _Signed:
    """An HTTP client that signs what it sends, for one process of another node."""

    http: HttpClient
    once: Singletons
    to: str

    def stream(self, request: Request) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer."""
        target = "/" + request.url.split("/", 3)[3]
        body = request.body or b""
        header = self.once.signing.sign(to=self.to, method=request.method, target=target, body=body)
        headers = {**request.headers, "OpenFang-Member": header}
        return self.http.stream(replace(request, headers=headers, follow=False))


def share(parts: Parts, members: Members) -> Singletons:
    """Put together what this node has that only one may have."""
    once = Singletons(parts, members, cast("PostgresWriter", parts.writer).address)
    members.on_drain(once.leases.nudge)
    members.on_cut(once.leases.drop)
    return once


def _lease(server: str) -> str:
    return f"{Kind.MCP.value}:{server}"


def _server(lease: str) -> str:
    return lease.partition(":")[2]
