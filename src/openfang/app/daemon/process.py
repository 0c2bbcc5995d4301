"""The daemon: one process that serves a home until it is told to end.

The first SIGTERM or SIGINT drains: calls in flight end, streams are ended, the log is sealed. The
second ends the process at once; what was open then gets its ending at the next start. SIGHUP
reloads. A service manager that wants to know is told of all of it.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import logging
import os
import signal
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio import to_thread

from openfang.app.daemon.discovery import (
    Daemon,
    only_daemon,
    remove,
    this_daemon,
    until_healthy,
    write,
)
from openfang.app.daemon.server import build_server
from openfang.app.lifespan import beside, open_app, sign_head
from openfang.app.logs.log import open_logs
from openfang.app.stdio.hello import DAEMON_SOCKET
from openfang.app.stdio.serving import PrivateServer
from openfang.core.errors import Conflict, HomeError
from openfang.core.values import dataclass
from openfang.host import holders
from openfang.host.crowd import Crowd
from openfang.host.notify import Manager
from openfang.host.server import Listener, ServerLimits, listen, raise_file_limit, serve
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from openfang.app.cluster.members import Members
    from openfang.app.daemon.server import Served
    from openfang.app.home.paths import Home
    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.config.node import Server

ServeApp: TypeAlias = "Callable[[Parts, anyio.Event, Mapping[str, str]], Served]"
# A call leaves little behind that only the collector finds; at its default it takes a tenth of all.
_GARBAGE: Final = (20_000, 20, 50)
_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("openfang.daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How a daemon is wanted. Without a file its log goes to standard error.

    `told` hears where it is, once `/api/health` has answered there, and what to beware of.
    """

    told: Callable[[Daemon, Sequence[str]], None]
    listen: str | None = None
    any_port: bool = False
    log_file: Path | None = None


async def run_daemon(
    home: Home,
    environ: Mapping[str, str],
    wishes: Wishes,
    *,
    serve_app: ServeApp = build_server,
) -> None:
    """Serve a home until told to end."""
    _require(home)
    environ = {**environ, "OPENFANG_LISTEN": wishes.listen} if wishes.listen else environ
    orders = _Orders(home.path, Manager.of(environ))
    async with only_daemon(home.path):
        with orders.obeyed(), ExitStack() as last:
            async with open_app(home, environ) as parts:
                last.enter_context(_logging(parts, environ, wishes.log_file))
                if parts.members is not None:
                    await parts.members.join(_address(parts.config, *parts.config.listen))
                await sign_head(parts)
                raise_file_limit(parts.config.server.connections)
                listener = await _bound(*parts.config.listen, any_port=wishes.any_port)
                # Read while the socket is open: who is told to end meanwhile closes it at once.
                daemon = this_daemon(*listener.address)
                parts.address = daemon.url
                if parts.members is not None:
                    await parts.members.moved(_address(parts.config, *listener.address))
                warnings = _warnings(parts.config, *listener.address)
                serving = _Serving(parts, listener, daemon, warnings, orders, wishes.told)
                await serving.run(serve_app(parts, orders.stop, environ))


def _address(config: Config, host: str, port: int) -> str:
    """Where other nodes reach this one."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return config.cluster.address or f"http://{place}"


def _require(home: Home) -> None:
    if not home.exists:
        raise HomeError(
            f"There is no OpenFang home at {home.path}.",
            way_out="openfang init, or set OPENFANG_HOME",
        )


@contextmanager
def _logging(parts: Parts, environ: Mapping[str, str], file: Path | None) -> Generator[None]:
    def redact(text: str) -> str:
        return parts.redactor.text(text).text

    with open_logs(parts.config.log_level, file=file, redact=redact, environ=environ):
        _log.info("OpenFang %s opens %s", __version__, parts.home.path)
        yield
        _log.info("Ended")


async def _bound(host: str, port: int, *, any_port: bool) -> Listener:
    try:
        return listen(host, port)
    except Conflict as error:
        if any_port:
            return listen(host, 0)
        taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
        by = await to_thread.run_sync(holders.listener, port) if taken else None
        who = f", by {by}" if by else ""
        raise Conflict(
            f"The daemon cannot listen: {error.message}{who}.", way_out=error.way_out
        ) from error


def _warnings(config: Config, host: str, port: int) -> list[str]:
    found = list[str]()
    _, wished = config.listen
    if wished not in {0, port}:
        found.append(f"Port {wished} is in use: listening on {port} instead")
    if not ipaddress.ip_address(host).is_loopback:
        found.append(f"Listening on {host} port {port}: other machines can reach it")
    if not config.auth.require_key:
        found.append("auth.require_key is false: every program of this machine may call")
    return found


async def _leaving(members: Members, stop: anyio.Event) -> None:
    """Let the other nodes know that this one ends, before it does."""
    await stop.wait()
    await members.stopping()


def _limits(server: Server) -> ServerLimits:
    return ServerLimits(
        connections=server.connections,
        head_seconds=server.head_secs,
        body_seconds=server.body_secs,
        idle_seconds=server.idle_secs,
        drain_seconds=server.drain_secs,
    )


class _Orders:
    """What signals tell the process to do."""

    def __init__(self, home: Path, manager: Manager) -> None:
        self.stop = anyio.Event()
        self.manager = manager
        self._home = home
        self._again = anyio.Event()
        self._terminal = _has_terminal()

    @contextmanager
    def obeyed(self) -> Generator[None]:
        """Listen to signals."""
        loop = asyncio.get_running_loop()
        for number in _ENDINGS:
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            yield
        finally:
            for number in (*_ENDINGS, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def reloading(self, reload: Callable[[], Awaitable[None]]) -> None:
        """Reload whenever that is wished."""
        while True:
            await self._again.wait()
            self._again = anyio.Event()
            self.manager.reloading()
            await reload()
            self.manager.ready("The configuration was read again")

    def _end(self, number: signal.Signals) -> None:
        if self.stop.is_set():
            remove(self._home)
            os._exit(128 + number)
        _log.info("%s: no more calls; those in flight end first", number.name)
        self.stop.set()
        self.manager.stopping()
        remove(self._home)  # the port is free from now on: nobody may send a key there

    def _hang_up(self) -> None:
        """Reload, unless it only means that the terminal which it was started from has gone."""
        if not self._terminal or _has_terminal():
            self._again.set()
        elif not self.stop.is_set():
            self._end(signal.SIGHUP)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Serving:
    """A home that is open, and a socket that listens."""

    parts: Parts
    listener: Listener
    daemon: Daemon
    warnings: Sequence[str]
    orders: _Orders
    told: Callable[[Daemon, Sequence[str]], None]

    async def run(self, served: Served) -> None:
        """Serve until told to end, and until what was begun has ended."""
        for warning in self.warnings:
            _log.warning("%s", warning)
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        answering, stop = anyio.Event(), self.orders.stop
        reloading = partial(self.orders.reloading, served.reloader.try_again)
        lines = self._lines(served)
        watches = (reloading, partial(lines.run, stop), self.orders.manager.alive, *served.watches)
        if self.parts.members is not None:
            watches = (*watches, partial(_leaving, self.parts.members, stop))
        async with beside(partial(self._announce, answering, lines), *watches):
            crowd = Crowd(_limits(self.parts.config.server))
            served.telemetry.reads(http_connections=lambda: len(crowd.connections))
            await serve(served.app, self.listener, crowd, stop=stop, ready=answering.set)
            await lines.ended.wait()
        served.handler.close()

    def _lines(self, served: Served) -> PrivateServer:
        return PrivateServer(
            parts=self.parts,
            handler=served.handler,
            offers=served.offers,
            path=self.parts.home.processes / DAEMON_SOCKET,
            drain_seconds=self.parts.config.server.drain_secs,
        )

    async def _announce(self, answering: anyio.Event, lines: PrivateServer) -> None:
        await answering.wait()
        await lines.ready.wait()
        try:
            await until_healthy(self.daemon.url)
        except HomeError:
            if self.orders.stop.is_set():
                return
            raise
        await to_thread.run_sync(write, self.parts.home.path, self.daemon)
        _log.info("Serving at %s", self.daemon.url)
        self.orders.manager.ready(f"Serving at {self.daemon.url}")
        self.told(self.daemon, self.warnings)
