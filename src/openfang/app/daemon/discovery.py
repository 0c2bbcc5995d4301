"""Which daemon serves a home: `daemon.json` says where, `run/daemon.lock` proves that it lives.

The lock is held for as long as the daemon lives and names its process, so that neither a file that
was left behind, nor a number that another program has now, nor a foreign server on the port is
taken for it. Every command looks here first: nothing heavy is imported.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import orjson
from anyio import to_thread

from openfang.core.errors import Conflict, HomeError
from openfang.core.values import dataclass
from openfang.host.loopback import Loopback
from openfang.host.private import write_private
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.host.loopback import Reply

FILE: Final = "daemon.json"
LOCK: Final = "run/daemon.lock"
_CONNECT_SECONDS: Final = 1.0
_TOTAL_SECONDS: Final = 2.0
_BEGINNING_SECONDS: Final = 30.0  # of a daemon that starts many servers on a busy machine
_TRIES: Final = 10
_PAUSE: Final = 0.02
_MOST_BYTES: Final = 10_000
_SUCCESS: Final = range(200, 300)
_TOO_MANY: Final = 429
_NO_ROOM: Final = 503
_PROBLEM: Final = "urn:openfang:problem:"
_LOOK_SECONDS: Final = 0.05
_ADDRESS = re.compile(r"\A(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([1-9][0-9]{0,4})\Z")
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - replaced, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """What a daemon writes down when it is ready."""

    pid: int
    listen_addr: str
    started_at: str
    version: str
    platform: str

    @property
    def url(self) -> str:
        """Where a client on this machine reaches it."""
        host, _, port = self.listen_addr.rpartition(":")
        return f"http://{_LOOPBACK.get(host, host)}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A daemon that lives and answers; one that is `busy` answered that it has no room now."""

    url: str
    pid: int
    version: str
    started_at: str
    busy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """No daemon that could be used: what was found instead, and who holds the lock if anybody.

    A `silent` one said where it is, and does not answer there.
    """

    why: str = ""
    pid: int | None = None
    silent: bool = False


def this_daemon(host: str, port: int) -> Daemon:
    """Describe this process, which listens there."""
    return Daemon(
        pid=os.getpid(),
        listen_addr=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        version=__version__,
        platform=sys.platform,
    )


def write(home: Path, daemon: Daemon) -> None:
    """Tell everybody where it is."""
    write_private(home / FILE, orjson.dumps(asdict(daemon)).decode() + "\n")


def remove(home: Path) -> None:
    """Take it back."""
    with suppress(FileNotFoundError):
        (home / FILE).unlink()


async def daemon_of(home: Path) -> Found | None:
    """Find the daemon to use, or none if the home is free.

    Whoever holds the lock without answering is not passed by: rates and runs are counted there.
    One that starts or ends is given a moment for it.
    """
    until = anyio.current_time() + _TOTAL_SECONDS
    while isinstance(found := await look(home), Absent):
        if found.pid is None:
            return None
        if found.silent or anyio.current_time() >= until:
            raise HomeError(
                f"The daemon of {home} does not answer: {found.why}.",
                way_out="wait, or end it: openfang stop --kill",
            )
        await anyio.sleep(_LOOK_SECONDS)
    return found


def find_daemon_now(home: Path) -> Found | None:
    """Find the daemon of a home, if one runs and answers. Blocks, for two seconds at most."""
    claim = claimed(home)
    if isinstance(claim, Absent):
        return None
    with ThreadPoolExecutor(max_workers=1) as apart:
        found = apart.submit(asyncio.run, _confirmed(claim)).result()
    return found if isinstance(found, Found) else None


async def look(home: Path) -> Found | Absent:
    """Look for the daemon of a home; where there is none, say what was found."""
    claim = await to_thread.run_sync(claimed, home)
    return claim if isinstance(claim, Absent) else await _confirmed(claim)


def claimed(home: Path) -> Daemon | Absent:
    """Read what the home says, and whether who said it still lives. Asks nobody. Blocks."""
    pid = _holder(home)
    try:
        daemon = _read(home)
    except (OSError, ValueError, TypeError) as error:
        return Absent(why=f"{FILE} cannot be read: {error}", pid=pid)
    if daemon is None:
        return Absent(why=_of_holder(pid), pid=pid)
    if pid is None:
        gone = f"{FILE} is left over from process {daemon.pid}, which ended without a word"
        return Absent(why=gone)
    return daemon if daemon.pid == pid else Absent(why=_of_holder(pid), pid=pid)


def _of_holder(pid: int | None) -> str:
    if pid is None:
        return ""
    return f"{_process(pid)} is starting, or ending"


def _process(pid: int | None) -> str:
    return f"process {pid}" if pid else "another process"


def _read(home: Path) -> Daemon | None:
    try:
        with (home / FILE).open("rb") as file:
            body: object = orjson.loads(file.read(_MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not isinstance(body, dict):
        raise TypeError("it is no JSON object")
    return _daemon(cast("dict[str, Any]", body))


def _daemon(body: dict[str, Any]) -> Daemon:
    texts = {name: body.get(name) for name in ("listen_addr", "started_at", "version", "platform")}
    pid = body.get("pid")
    if not isinstance(pid, int) or not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("pid, listen_addr, started_at, version or platform is missing")
    daemon = Daemon(pid=pid, **cast("dict[str, str]", texts))
    if not _ADDRESS.match(daemon.listen_addr):
        raise ValueError(f"{daemon.listen_addr!r} is no address")
    return daemon


def _holder(home: Path) -> int | None:
    """Say which process holds the lock; 0 for one that has not said so yet."""
    try:
        handle = os.open(home / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(handle, 20)
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(handle)


async def _confirmed(daemon: Daemon) -> Found | Absent:
    """Ask the daemon itself."""
    try:
        busy = await _asked(daemon.url)
    except HomeError as error:
        why = f"{error.message[0].lower()}{error.message[1:].rstrip('.')}"
        held = f"process {daemon.pid} holds the lock, but {why}"
        return Absent(why=held, pid=daemon.pid, silent=True)
    return Found(
        url=daemon.url,
        pid=daemon.pid,
        version=daemon.version,
        started_at=daemon.started_at,
        busy=busy,
    )


async def _asked(url: str, patience: float = 0.0) -> str:
    """Ask what answers there how it is: nothing to say, or why it has no time now."""
    async with Loopback(url, connect_seconds=max(_CONNECT_SECONDS, patience)) as client:
        limit = max(_TOTAL_SECONDS, patience)
        reply = await client.request("GET", "/api/health", timeout=limit)
    # Whoever asks too often has still been answered by the daemon.
    if reply.status == _TOO_MANY or (reply.status in _SUCCESS and _is_ours(reply.body)):
        return ""
    if reply.status == _NO_ROOM and (detail := _problem_of_ours(reply)):
        return detail
    raise HomeError(f"What answers at {url} is not healthy, or no daemon (status {reply.status}).")


def _is_ours(body: bytes) -> bool:
    try:
        return orjson.loads(body) == {"status": "ok"}
    except orjson.JSONDecodeError:
        return False


def _problem_of_ours(reply: Reply) -> str:
    """Read what a daemon of ours has to say; nothing if another program wrote it."""
    if reply.headers.get("content-type") != "application/problem+json":
        return ""
    try:
        body: object = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return ""
    known = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    ours = str(known.get("type", "")).startswith(_PROBLEM)
    return str(known.get("detail", "")) if ours else ""


async def until_healthy(url: str) -> None:
    """See the daemon answer, or say why it does not."""
    try:
        await _asked(url, _BEGINNING_SECONDS)
    except HomeError as error:
        why = f"{error.message[0].lower()}{error.message[1:]}"
        raise HomeError(f"The daemon listens, but {why}", way_out="openfang doctor") from error


@asynccontextmanager
async def only_daemon(home: Path) -> AsyncGenerator[None]:
    """Be the one daemon of a home; whatever a dead one left behind is taken away."""
    handle = await to_thread.run_sync(_lock, home)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_unlock, home, handle)


def _lock(home: Path) -> int:
    folder = (home / LOCK).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(home, handle)
        remove(home)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _unlock(home: Path, handle: int) -> None:
    try:
        remove(home)
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _take(home: Path, handle: int) -> None:
    """Take the lock. Whoever only looks holds it for a moment: that is waited for."""
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_PAUSE)
    raise _occupied(home)


def _occupied(home: Path) -> Conflict:
    claim = claimed(home)
    where = f" at {claim.url}" if isinstance(claim, Daemon) else ""
    return Conflict(
        f"A daemon serves {home} already: {_process(claim.pid)}{where}.",
        way_out="openfang status, or end it: openfang stop",
    )
