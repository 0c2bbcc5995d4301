"""Programs that outlive us: started in a session of their own, told to end by handle, waited for.

A process is held by a handle of the kernel, so that a signal never reaches another program that has
taken its number since. All of it blocks.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, MutableMapping, Sequence

READY_FD: Final = "OPENFANG_READY_FD"
"""The variable with the number of the file that a detached program speaks its first words into."""
_CHUNK: Final = 65_536
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Detach:
    """What to start. What it prints is appended to `output`."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    output: Path


def first_words(detach: Detach, seconds: float) -> bytes:
    """Start a program that goes on without us, and return what it says when it is ready.

    Nothing: it has ended without a word, or was killed because it said none in time.
    """
    ours, theirs = os.pipe()
    try:
        process = _started(detach, theirs)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    words = None
    try:
        words = _read(ours, time.monotonic() + seconds)
    finally:
        os.close(ours)
        if words is None:
            process.kill()
            process.wait()
    # Whoever is ready is nobody's child from now on; whoever has ended is gone already.
    process.returncode = process.poll() or 0
    return words or b""


def _started(detach: Detach, told: int) -> subprocess.Popen[bytes]:
    detach.output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    output = os.open(detach.output, _APPEND, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603 - starting what was asked for is its purpose
            detach.argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=detach.cwd,
            env={**detach.environment, READY_FD: str(told)},
            pass_fds=(told,),
            start_new_session=True,
            umask=0o077,
        )
    finally:
        os.close(output)


def _read(handle: int, deadline: float) -> bytes | None:
    """Read until the other end is closed; None if it is not in time."""
    words = b""
    watch = select.poll()
    watch.register(handle, select.POLLIN)
    while watch.poll(max(0, deadline - time.monotonic()) * 1000):
        data = os.read(handle, _CHUNK)
        if not data:
            return words
        words += data
    return None


def speak(environ: MutableMapping[str, str], words: bytes) -> None:
    """Say to whoever detached us that we are ready. Only the first words are heard."""
    with suppress(OSError):
        os.close(last_words(environ, words))


def last_words(environ: MutableMapping[str, str], words: bytes) -> int:
    """Say why we end; who waits hears it when we have ended. Nothing is then held by us any more.

    Gives what would have to be closed for it to be heard before.
    """
    handle = int(environ.pop(READY_FD, "-1"))
    with suppress(OSError):
        os.write(handle, words)
    return handle


@dataclass(frozen=True, slots=True)
class Running:
    """Another process, held by its handle."""

    pid: int
    handle: int

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it is still there."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def has_open(self, file: Path) -> bool:
        """Whether it has this very file open."""
        try:
            wanted = file.stat()
            found = list(Path(f"/proc/{self.pid}/fd").iterdir())
        except OSError:
            return False
        return any(_is_same(path, wanted) for path in found)

    def ended(self, seconds: float) -> bool:
        """Wait for its end; false if it still runs then."""
        watch = select.poll()
        watch.register(self.handle, select.POLLIN)
        return bool(watch.poll(seconds * 1000))


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except OSError:
        return False


@contextmanager
def running(pid: int) -> Generator[Running | None]:
    """Hold a process; None if there is none of this number."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, OverflowError):
        yield None
        return
    try:
        yield Running(pid, handle)
    finally:
        os.close(handle)
