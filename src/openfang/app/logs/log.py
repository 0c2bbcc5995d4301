"""The log of the daemon: who logs only puts a line down; a thread of its own writes it.

So a full pipe, a full disk or a stopped terminal never holds up a call. What cannot be kept is
dropped and counted, and the log itself says how much that was as soon as it can.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, Protocol, Self

from openfang.app.logs.file import File, Stream, Target
from openfang.app.logs.lines import JsonLines, TextLines, remembered
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

MAX_WAITING = 4_000_000
"""Bytes that wait for a target that does not take them; what comes after is dropped."""
GATHER_SECONDS = 0.1
_CLOSE_SECONDS = 2.0
_STDERR = 2
# What Python finds out for each event and no line of ours shows: a third of what an event costs.
_UNUSED = ("logThreads", "logProcesses", "logMultiprocessing", "_srcfile")
_LATER, _NOW, _STOP = "later", "now", "stop"


class Lines(Protocol):
    """How an event becomes a line."""

    def line(self, record: logging.LogRecord) -> bytes:
        """Write one event."""
        ...


class Drain:
    """Lines wait here until the thread has written them."""

    def __init__(
        self, target: Target, notice: Callable[[int], bytes], *, gather: float = GATHER_SECONDS
    ) -> None:
        self.dropped = 0
        self._target = target
        self._notice = notice
        self._gather = gather
        # Reentrant, and so is the queue: what the garbage collector ends may log in the middle.
        self._lock = RLock()
        self._signals = SimpleQueue[str]()
        self._lines: list[bytes] = []
        self._size = 0
        self._untold = 0
        self._thread = Thread(target=self._run, name="openfang-log", daemon=True)
        self._thread.start()

    def put(self, line: bytes, *, urgent: bool) -> None:
        """Leave a line to be written soon, or at once."""
        with self._lock:
            if self._size > MAX_WAITING:
                self._drop(1)
                return
            self._lines.append(line)
            self._size += len(line)
            first = len(self._lines) == 1
        if urgent:
            self._signals.put(_NOW)
        elif first:
            self._signals.put(_LATER)

    def close(self) -> None:
        """Write what is left, unless the target still takes nothing."""
        self._signals.put(_STOP)
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        signal = ""
        while signal != _STOP:
            signal = self._next()
            with self._lock:
                lines, self._lines, self._size = self._lines, [], 0
            self._write(lines)
        self._target.close()

    def _next(self) -> str:
        """Wait for a line, and then a little for those that come after it."""
        signal = self._signals.get()
        if signal == _LATER:
            with suppress(Empty):
                signal = self._signals.get(timeout=self._gather)
        return signal

    def _write(self, lines: list[bytes]) -> None:
        if lines:
            lost = self._target.write(b"".join(lines)) if self._tell() else len(lines)
            self._drop(lost)
        self._tell()

    def _drop(self, lines: int) -> None:
        with self._lock:
            self.dropped += lines
            self._untold += lines

    def _tell(self) -> bool:
        """Say how many lines are missing; false if even that cannot be written."""
        untold = self._untold
        if untold and self._target.write(self._notice(untold)):
            return False
        with self._lock:
            self._untold -= untold
        return True


class _Handler(logging.Handler):
    """Between the logging of Python and the thread."""

    def __init__(self, lines: Lines, own: Lines, drain: Drain) -> None:
        super().__init__()
        self._lines = lines
        self._own = own
        self._drain = drain

    @property
    def dropped(self) -> int:
        """How many lines were lost since the log was opened."""
        return self._drain.dropped

    def handle(self, record: logging.LogRecord) -> bool:
        """Put one event down. No lock is held meanwhile, and nothing here fails who logs."""
        try:
            line = self._lines.line(record)
        except Exception as error:  # noqa: BLE001 - an argument of the message may be anybody's
            line = self._own.line(_unspeakable(record, error))
        self._drain.put(line, urgent=record.levelno >= logging.ERROR)
        return True


@dataclass(frozen=True, slots=True)
class _Hooked:
    """How a logger was before us."""

    logger: logging.Logger
    level: int
    handlers: list[logging.Handler]
    propagate: bool

    @classmethod
    def hook(cls, name: str, handler: logging.Handler) -> _Hooked:
        logger = logging.getLogger(name)
        before = cls(logger, logger.level, logger.handlers, logger.propagate)
        logger.handlers = [handler]
        logger.propagate = False
        return before

    def unhook(self) -> None:
        self.logger.handlers = self.handlers
        self.logger.propagate = self.propagate
        self.logger.setLevel(self.level)


class Logs:
    """The open log: everything that logs in this process ends up here until it is closed.

    `own` writes the lines that the log says of itself; nothing in them has to be redacted.
    """

    def __init__(self, level: str, lines: Lines, own: Lines, target: Target) -> None:
        self._drain = Drain(target, lambda lost: own.line(_missing(lost)))
        self._handler = _Handler(lines, own, self._drain)
        self._hooked = [_Hooked.hook(name, self._handler) for name in ("", "openfang")]
        self._found_out = {name: getattr(logging, name) for name in _UNUSED}
        _find_out(dict.fromkeys(_UNUSED))
        logging.getLogger().setLevel(logging.WARNING)
        # Else a thread that warns would wait for whoever reads our stream, and our end for it.
        logging.captureWarnings(capture=True)
        self.set_level(level)

    @property
    def dropped(self) -> int:
        """How many lines were lost since the log was opened."""
        return self._drain.dropped

    def set_level(self, level: str) -> None:
        """Log this and what is graver; of other people's code warnings and errors only."""
        logging.getLogger("openfang").setLevel(level.upper())

    def close(self) -> None:
        """Put everything back as it was, once all lines are written."""
        while self._hooked:
            self._hooked.pop().unhook()
        logging.captureWarnings(capture=False)
        _find_out(self._found_out)
        self._handler.close()
        self._drain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_logs(
    level: str,
    *,
    file: Path | None,
    redact: Callable[[str], str],
    stream: int = _STDERR,
    environ: Mapping[str, str] = os.environ,
) -> Logs:
    """Log into a file, or to a stream: JSON lines, but coloured text where a person looks."""
    target = Stream(stream) if file is None else File(file)
    if file is None and os.isatty(stream):
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        make: Callable[[Callable[[str], str]], Lines] = partial(TextLines, colour=not plain)
    else:
        make = JsonLines
    return Logs(level, make(remembered(redact)), make(str), target)


def dropped_lines() -> int | None:
    """How many lines the open log has lost; nothing where none is open."""
    handlers = logging.getLogger("openfang").handlers
    return next((one.dropped for one in handlers if isinstance(one, _Handler)), None)


def _find_out(switches: Mapping[str, Any]) -> None:
    for name, value in switches.items():
        setattr(logging, name, value)


def _record(level: int, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord("openfang.logs", level, "", 0, text, values, None)


def _missing(lost: int) -> logging.LogRecord:
    return _record(logging.WARNING, "Log lines dropped, they could not be written: %s", lost)


def _unspeakable(record: logging.LogRecord, error: Exception) -> logging.LogRecord:
    kind = type(error).__name__
    return _record(
        record.levelno, "A line of %s could not be put into words: %s", record.name, kind
    )
