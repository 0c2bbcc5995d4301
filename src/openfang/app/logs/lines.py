"""One event of the log, one line: JSON for programs, coloured text for people.

Secrets are taken out of whatever others wrote: the message, an exception's text, extra fields. What
could break a line or steer a terminal is escaped.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from functools import lru_cache
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, cast

import orjson

from openfang.core.trace import CURRENT_TRACE
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

LONGEST = 8_000
"""A longer text is cut."""
_MARGIN = 8_000
_SHORT = 500
_REMEMBERED = 512
_CAUSES = 4
_FRAMES = 8
_STANDARD = frozenset(vars(logging.makeLogRecord({})))
_NOT_EXTRA = _STANDARD | {"message", "asctime", "taskName", "color_message"}
_WORDS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "critical",
}
_COLOURS = {"debug": "2", "warning": "33", "error": "31", "critical": "1;31"}
_DELETE = b"\x7f"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A line that is a JSON object."""

    redact: Callable[[str], str]

    def line(self, record: logging.LogRecord) -> bytes:
        """Write one event."""
        text = _dumped(_fields(record, self.redact))
        if not text.isascii() or _DELETE in text:
            text = escaped(text.decode()).encode()
        return text + b"\n"


@dataclass(frozen=True, slots=True)
class TextLines:
    """A line that a person reads in a terminal."""

    redact: Callable[[str], str]
    colour: bool = True

    def line(self, record: logging.LogRecord) -> bytes:
        """Write one event."""
        fields = _fields(record, self.redact)
        moment, level, logger, message = (fields.pop(name) for name in _ALWAYS)
        rest = "".join(f" {name}={value}" for name, value in fields.items())
        clock = self._in("2", moment[11:23])
        word = self._in(_COLOURS.get(level, ""), f"{level.upper():<8}")
        text = escaped(f"{logger.removeprefix('openfang.')}: {message}")
        return f"{clock} {word} {text}{self._in('2', escaped(rest))}\n".encode()

    def _in(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and colour and text else text


def remembered(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Redact the same short text only once: most lines say what another line has said before.

    A value that becomes a secret later stays in such a text for a while: it is in the log already.
    """
    short = lru_cache(maxsize=_REMEMBERED)(redact)
    return lambda text: short(text) if len(text) <= _SHORT else redact(text)


_ALWAYS = ("time", "level", "logger", "message")


def escaped(text: str) -> str:
    """Escape, as JSON does, what is not printable: controls, line breaks, changes of direction."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _fields(record: logging.LogRecord, redact: Callable[[str], str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "time": f"{_second(int(record.created))}.{int(record.msecs):03d}Z",
        "level": _WORDS.get(record.levelno) or record.levelname.lower(),
        "logger": record.name,
        "message": _clean(record.getMessage(), redact),
    }
    trace = CURRENT_TRACE.get()
    if trace:
        fields["trace"] = trace
    if record.exc_info and record.exc_info[1]:
        fields["exception"] = _clean(" <- ".join(_chain(record.exc_info[1])), redact)
    if len(vars(record)) > len(_STANDARD):
        fields = {**fields, **_extra(record, redact), **fields}
    return fields


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _clean(text: str, redact: Callable[[str], str]) -> str:
    if len(text) <= LONGEST:
        return redact(text)
    # A secret that the cut goes through is not recognised any more: its part goes with the margin.
    kept = redact(text[: LONGEST + _MARGIN])[:-_MARGIN]
    return f"{kept} [cut: {len(kept)} of {len(text)} characters]"


def _chain(error: BaseException | None) -> Iterator[str]:
    """Tell an exception and what it came from, without source lines: those are for the editor."""
    for _ in range(_CAUSES):
        if error is None:
            return
        where = ", ".join(_places(error.__traceback__))
        text = f"{type(error).__name__}: {_words(error)}"
        yield f"{text} ({where})" if where else text
        error = _cause(error)


def _places(tracebacks: TracebackType | None) -> Iterator[str]:
    """Where it was raised, and who called that: the innermost first."""
    for frame, line in reversed(deque(walk_tb(tracebacks), maxlen=_FRAMES)):
        file = "/".join(frame.f_code.co_filename.rsplit("/", 2)[-2:])
        yield f"{file}:{line} in {frame.f_code.co_name}"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - somebody else's exception may break while it is told
        return "(no words)"


def _cause(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _extra(record: logging.LogRecord, redact: Callable[[str], str]) -> Mapping[str, Any]:
    """What the caller added, as JSON, so that a member's name can give a secret away."""
    given = {name: value for name, value in vars(record).items() if name not in _NOT_EXTRA}
    if not given:
        return {}
    text = _clean(_dumped(given).decode(), redact)
    try:
        return orjson.loads(text)
    except ValueError:
        return {"extra": text}


def _dumped(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Half of a surrogate pair, which is no text in UTF-8.
        return json.dumps(value, default=str).encode()
