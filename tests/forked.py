"""Our command in processes of its own, forked from one that has everything imported (`zygote.py`).

There is one to fork from while tests run (`forking`, in `conftest.py`). Where there is none, or
where the start itself is looked at, a new interpreter is started, as a person's shell does.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from io import BufferedReader, BufferedWriter, FileIO

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


class Start(Protocol):
    """How a command begins, with which standard streams and where."""

    def __call__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[int, int, int],
        folder: Path,
        *,
        terminal: bool = False,
    ) -> AbstractContextManager[Process]: ...


class Piped:
    """One whose standard streams are pipes: used as what `subprocess.Popen` gives."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        given, self.stdin = _pipe()
        self.stdout, out = _pipe()
        self.stderr, err = _pipe()
        with ExitStack() as held, given, out, err:
            files = given.fileno(), out.fileno(), err.fileno()
            process = held.enter_context(_starter()(arguments, environment, files, Path.cwd()))
            held.callback(process.wait, SECONDS)
            for end in (self.stdin, self.stdout, self.stderr):
                held.callback(_close, end)
            self._held = held.pop_all()
        self.pid, self.poll, self.wait = process.pid, process.poll, process.wait
        self.send_signal, self.kill = process.send_signal, process.kill

    @property
    def returncode(self) -> int:
        """With which code it ended."""
        return self.wait(SECONDS)

    def communicate(self, timeout: float = SECONDS) -> tuple[bytes, bytes]:
        """Say no more, and read until it has ended."""
        with self, ThreadPoolExecutor(1) as reader:
            _close(self.stdin)
            errors = reader.submit(self.stderr.read)
            said = self.stdout.read(), errors.result(timeout)
            self.wait(timeout)
            return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def _pipe() -> tuple[BufferedReader, BufferedWriter]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


def _close(end: BufferedReader | BufferedWriter) -> None:
    with suppress(BrokenPipeError):
        end.close()


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
        *,
        terminal: bool = False,
    ) -> Generator[Forked]:
        """Start our command, with these for its standard input, output and error.

        They may be a `terminal` that controls it, whose Ctrl-C is a signal to it.
        """
        wanted = {
            "arguments": arguments,
            "environment": environment,
            "folder": str(folder),
            "terminal": terminal,
        }
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
    start = _anew if anew else _starter()
    reading, writing = os.pipe()
    with ExitStack() as stack:
        said = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        with os.fdopen(writing, "wb"), Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), writing, stderr)
            process = stack.enter_context(start(arguments, environment, files, folder))
        stack.callback(process.wait, SECONDS)
        stack.callback(process.kill)
        yield process, said


@contextmanager
def at_terminal(
    arguments: Sequence[str], environment: Mapping[str, str], *, controlling: bool = False
) -> Generator[tuple[Process, int]]:
    """Start our command as a person does, and give it and the person's side of the terminal.

    Where it is the `controlling` one, Ctrl-C is a signal to the command.
    """
    ours, theirs = pty.openpty()
    with ExitStack() as stack:
        stack.callback(os.close, ours)
        try:
            files, start = (theirs, theirs, theirs), _starter()
            begun = start(arguments, environment, files, Path.cwd(), terminal=controlling)
            process = stack.enter_context(begun)
        finally:
            os.close(theirs)
        stack.callback(process.wait, SECONDS)
        stack.callback(process.kill)
        yield process, ours


def _starter() -> Start:
    return _ZYGOTES[-1].start if _ZYGOTES else _anew


def _anew(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: tuple[int, int, int],
    folder: Path,
    *,
    terminal: bool = False,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = files
    words = ["setsid", "--ctty", *command(*arguments)] if terminal else command(*arguments)
    return subprocess.Popen(
        words, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=folder
    )
