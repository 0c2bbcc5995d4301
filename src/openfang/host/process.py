"""Child processes: started from an argument list, bounded in time, output and resources, and ended.

Never through a shell. When `started` is left, for whatever reason, the child and everything that it
started is gone. Between fork and exec a few lines of Python run in the child (`preexec_fn`): limits
and parent-death signal must be in force before the program's first instruction. They call the
kernel and nothing else, so that no thread of the parent can hold what they need.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import secrets
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio import CancelScope, CapacityLimiter, to_thread

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.host.descendants import MARK, end_all, start_time
from openfang.host.pipes import Input, Output

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_ORPHANED: Final = 125
_LAST_WORDS: Final = 0.5
_libc = ctypes.PyDLL(None)
_libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
# The kernel ties the death signal to the thread that forked: it has to outlive the children.
_STARTER: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="start")


class LaunchFailed(SourceFailed):
    """The program could not be started."""

    code = "launch_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may take, in bytes, seconds and pieces; None leaves our own limit in force.

    `memory` bounds the address space: runtimes that reserve much and use little need more; for them
    `data` bounds what they can write to. Both are for each process; `group_memory` and
    `group_processes` are for a child and all that it starts, where `host.cgroups` can hold them.
    The kernel counts `processes` per user, and does not hold root to them.
    """

    memory: int | None = None
    data: int | None = None
    group_memory: int | None = None
    group_processes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_size: int | None = None
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start, and how far it may go. `environment` is all that the child will know.

    `prepare` runs in the child before the program does, under the rule of this module: it calls the
    kernel and nothing else. `files` are descriptors of ours that it gets, under the same numbers.
    `join` is told the child's number, in a thread, while the program already runs.
    """

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes | None = None
    timeout: float = 60.0
    output_limit: int = 1 << 20
    limits: Limits = Limits()
    prepare: Callable[[], None] | None = None
    files: tuple[int, ...] = ()
    join: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a child ended: with an exit code, or by a signal."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    timed_out: bool = False


class Child(ABC):
    """A running child. What it says arrives in `received`, which a subclass provides."""

    process: subprocess.Popen[bytes]

    def __init__(self) -> None:
        self.began = 0
        self.exited = asyncio.Event()
        self.joined = asyncio.Event()
        self._handle = -1
        self._outputs: list[Output] = []
        self._input: Input | None = None

    @abstractmethod
    def received(self, fd: int, data: bytes) -> None:
        """Take what the child wrote to its standard output (1) or error (2)."""

    def hung_up(self, fd: int) -> None:  # noqa: B027 - who does not care need not hear it
        """Hear that nobody can write to its standard output (1) or error (2) any more."""

    @property
    def returncode(self) -> int | None:
        """The exit code, or the number of the signal that ended it, negative."""
        return self.process.returncode

    def start(self, launch: Launch, mark: str) -> None:
        """Start the program. Blocks until it runs or has failed to."""
        self.process = _start(launch, mark)
        self.began = start_time(self.process.pid)

    def connect(self) -> None:
        """Hear of its output and of its end."""
        process = self.process
        self._handle = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._handle, self._ended)
        for number, pipe in ((1, process.stdout), (2, process.stderr)):
            if pipe is not None:
                received, hung_up = partial(self.received, number), partial(self.hung_up, number)
                self._outputs.append(Output(pipe, received, hung_up))
        if process.stdin is not None:
            self._input = Input(process.stdin)

    def feed(self, data: bytes) -> None:
        """Write all of the child's input, and end it."""
        if self._input is not None:
            self._input.write(data)

    async def read_to_the_end(self) -> None:
        """Wait until the child has ended and nobody else holds its pipes."""
        await self.exited.wait()
        for output in self._outputs:
            await output.closed.wait()

    def rest(self, fd: int, seconds: float) -> None:
        """Do not listen to its standard output (1) or error (2) for a while: others wait."""
        if len(self._outputs) >= fd:
            self._outputs[fd - 1].rest(seconds)

    def read_what_is_there(self) -> None:
        """Take what waits in the pipes now; somebody else may hold them open, and go on writing."""
        for output in self._outputs:
            output.read_what_is_there()

    def close(self) -> None:
        """Let go of the child and its pipes."""
        self._forget_handle()
        for output in self._outputs:
            output.close()
        if self._input is not None:
            self._input.close()

    def _ended(self) -> None:
        self._forget_handle()
        self.process.poll()
        self.exited.set()

    def _forget_handle(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)


class _Capture(Child):
    """Keeps the beginning of what the child says and drops the rest."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._kept = {1: bytearray(), 2: bytearray()}
        self._total = {1: 0, 2: 0}

    def received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data[: self._limit - len(kept)]
        self._total[fd] += len(data)

    def finished(self, *, timed_out: bool) -> Finished:
        code = self.returncode
        return Finished(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            stdout=bytes(self._kept[1]),
            stderr=bytes(self._kept[2]),
            stdout_truncated=self._total[1] > self._limit,
            stderr_truncated=self._total[2] > self._limit,
            timed_out=timed_out,
        )


async def run(launch: Launch) -> Finished:
    """Start a program, wait for its end, and leave nothing of it behind."""
    async with started(launch, _Capture(launch.output_limit)) as child:
        if launch.stdin is not None:
            child.feed(launch.stdin)
        with anyio.move_on_after(launch.timeout) as deadline:
            await child.exited.wait()
    return child.finished(timed_out=deadline.cancelled_caught)


AnyChild = TypeVar("AnyChild", bound=Child)


@asynccontextmanager
async def started(launch: Launch, child: AnyChild) -> AsyncGenerator[AnyChild]:
    """Hold a running child; on the way out it and its descendants are killed and reaped."""
    mark = secrets.token_hex(16)
    loop = asyncio.get_running_loop()
    # A start that is given up half-way would leave a child that nobody knows.
    starting = loop.run_in_executor(_STARTER, child.start, launch, mark)
    given_up = await _to_the_end(starting)
    starting.result()
    joining = loop.create_task(_join(child, launch))
    try:
        child.connect()
        if given_up is not None:
            raise given_up
        yield child
    finally:
        ending = loop.create_task(_end(child, mark))
        given_up = await _to_the_end(asyncio.gather(ending, joining))
        ending.result()
        if given_up is not None:
            raise given_up


async def _join(child: Child, launch: Launch) -> None:
    if launch.join is not None:
        await to_thread.run_sync(launch.join, child.process.pid, limiter=CapacityLimiter(1))
    child.joined.set()


async def _to_the_end(running: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for it, whoever wants us to stop; return the wish, of scopes and of tasks alike."""
    wish: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not running.done():
            try:
                await asyncio.wait((running,))
            except asyncio.CancelledError as error:
                wish = error
    return wish


async def _end(child: Child, mark: str) -> None:
    """Kill, then read what is left in the pipes, though not for ever: somebody may hold them."""
    await to_thread.run_sync(
        # A limiter of its own: ending a child must not wait for other threads to be done.
        end_all,
        child.process.pid,
        mark,
        child.began,
        limiter=CapacityLimiter(1),
    )
    with anyio.move_on_after(_LAST_WORDS):
        await child.read_to_the_end()
    child.close()


def _start(launch: Launch, mark: str) -> subprocess.Popen[bytes]:
    program = _find(launch)
    try:
        return subprocess.Popen(  # noqa: S603 - starting what was asked for is its purpose
            (program, *launch.argv[1:]),
            bufsize=0,
            stdin=subprocess.DEVNULL if launch.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=launch.cwd,
            env={**launch.environment, MARK: mark},
            start_new_session=True,
            pass_fds=launch.files,
            preexec_fn=_preparation(launch),  # noqa: PLW1509 - see the module
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise LaunchFailed(f"{launch.argv[0]!r} could not be started: {error}") from error


def _find(launch: Launch) -> str:
    """Find the program by the child's PATH, or relative to the child's folder."""
    if not launch.argv:
        raise LaunchFailed("The command is empty")
    if not launch.cwd.is_dir():
        raise LaunchFailed(f"The folder {str(launch.cwd)!r} to start in does not exist")
    name = launch.argv[0]
    wanted = str(launch.cwd / name) if "/" in name else name
    found = shutil.which(wanted, path=launch.environment.get("PATH", os.defpath))
    if found is None:
        raise LaunchFailed(
            f"The program {name!r} was not found",
            way_out=f"install it, or check: command -v {name}",
        )
    return found


def _resource_limits(limits: Limits) -> list[tuple[int, tuple[int, int]]]:
    """Put the limits into the kernel's terms: none above our own, and no memory dumps."""
    wanted = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_DATA, limits.data),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
    )
    return [(kind, _capped(kind, value)) for kind, value in wanted if value is not None]


def _capped(kind: int, value: int) -> tuple[int, int]:
    ours = resource.getrlimit(kind)[1]
    capped = value if ours == resource.RLIM_INFINITY else min(value, ours)
    return capped, capped


def in_turn(*steps: Callable[[], None] | None) -> Callable[[], None]:
    """Make one preparation of several; those that are not there are left out."""
    there = [step for step in steps if step is not None]

    def prepare() -> None:
        for step in there:
            step()

    return prepare


def _preparation(launch: Launch) -> Callable[[], None]:
    parent = os.getpid()
    limits = _resource_limits(launch.limits)

    def prepare() -> None:
        if launch.prepare is not None:
            launch.prepare()
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(_ORPHANED)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # A setuid program would shed the death signal, and could not be killed by us.
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        for kind, pair in limits:
            resource.setrlimit(kind, pair)

    return prepare
