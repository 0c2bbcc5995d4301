"""The task that owns a server's connection: it makes it, looks after it, and makes it again."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.protocols.mcp.errors import RpcError
from openfang.sources.mcp import health
from openfang.sources.mcp.abilities import info_in_short
from openfang.sources.mcp.events import first_of
from openfang.sources.mcp.health import Health, Status, in_short
from openfang.sources.mcp.transport import AuthNeeded, Lost, owned_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from openfang.sources.mcp.abilities import Abilities
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.pace import Pace
    from openfang.sources.mcp.spec import ServerSpec
    from openfang.sources.mcp.transport import Peer

_log = logging.getLogger("openfang.mcp")
_ENDED = "it is not kept any more"


class Connect(Protocol):
    """Makes a connection to a server, and ends it."""

    def __call__(self, spec: ServerSpec, peer: Peer) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection to this server."""
        ...


class Keeper(ABC):
    """Keeps one server connected. `run` owns the connection; everybody else only asks."""

    def __init__(self, spec: ServerSpec, connect: Connect, pace: Pace, fault: str) -> None:
        self.spec = spec
        self.health = Health()
        self.version = ""
        self.server_info: Mapping[str, Any] = {}
        self.capabilities: Abilities = {}
        self._connect = connect
        self._pace = pace
        self._fault = fault
        self._connection: Connection | None = None
        self._settled = anyio.Event()
        self._nudge = anyio.Event()
        self._wanted = anyio.Event()
        self._renewed = anyio.Event()
        self._connecting: asyncio.Timeout | None = None
        self._stale = self._urgent = self._again = self._leaving = self._known = False
        self._running = 0
        self._row = 0
        self._unanswered = 0
        self._since = self._heard = self._listed = self._cost = 0.0

    # What a source of tools adds

    @abstractmethod
    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own."""

    @abstractmethod
    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Hear what belongs to no call."""

    @abstractmethod
    async def _list(self, connection: Connection) -> None:
        """Learn what the server offers."""

    @abstractmethod
    def _arrived(self, connection: Connection) -> None:
        """Hear that it is connected."""

    @abstractmethod
    async def _attend(self, connection: Connection) -> None:
        """Do what has to be done beside, for as long as it is."""

    # What others ask of it

    @property
    def name(self) -> str:
        """The second part of its tools' ids."""
        return self.spec.name

    @property
    def connected(self) -> bool:
        """Whether a call would reach the server now."""
        return self._connection is not None

    def _count_in(self) -> None:
        """Count a call in: the connection is not given up under it."""
        self._running += 1
        if self._connection is None:
            self._wanted.set()

    def _count_out(self) -> None:
        """Count it out again."""
        self._running -= 1
        if self._leaving:
            self._nudge.set()

    async def _ready(self) -> Connection:
        """The connection; one that is being made is waited for, one that failed is not."""
        while self._connection is None:
            if self._settled.is_set():
                raise self._unreachable(self.health.error or _ENDED)
            await self._settled.wait()
        return self._connection

    def _unreachable(self, why: str) -> SourceFailed:
        return SourceFailed(
            f"{self.spec.who} cannot be reached: {in_short(why)}",
            way_out=self.spec.command("show"),
        )

    async def settled(self) -> None:
        """Wait until it is known whether the server can be reached."""
        self._wanted.set()
        await self._settled.wait()

    def refresh(self) -> None:
        """Ask it for its tools again, as soon as that is no burden."""
        self._stale = True
        self._nudge.set()

    async def renew(self) -> str:
        """Ask it for its tools again, and say why it did not answer; nothing if it did."""
        connection = self._connection
        if connection is None:
            with anyio.move_on_after(self._pace.awaited):
                await self._settled.wait()
            return self.health.error or "it is not connected"
        renewed, self._urgent = self._renewed, True
        self._nudge.set()
        limit = min(self.spec.timeout, self._pace.awaited)
        with anyio.move_on_after(limit):
            await first_of(renewed, connection.lost)
        if not renewed.is_set() and not connection.lost.is_set():
            return f"its tools: no answer in {limit:g} s"
        return self.health.error if self.health.failures else connection.reason

    def restart(self) -> None:
        """Connect anew, at once; who calls meanwhile waits for it."""
        self._again, self._known, self._row = True, False, 0
        self._connection = None
        self.health = Health()
        if self._settled.is_set():
            self._settled = anyio.Event()
        self._wanted.set()
        self._interrupt()

    def retire(self) -> None:
        """Take no more calls; those that run may end."""
        self._leaving = True
        if self._running:
            self._nudge.set()
        else:
            self._interrupt()

    def _interrupt(self) -> None:
        """Wake the owner, also from an attempt that may take its time."""
        self._nudge.set()
        if self._connecting is not None and not self._connecting.expired():
            self._connecting.reschedule(0)

    # The owner's task

    async def run(self) -> None:
        """Keep the server connected until retired."""
        while not self._leaving:
            if await self._until_wanted():
                await self._attempt()
                await self._pause()
        self._settled.set()

    async def _attempt(self) -> None:
        try:
            await self._live()
        except (Lost, RpcError, OpenFangError, OSError, TimeoutError) as error:
            self._failed(str(error) or f"no connection in {self._pace.connect:g} s")
        except Exception as error:  # noqa: BLE001 - whatever it does, it harms nobody but itself
            _log.exception("MCP server %s broke its connection", self.name)
            self._failed(f"{type(error).__name__}: {error}")
        finally:
            self._connection = None

    async def _until_wanted(self) -> bool:
        """Wait until there is a reason to connect; say whether there is."""
        if self.spec.lazy and not self._wanted.is_set():
            self.health = Health(status=Status.SLEEPING)
            self._nudge = anyio.Event()
            await first_of(self._wanted, self._nudge)
            self.health = Health()
        return not self._leaving or bool(self._running)

    async def _live(self) -> None:
        if self._fault:
            raise Lost(self._fault)
        self._again = False
        async with AsyncExitStack() as stack:
            # Not a scope of anyio's: what is opened inside it outlives it.
            async with asyncio.timeout(self._pace.connect) as limit:
                self._connecting = limit
                try:
                    reaching = self._connect(self.spec, self)
                    connection = await stack.enter_async_context(reaching)
                    await self._learn(connection)
                finally:
                    self._connecting = None
            self._introduced(connection)
            async with owned_tasks() as watching:
                watching.start_soon(self._watch, connection)
                watching.start_soon(self._attend, connection)
                await self._serve(connection)

    def _introduced(self, connection: Connection) -> None:
        self.version, self.capabilities = connection.version, connection.abilities
        self.server_info = info_in_short(connection.server_info)
        self.health = health.answered(self.health)
        self._since = self._heard = anyio.current_time()
        self._unanswered, self._known = 0, True
        self._connection = connection
        self._settled.set()
        _log.info("Connected to MCP server: %s", self.name)
        self._arrived(connection)

    async def _watch(self, connection: Connection) -> None:
        await connection.lost.wait()
        self._nudge.set()

    async def _serve(self, connection: Connection) -> None:
        """Refresh and probe now and then, until the connection ends or should."""
        probed = anyio.current_time()
        while not self._again:
            self._nudge = anyio.Event()
            if connection.lost.is_set():
                raise Lost(connection.reason)
            if self._leaving:
                await self._left(connection)
                return
            now = anyio.current_time()
            wait = min(self._listing_due(), probed + self._pace.probe) - now
            if self._urgent or now >= self._listing_due():
                await self._renew(connection)
                probed = anyio.current_time()
            elif wait <= 0:
                await self._probe(connection)
                probed = anyio.current_time()
            else:
                with anyio.move_on_after(wait):
                    await self._nudge.wait()

    def _listing_due(self) -> float:
        """When to ask for the list: a server that keeps changing it does not keep us busy."""
        pace = self._pace
        wait = max(pace.breath, pace.share * self._cost) if self._stale else pace.refresh
        return self._listed + wait

    async def _left(self, connection: Connection) -> None:
        """Let calls end that were begun, and those that are just about to begin."""
        with anyio.move_on_after(self._pace.retire):
            quiet = False
            while not connection.lost.is_set() and (self._running or not quiet):
                self._nudge = anyio.Event()
                with anyio.move_on_after(None if self._running else self._pace.grace) as wait:
                    await self._nudge.wait()
                quiet = wait.cancelled_caught

    async def _learn(self, connection: Connection) -> None:
        self._stale = self._urgent = False
        began = anyio.current_time()
        try:
            await self._list(connection)
        finally:
            self._listed = anyio.current_time()
            self._cost = self._listed - began

    async def _renew(self, connection: Connection) -> None:
        """Ask for the tools again; when that fails, what is known stays."""
        try:
            with anyio.fail_after(self.spec.timeout):
                await self._learn(connection)
        except RpcError as error:
            self.health = health.failed(self.health, f"its tools: {error}")
        except TimeoutError:
            self._silent(f"its tools: no answer in {self.spec.timeout:g} s")
        except Lost as lost:
            self._missed(connection, lost, "its tools: ")
        else:
            self._unanswered = 0
            self.health = health.answered(self.health)
        finally:
            self._renewed.set()
            self._renewed = anyio.Event()

    async def _probe(self, connection: Connection) -> None:
        began, limit = anyio.current_time(), self._pace.probe_limit
        try:
            with anyio.fail_after(limit):
                await connection.ping()
        except Lost as lost:
            self._missed(connection, lost)
        except TimeoutError:
            if self._heard > began:  # it is busy with a call, and gets on with it
                self.health = health.answered(self.health, limit)
            else:
                self._silent(f"no answer to a probe in {limit:g} s")
        else:
            self._unanswered = 0
            self.health = health.answered(self.health, anyio.current_time() - began)

    def _missed(self, connection: Connection, lost: Lost, what: str = "") -> None:
        """Take note that one exchange failed; over HTTP that is not the connection's end."""
        if connection.lost.is_set() or isinstance(lost, AuthNeeded):
            raise lost
        self._silent(f"{what}{lost}")

    def _silent(self, why: str) -> None:
        """Take note that it did not answer; one that never does is no connection."""
        self._unanswered += 1
        self.health = health.failed(self.health, why)
        if self._unanswered >= health.GIVEN_UP_AFTER:
            raise Lost(f"{why}, {self._unanswered} times in a row")

    def _failed(self, why: str) -> None:
        if self._again:
            return
        lasted = self._connection is not None
        steady = lasted and anyio.current_time() - self._since >= self._pace.steady
        self._row = 1 if steady else self._row + 1
        self.health = health.lost(why, row=self._row, known=self._known)
        self._settled.set()
        _log.warning("MCP server %s is not connected: %s", self.name, self.health.error)

    async def _pause(self) -> None:
        """Wait before the next attempt, unless somebody wants it now."""
        self._nudge = anyio.Event()
        if not self._again and not self._leaving:
            with anyio.move_on_after(health.wait_before(max(1, self._row), _CHANCE)):
                await self._nudge.wait()


_CHANCE = random.Random()  # noqa: S311 - it spreads load, it keeps no secret
