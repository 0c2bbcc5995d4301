"""The guarded way out of a sandbox: an HTTP proxy that resolves, checks and dials by itself.

What the child says about addresses is not believed. Names of metadata services are refused before
anybody is asked about them, each answer of the resolver is checked, and only what was checked is
dialled. A tunnel's content is the child's own business; who it leads to, and how much went through
it, is told to whoever opened the egress. Never a path, a header or a credential.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.core.values import dataclass
from openfang.host.names import system_resolve
from openfang.host.network import BACKLOG, HOST, PORT, own_network, received_listener
from openfang.host.proxying import Asked
from openfang.host.visits import (
    Closed,
    EgressLimits,
    EgressRules,
    Failed,
    Opened,
    Refused,
    Visit,
)
from openfang.safety.urls import AddressRefused, check_address, host_granted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import TaskGroup

    from openfang.host.names import Resolve
    from openfang.safety.urls import Target

_CHUNK: Final = 65_536
_PAUSE: Final = 0.05
_URL: Final = f"http://{HOST}:{PORT}"
_NEAR: Final = "localhost,127.0.0.1,::1"
# Both spellings: programs differ in which one they read. The last is for Node's own fetch.
PROXY_VARIABLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _URL),
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _URL),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), _NEAR),
    "NODE_USE_ENV_PROXY": "1",
}


def proxy_variables(rules: EgressRules, port: int | None = None) -> Mapping[str, str]:
    """Lead a child here. Who may reach this machine's loopback means that, and not its own."""
    spared = ("NO_PROXY", "no_proxy") if rules.allow_private else ()
    url = f"http://{HOST}:{port or PORT}"
    return {
        name: url if value == _URL else value
        for name, value in PROXY_VARIABLES.items()
        if name not in spared
    }


@asynccontextmanager
async def open_egress(  # noqa: PLR0913 - each is another place to reach it at, or its rules
    rules: EgressRules,
    *,
    noted: Callable[[Visit], None],
    limits: EgressLimits = EgressLimits(),  # noqa: B008 - frozen
    unix_socket: Path | None = None,
    local: bool = False,
    resolve: Resolve = system_resolve,
) -> AsyncGenerator[Egress]:
    """Hold a way out; on leaving, every connection through it ends.

    A child reaches it by `Egress.prepare`, or through `unix_socket` where that cannot be used, or,
    if it has no network of its own, at a port of this machine's: `local`.
    """
    ours, theirs = socket.socketpair()
    failure: Exception | None = None
    with ours, theirs:
        async with anyio.create_task_group() as group:
            egress = Egress(_Proxy(rules, limits, noted, resolve), group, theirs, unix_socket)
            group.start_soon(egress.take_listeners, ours)
            if unix_socket is not None:
                listener = await to_thread.run_sync(_listen, unix_socket)
                group.start_soon(egress.serve, listener)
            if local:
                listener = socket.create_server((HOST, 0), backlog=BACKLOG)
                egress.port = listener.getsockname()[1]
                group.start_soon(egress.serve, listener)
            try:
                yield egress
            except Exception as error:  # noqa: BLE001 - the group would wrap it; raised below
                failure = error
            finally:
                group.cancel_scope.cancel()
    if unix_socket is not None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_forget, unix_socket)
    if failure is not None:
        raise failure


class Egress:
    """An open way out. `prepare` belongs into the `Launch` of a child with a network of its own."""

    def __init__(
        self, proxy: _Proxy, group: TaskGroup, theirs: socket.socket, unix_socket: Path | None
    ) -> None:
        self.unix_socket = unix_socket
        self.port: int | None = None
        self.prepare = own_network(theirs)
        self._proxy = proxy
        self._group = group

    async def take_listeners(self, ours: socket.socket) -> None:
        """Serve each socket that a child hands over; the one before it belonged to a dead child."""
        ours.setblocking(False)  # noqa: FBT003 - its only argument
        scope = anyio.CancelScope()
        while True:
            await anyio.wait_readable(ours)
            listener = received_listener(ours)
            if listener is not None:
                scope.cancel()
                scope = anyio.CancelScope()
                self._group.start_soon(self.serve, listener, scope)

    async def serve(self, listener: socket.socket, scope: anyio.CancelScope | None = None) -> None:
        """Take connections until the end of the egress."""
        listener.setblocking(False)  # noqa: FBT003 - its only argument
        loop = asyncio.get_running_loop()
        with listener, scope or anyio.CancelScope():
            async with anyio.create_task_group() as group:
                while True:
                    try:
                        connection, _ = await loop.sock_accept(listener)
                    except OSError:
                        # Out of files, most likely: whoever holds them lets go of them by and by.
                        await anyio.sleep(_PAUSE)
                    else:
                        group.start_soon(self._proxy.connected, connection)


def _listen(path: Path) -> socket.socket:
    """Listen at a path of any length, for its owner only."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _forget(path)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def _forget(path: Path) -> None:
    path.unlink(missing_ok=True)


@dataclass(slots=True)
class _Proxy:
    rules: EgressRules
    limits: EgressLimits
    noted: Callable[[Visit], None]
    resolve: Resolve
    connections: int = 0

    async def connected(self, connection: socket.socket) -> None:
        """Serve one connection of a child, whatever becomes of it."""
        self.connections += 1
        try:
            with suppress(OSError):
                reader, writer = await _streams(connection)
                try:
                    await self._answer(reader, writer)
                finally:
                    writer.close()
        finally:
            self.connections -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections > self.limits.connections:
            self.noted(Refused(rule="too_many"))
            most = f"More than {self.limits.connections} connections at once"
            await _say(writer, 503, "too_many", most)
            return
        asked = Asked(reader)
        target: Target | None = None
        try:
            with anyio.fail_after(self.limits.head_seconds):
                target = await asked.read_head()
            if target is not None:
                await self._reach(asked, target, reader, writer)
        except TimeoutError:
            self.noted(Refused(rule="slow"))
            await _say(writer, 408, "slow", "The request took too long")
        except AddressRefused as refusal:
            host, port = (target.host, target.port) if target else ("", 0)
            self.noted(Refused(host=host, port=port, rule=refusal.rule))
            status = 400 if refusal.rule == "malformed" else 403
            await _say(writer, status, refusal.rule, f"{refusal.message} ({refusal.rule})")

    async def _reach(
        self,
        asked: Asked,
        target: Target,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        addresses = await self._checked(target)
        try:
            address, there = await self._dial(addresses, target.port)
        except OSError as error:
            reason = error.strerror or str(error) or "no answer"
            self.noted(Failed(host=target.host, port=target.port, reason=reason))
            text = f"{target.host} could not be reached: {reason}"
            await _say(writer, 502, "unreachable", text)
            return
        self.noted(Opened(host=target.host, port=target.port, address=address))
        passage = _Passage(self, target)
        try:
            await passage.carry(asked, (reader, writer), there)
        finally:
            there[1].close()
            self.noted(passage.closed())

    async def _checked(self, target: Target) -> Sequence[str]:
        """Give the addresses of a host; one that may not be dialled refuses the whole name."""
        granted = self.rules.allow_hosts
        if granted is not None and not host_granted(target, granted):
            raise AddressRefused(
                f"{target.host} is not among the hosts granted", rule="not_granted"
            )
        addresses = [target.host] if target.literal else await self._resolved(target)
        for address in addresses:
            check_address(address, allow_private=self.rules.allow_private, host=target.host)
        return addresses

    async def _resolved(self, target: Target) -> Sequence[str]:
        try:
            with anyio.fail_after(self.limits.dial_seconds):
                answers = await self.resolve(target.host, target.port)
        except (OSError, UnicodeError):
            answers = ()
        if not answers:
            raise AddressRefused(f"{target.host} does not resolve", rule="unresolved")
        return list(dict.fromkeys(answers))

    async def _dial(
        self, addresses: Sequence[str], port: int
    ) -> tuple[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Dial one address after the other; they are written as numbers, so nobody is asked."""
        failure = OSError("no answer")
        with anyio.move_on_after(self.limits.dial_seconds):
            for address in addresses:
                try:
                    with anyio.fail_after(self.limits.dial_seconds / len(addresses)):
                        return address, await asyncio.open_connection(address, port)
                except OSError as error:
                    failure = error
        raise failure


class _Passage:
    """What goes through one connection: counted, and ended when it is idle or old."""

    def __init__(self, proxy: _Proxy, target: Target) -> None:
        self._proxy = proxy
        self._target = target
        self._began = time.monotonic()
        self._idle = anyio.CancelScope()
        self._sent = 0
        self._received = 0

    async def carry(
        self,
        asked: Asked,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Carry until the server has ended, somebody breaks off, or time is up."""
        with anyio.move_on_after(self._proxy.limits.total_seconds), self._idle:
            self._moved()
            if asked.is_tunnel:
                near[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with anyio.create_task_group() as group:
                group.start_soon(self._send, asked, near[0], far[1])
                await self._receive(far[0], near[1])
                group.cancel_scope.cancel()

    def closed(self) -> Closed:
        return Closed(
            host=self._target.host,
            port=self._target.port,
            sent=self._sent,
            received=self._received,
            seconds=time.monotonic() - self._began,
        )

    async def _send(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send what the child has to say. When it breaks off, the answer still arrives."""
        with suppress(OSError):
            if not asked.is_tunnel:
                await self._send_request(asked, writer)
                return
            data = asked.behind
            while data or (data := await reader.read(_CHUNK)):
                await self._out(writer, data)
                data = b""
            writer.write_eof()

    async def _send_request(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self._out(writer, asked.head(self._target))
        try:
            async for data in asked.body():
                await self._out(writer, data)
        except (AddressRefused, ConnectionResetError):
            # Half a request must not look like a whole one.
            writer.transport.abort()
            return
        # A second request would need a second judgement: on a connection of its own.
        if await asked.goes_on():
            writer.transport.abort()

    async def _out(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        self._moved()
        self._sent += len(data)
        writer.write(data)
        await writer.drain()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                self._moved()
                self._received += len(data)
                writer.write(data)
                await writer.drain()

    def _moved(self) -> None:
        self._idle.deadline = anyio.current_time() + self._proxy.limits.idle_seconds


async def _streams(
    connection: socket.socket,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if connection.family == socket.AF_UNIX:
        return await asyncio.open_unix_connection(sock=connection)
    return await asyncio.open_connection(sock=connection)


async def _say(writer: asyncio.StreamWriter, status: int, rule: str, text: str) -> None:
    body = f"{text}\n".encode()
    # Most programs show nothing else of an answer than this line.
    head = (
        f"HTTP/1.1 {status} Refused by openfang ({rule})\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
