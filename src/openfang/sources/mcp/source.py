"""A server as a source of tools: one task owns its connection, and brings it back when lost."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from openfang.core.errors import CallTimedOut, OpenFangError, SourceFailed
from openfang.core.results import error_result
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.sources.mcp import health
from openfang.sources.mcp.adapter import result_of, tools_of
from openfang.sources.mcp.health import Health, Status
from openfang.sources.mcp.transport import Lost, owned_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from openfang.core.calls import Admitted
    from openfang.core.ports import Clock
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.spec import ServerSpec
    from openfang.sources.mcp.transport import Peer

_log = logging.getLogger("openfang.mcp")
_CONNECT_SECONDS = 120.0  # a package that must be fetched first is no failure
_REFRESH_SECONDS = 300.0
_PROBE_SECONDS = 60.0
_PROBE_LIMIT = 10.0
_BREATH_SECONDS = 1.0
_RETIRE_SECONDS = 60.0
_LIST_CHANGED = "notifications/tools/list_changed"
_MESSAGE = "notifications/message"


class Connect(Protocol):
    """Makes a connection to a server, and ends it."""

    def __call__(self, spec: ServerSpec, peer: Peer) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection to this server."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every source of this kind is handed."""

    connect: Connect
    check: Callable[[Admitted], None]
    changed: Callable[[McpSource], None]
    clock: Clock
    rules: Rules


class McpSource:
    """One server. `run` owns the connection; everybody else only asks."""

    def __init__(self, spec: ServerSpec, around: Surroundings, *, fault: str = "") -> None:
        self.spec = spec
        self.health = Health()
        self.version = ""
        self.server_info: Mapping[str, Any] = {}
        self.rejected: Mapping[str, str] = {}
        self._around = around
        self._fault = fault
        self._tools: list[Tool] = []
        self._connection: Connection | None = None
        self._settled = anyio.Event()
        self._nudge = anyio.Event()
        self._wanted = anyio.Event()
        self._renewed = anyio.Event()
        self._stale = False
        self._again = False
        self._leaving = False
        self._running = 0

    @property
    def name(self) -> str:
        """The second part of its tools' ids."""
        return self.spec.name

    @property
    def connected(self) -> bool:
        """Whether a call would reach the server now."""
        return self._connection is not None

    def tools(self) -> Sequence[Tool]:
        """List what the server offered when it was last asked."""
        return self._tools

    # What others ask of it

    async def execute(self, admitted: Admitted) -> Result:
        """Make the call; what the server itself refuses is an answer, not a failure."""
        self._around.check(admitted)
        connection = await self._ready()
        self._running += 1
        try:
            return result_of(await self._call(connection, admitted))
        except RpcError as error:
            return error_result(f"{self.name} answered with error {error.code}: {error.message}")
        except Lost as lost:
            raise self._unreachable(str(lost)) from lost
        finally:
            self._running -= 1
            if self._leaving:
                self._nudge.set()

    async def _call(self, connection: Connection, admitted: Admitted) -> Mapping[str, Any]:
        """Wait for the answer for as long as the server lets us know that it works on it."""
        seconds, chain = self.spec.timeout, admitted.call.chain
        meta = {"traceparent": chain.traceparent}
        if chain.starry_id is not None:
            meta["X-OpenStarry-Trace-ID"] = chain.starry_id
        with anyio.move_on_after(seconds) as patience:

            def progressed(_method: str, _params: Mapping[str, Any]) -> None:
                patience.deadline = anyio.current_time() + seconds

            return await connection.call(
                admitted.tool.name, admitted.call.arguments, meta=meta, told=progressed
            )
        _log.warning("Request timed out: tools/call (id=%s)", admitted.call.id)
        raise CallTimedOut(
            f"{self.name} did not answer within {seconds:g} s.",
            way_out=f"raise timeout_secs of the server {self.name}",
        )

    async def _ready(self) -> Connection:
        """The connection; one that is being made is waited for, one that failed is not."""
        self._wanted.set()
        while self._connection is None:
            if self._settled.is_set():
                raise self._unreachable(self.health.error)
            await self._settled.wait()
        return self._connection

    def _unreachable(self, why: str) -> SourceFailed:
        return SourceFailed(
            f"The MCP server {self.name} cannot be reached: {why}",
            way_out=f"openfang servers show {self.name}",
        )

    async def settled(self) -> None:
        """Wait until it is known whether the server can be reached."""
        self._wanted.set()
        await self._settled.wait()

    def refresh(self) -> None:
        """Ask it for its tools again, soon."""
        self._stale = True
        self._nudge.set()

    async def renew(self) -> bool:
        """Ask it for its tools again, and say whether it answered."""
        if self._connection is None:
            return False
        renewed = self._renewed
        self.refresh()
        with anyio.move_on_after(self.spec.timeout):
            await renewed.wait()
        return renewed.is_set() and self.connected and not self.health.failures

    def restart(self) -> None:
        """Connect anew, at once; who calls meanwhile waits for it."""
        self._again = True
        self._connection = None
        self.health = Health()
        if self._settled.is_set():
            self._settled = anyio.Event()
        self._wanted.set()
        self._nudge.set()

    def retire(self) -> None:
        """Take no more calls; those that run may end."""
        self._leaving = True
        self._nudge.set()

    # What the server asks or tells

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own."""
        del params
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not served here")

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Hear what belongs to no call."""
        if method == _LIST_CHANGED:
            self.refresh()
        elif method == _MESSAGE:
            _log.info("%s says: %.500s", self.name, params.get("data"))

    # The owner's task

    async def run(self) -> None:
        """Keep the server connected until retired."""
        while not self._leaving:
            await self._until_wanted()
            try:
                await self._live()
            except (Lost, RpcError, OpenFangError, OSError, TimeoutError) as error:
                self._failed(str(error) or f"no connection in {_CONNECT_SECONDS:g} s")
            except Exception as error:  # noqa: BLE001 - whatever it does, it harms nobody but itself
                _log.exception("MCP server %s broke its connection", self.name)
                self._failed(f"{type(error).__name__}: {error}")
            finally:
                self._connection = None
            if not self._leaving:
                await self._pause()
        self._settled.set()

    async def _until_wanted(self) -> None:
        if self.spec.lazy and not self._wanted.is_set():
            self.health = Health(status=Status.SLEEPING)
            self._nudge = anyio.Event()
            await self._first_of(self._wanted, self._nudge)
            self.health = Health()

    async def _live(self) -> None:
        if self._fault:
            raise Lost(self._fault)
        async with AsyncExitStack() as stack:
            # Not a scope of anyio's: what is opened inside it outlives it.
            async with asyncio.timeout(_CONNECT_SECONDS):
                connecting = self._around.connect(self.spec, self)
                connection = await stack.enter_async_context(connecting)
                await self._list(connection)
            self._connection = connection
            self.version, self.server_info = connection.version, connection.server_info
            self.health = health.answered(self.health)
            self._settled.set()
            _log.info("Connected to MCP server: %s", self.name)
            async with owned_tasks() as watching:
                watching.start_soon(self._watch, connection)
                watching.start_soon(self._listen, connection)
                await self._serve(connection)

    async def _watch(self, connection: Connection) -> None:
        await connection.lost.wait()
        self._nudge.set()

    async def _listen(self, connection: Connection) -> None:
        """Hear of changes; a server that does not tell of them is asked now and then anyway."""
        with suppress(RpcError, Lost):
            await connection.listen()

    async def _serve(self, connection: Connection) -> None:
        """Refresh and probe now and then, until the connection ends or should."""
        refreshed = probed = anyio.current_time()
        while not connection.lost.is_set() and not self._again:
            if self._leaving and (await self._left() or self._running == 0):
                return
            now = anyio.current_time()
            if self._stale or now - refreshed >= _REFRESH_SECONDS:
                refreshed = probed = now
                await self._renew(connection)
            elif now - probed >= _PROBE_SECONDS:
                probed = now
                await self._probe(connection)
            self._nudge = anyio.Event()
            if not (connection.lost.is_set() or self._again or self._leaving):
                with anyio.move_on_after(_BREATH_SECONDS if self._stale else _PROBE_SECONDS):
                    await self._nudge.wait()
        if connection.lost.is_set():
            raise Lost(connection.reason)

    async def _left(self) -> bool:
        """Let calls end that were begun; whoever takes too long is not waited for."""
        with anyio.move_on_after(_RETIRE_SECONDS):
            while self._running:
                self._nudge = anyio.Event()
                await self._nudge.wait()
        return True

    async def _renew(self, connection: Connection) -> None:
        """Ask for the tools again; when that fails, what is known stays."""
        self._stale = False
        try:
            with anyio.fail_after(self.spec.timeout):
                await self._list(connection)
        except (RpcError, TimeoutError) as error:
            self.health = health.failed(self.health, f"its tools: {error}", connected=True)
        else:
            self.health = health.answered(self.health)
        finally:
            self._renewed.set()
            self._renewed = anyio.Event()

    async def _probe(self, connection: Connection) -> None:
        began = anyio.current_time()
        try:
            with anyio.fail_after(_PROBE_LIMIT):
                await connection.ping()
        except (RpcError, TimeoutError) as error:
            why = str(error) or f"no answer to a probe in {_PROBE_LIMIT:g} s"
            self.health = health.failed(self.health, why, connected=True)
            return
        self.health = health.answered(self.health, anyio.current_time() - began)

    async def _list(self, connection: Connection) -> None:
        rejected: dict[str, str] = {}
        tools = tools_of(self.spec, await connection.tools(), self._around.rules, rejected)
        self.rejected = {**connection.rejected, **rejected}
        if tools != self._tools:
            self._tools = tools
            self._around.changed(self)

    def _failed(self, why: str) -> None:
        self.health = health.failed(self.health, why, connected=False)
        self._settled.set()
        _log.warning("MCP server %s is not connected: %s", self.name, why)

    async def _pause(self) -> None:
        """Wait before the next attempt, unless somebody wants it now."""
        self._nudge = anyio.Event()
        if not self._again:
            wait = health.wait_before(max(1, self.health.failures), _CHANCE)
            with anyio.move_on_after(wait):
                await self._nudge.wait()
        self._again = False

    async def _first_of(self, *events: anyio.Event) -> None:
        async with anyio.create_task_group() as group:
            for event in events:
                group.start_soon(self._then_end, event, group.cancel_scope)

    @staticmethod
    async def _then_end(event: anyio.Event, scope: anyio.CancelScope) -> None:
        await event.wait()
        scope.cancel()


_CHANCE = random.Random()  # noqa: S311 - it spreads load, it keeps no secret
