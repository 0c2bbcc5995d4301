"""How messages are told apart on a stream: a line each, or a length before each. Pure: no I/O.

Each message says for itself which of the two it is. A byte order mark, carriage returns and blank
lines are no messages; one that is too long is dropped while it comes.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import INVALID_REQUEST, PARSE_ERROR, RpcError
from openfang.protocols.mcp.messages import decode

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.protocols.mcp.messages import Id

MAX_FRAME: Final = 10_000_000
# Where the error that refuses a batch names the requests that were in it.
REFUSED: Final = "requests"
_BLANK: Final = b" \t\r\n"
_GAP = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*")
_BOM: Final = b"\xef\xbb\xbf"
_HEADER: Final = b"content-"
_FIELD = re.compile(rb"\A([A-Za-z][A-Za-z0-9-]*)[ \t]*:(.*)\Z", re.DOTALL)
# Whoever announces a gigabyte would have all that follows taken for it.
_NUMBER = re.compile(rb"\A[0-9]{1,9}\Z")
_LONGEST_FIELD: Final = 8192
_MOST_FIELDS: Final = 64
_EDGE: Final = 512
# An id among the first fields, before anything nested; or among the last ones.
_PLAIN: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*'
_NAMED: Final = rb'"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\]{0,256}")\s*'
_AHEAD = re.compile(rb"\A\s*\{\s*(?:" + _PLAIN + rb",\s*)*" + _NAMED + rb"[,}]")
_BEHIND = re.compile(rb",\s*" + _NAMED + rb"(?:,\s*" + _PLAIN + rb")*\}\s*\Z")


class Framing(Enum):
    """How a message is told from the next one."""

    LINE = "line"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands where a message stands."""

    body: bytes
    framing: Framing


@dataclass(frozen=True, slots=True)
class Oversize:
    """A message that was too long; its id, as far as its two ends tell."""

    framing: Framing
    id: Id | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A head without a message that could be found."""

    reason: str


Framed: TypeAlias = Frame | Oversize | Broken


def framed(body: bytes, framing: Framing) -> bytes:
    """Make a message of one line, ready to be written."""
    if framing is Framing.LINE:
        return body + b"\n"
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def one_line(body: bytes) -> bytes:
    """Take the line breaks out of JSON: inside of its strings there are none."""
    return body.replace(b"\n", b" ") if b"\n" in body else body


def decoded(body: bytes) -> object:
    """Decode what a client sent, which is UTF-8 or nothing. Raises the error to answer with."""
    try:
        if not body.isascii():
            body.decode()
        return decode(body)
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from error


def in_flight(number: Id) -> RpcError:
    """Refuse a request whose id another one has that is not answered yet."""
    known = f"Invalid request: one with the id {str(number)[:100]} is in flight"
    return RpcError(INVALID_REQUEST, known)


def unread(found: Oversize | Broken, limit: int = MAX_FRAME) -> RpcError:
    """Say why there was nothing to read."""
    if isinstance(found, Broken):
        return RpcError(PARSE_ERROR, f"Parse error: {found.reason}")
    return RpcError(INVALID_REQUEST, f"The message is longer than {limit} bytes")


class Unframer:
    """Takes what was read, and gives what is whole."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._data = bytearray()
        self._ended = False
        self._found = self._all()

    def feed(self, data: bytes) -> list[Framed]:
        """Take some bytes. However long a message is, each is looked at once."""
        self._data += data
        return list(iter(partial(next, self._found, None), None))

    def end(self) -> list[Framed]:
        """Hear that nothing more comes: the last line needs no end of its own."""
        self._ended = True
        return self.feed(b"")

    def _all(self) -> Generator[Framed | None]:
        """Go from message to message; None stands for bytes that have not come yet."""
        while True:
            start = yield from self._start()
            if not start:
                return
            if start.lower() == _HEADER:
                yield from self._counted()
            else:
                yield from self._lined()

    def _start(self) -> Generator[None, None, bytes]:
        """Skip what is between messages, until there is enough to tell what comes."""
        data = self._data
        while True:
            gap = _GAP.match(data)
            del data[: gap.end() if gap else 0]
            start = bytes(data[: len(_HEADER)])
            if self._ended or not _may_become(start):
                return start
            yield None

    def _lined(self) -> Generator[Framed | None]:
        searched = 0
        while (end := self._data.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._data)
            if searched > self._limit + len(b"\r"):
                yield from self._dropped(Framing.LINE, None)
                return
            yield None
        body = self._taken(end + 1 if end >= 0 else len(self._data)).rstrip(_BLANK)
        if len(body) > self._limit:
            yield Oversize(Framing.LINE, _id(body[:_EDGE], body[-_EDGE:]))
        else:
            yield Frame(body, Framing.LINE)

    def _counted(self) -> Generator[Framed | None]:
        length = yield from self._length()
        if length is None:
            yield Broken("a head without a Content-Length that can be believed")
            return
        if length > self._limit:
            yield from self._dropped(Framing.LENGTH, length)
            return
        while len(self._data) < length and not self._ended:
            yield None
        if len(self._data) < length:
            self._data.clear()
            yield Broken("the input ends inside of a message")
        else:
            yield Frame(self._taken(length), Framing.LENGTH)

    def _length(self) -> Generator[None, None, int | None]:
        """Read a head up to its blank line, or up to what cannot belong to it."""
        lengths: set[bytes] = set()
        for _ in range(_MOST_FIELDS):
            end = yield from self._end_of_line()
            line = bytes(self._data[:end]).strip(_BLANK)
            if line.startswith((b"{", b"[")):
                return None
            del self._data[: end + 1]
            if not line:
                number = lengths.pop() if len(lengths) == 1 else b""
                return int(number) if _NUMBER.match(number) else None
            if (field := _FIELD.match(line)) and field[1].lower() == b"content-length":
                lengths.add(field[2].strip(_BLANK))
        return None

    def _end_of_line(self) -> Generator[None, None, int]:
        """Find where a line of a head ends; one without end is as long as it may be."""
        while (end := self._data.find(b"\n", 0, _LONGEST_FIELD)) < 0:
            if self._ended or len(self._data) >= _LONGEST_FIELD:
                return min(len(self._data), _LONGEST_FIELD)
            yield None
        return end

    def _dropped(self, framing: Framing, left: int | None) -> Generator[Framed | None]:
        """Let a message pass by: up to a length, or to the end of its line."""
        head, tail = bytes(self._data[:_EDGE]), b""
        while True:
            end = self._data.find(b"\n") if left is None else left
            whole = 0 <= end <= len(self._data)
            part = self._taken(end if whole else len(self._data))
            tail = (tail + part[-_EDGE:])[-_EDGE:]
            if whole or self._ended:
                yield Oversize(framing, _id(head, tail))
                return
            left = None if left is None else left - len(part)
            yield None
            head = head if len(head) == _EDGE else (head + bytes(self._data[:_EDGE]))[:_EDGE]

    def _taken(self, count: int) -> bytes:
        part = bytes(self._data[:count])
        del self._data[:count]
        return part


def _may_become(start: bytes) -> bool:
    """Whether so little could still be the beginning of a head, or of a byte order mark."""
    short = len(start) < len(_HEADER)
    return _BOM.startswith(start) or (short and _HEADER.startswith(start.lower()))


def _id(head: bytes, tail: bytes) -> Id | None:
    """Find the id of a message of which only the two ends are known."""
    found = _AHEAD.search(head) or _BEHIND.search(tail)
    if found is None:
        return None
    try:
        number: object = orjson.loads(found[1])
    except orjson.JSONDecodeError:
        return None
    return number if isinstance(number, int | str) else None
