"""Our command in processes of its own, forked from one that has everything imported (`zygote.py`).

There is one to fork from while tests run (`forking`, in `conftest.py`). Where there is none, or
where the start itself is looked at, a new interpreter is started, as a person's shell does.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from io import FileIO

SECONDS: Final = 60
_PROGRAM: Final = Path(__file__).with_name("zygote.py")
_LONGEST: Final = 100


@dataclass(slots=True)
class Forked:
    """One of them: what can be asked of a child that `subprocess` has started."""

    pid: int
    report: socket.socket
    code: int | None = None

    def poll(self) -> int | None:
        """With which code it ended, if it has."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def _ended(self, timeout: float) -> int | None:
        if self.code is not None:
            return self.code
        watch = select.poll()
        watch.register(self.report, select.POLLIN)
        if not watch.poll(timeout * 1000):
            return None
        # It stays where it is, for whoever asks at the same time.
        self.code = int(self.report.recv(_LONGEST, socket.MSG_PEEK))
        return self.code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process: TypeAlias = "Forked | subprocess.Popen[bytes]"


@dataclass(slots=True)
class Zygote:
    """Starts one process after another; it is started itself when there is need of it."""

    _running: subprocess.Popen[bytes] | None = None
    _connection: socket.socket | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[int, int, int],
        folder: Path,
    ) -> Generator[Forked]:
        """Start our command, with these for its standard input, output and error."""
        wanted = {"arguments": arguments, "environment": environment, "folder": str(folder)}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                request = json.dumps(wanted).encode()
                socket.send_fds(self._open(), [request], [*files, theirs.fileno()])
            ours.settimeout(SECONDS)
            yield Forked(int(ours.recv(_LONGEST)), ours)

    def _open(self) -> socket.socket:
        with self._opening:
            if self._connection is None:
                self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    command = [sys.executable, _PROGRAM, str(theirs.fileno())]
                    self._running = subprocess.Popen(command, pass_fds=[theirs.fileno()])
            return self._connection

    def close(self) -> None:
        if self._connection and self._running:
            self._connection.close()
            self._running.wait(SECONDS)


_ZYGOTES: Final[list[Zygote]] = []


@contextmanager
def forking() -> Generator[None]:
    """Have one to fork from."""
    with closing(Zygote()) as zygote:
        _ZYGOTES.append(zygote)
        try:
            yield
        finally:
            _ZYGOTES.remove(zygote)


def command(*arguments: str) -> list[str]:
    """Our command as a new interpreter runs it."""
    return [sys.executable, "-m", "openfang", *arguments]


def run(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run our command to its end."""
    if not _ZYGOTES:
        return whole(arguments, environment, stdin)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        files = (given.fileno(), out.fileno(), err.fileno())
        with _ZYGOTES[-1].start(arguments, environment, files, Path.cwd()) as running:
            code = running.wait(SECONDS)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def whole(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run our command to its end in a new interpreter."""
    return subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def started(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stderr: int,
    folder: Path,
    *,
    anew: bool = False,
) -> Generator[tuple[Process, FileIO]]:
    """Start our command, and give it and what it says; whatever is left of it is killed.

    With `anew` it is started as a person would, in a new interpreter.
    """
    start = _ZYGOTES[-1].start if _ZYGOTES and not anew else _anew
    reading, writing = os.pipe()
    with ExitStack() as stack:
        said = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        with os.fdopen(writing, "wb"), Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), writing, stderr)
            process = stack.enter_context(start(arguments, environment, files, folder))
        stack.callback(process.wait, SECONDS)
        stack.callback(process.kill)
        yield process, said


def _anew(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: tuple[int, int, int],
    folder: Path,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = files
    return subprocess.Popen(
        command(*arguments), stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=folder
    )
