"""Server-sent events, read as their bytes come: in linear time, and never more than the limit."""

from __future__ import annotations

import re
from typing import Final

from openfang.core.values import dataclass
from openfang.protocols.mcp.messages import MAX_MESSAGE

_LINE_END = re.compile(rb"\r\n?|\n")
_BLANK_LINES = re.compile(rb"[\r\n]{3,}")
_RUNS: Final = (b"\n\n\n", b"\r\r\r", b"\r\n\r\n\r\n")
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_ID: Final = 4096
_LONGEST_RETRY: Final = 9


class EventTooLarge(ValueError):  # noqa: N818 - it reads as what it is
    """An event, or a line of one, is over the limit."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `id` is the last one seen, of this event or an earlier one."""

    name: str
    data: bytes
    id: str


class EventReader:
    """Feed it bytes; it gives events. `last_id` and `retry` outlive the events that set them."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self._limit = limit
        self._line = bytearray()
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data = bytearray()
        self._some = False

    def again(self) -> EventReader:
        """A reader for the stream that goes on where this one ended."""
        reader = EventReader(self._limit)
        reader.last_id, reader.retry = self.last_id, self.retry
        return reader

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and give the events that they complete."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        if any(run in chunk for run in _RUNS):
            chunk = _BLANK_LINES.sub(b"\n\n", chunk)  # of many, one says as much
        events: list[Event] = []
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._keep(chunk[start : end.start()])
            self._take_line(events)
            start = end.end()
        self._keep(chunk[start:])
        return events

    def _keep(self, part: bytes) -> None:
        self._line += part
        if len(self._line) + len(self._data) > self._limit:
            raise EventTooLarge(f"An event is larger than {self._limit} bytes")

    def _take_line(self, events: list[Event]) -> None:
        line, self._line = bytes(self._line), bytearray()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if line:
            self._field(line)
        elif event := self._finished():
            events.append(event)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                if self._some:
                    self._data += b"\n"
                self._data += value
                self._some = True
            case b"event":
                self._name = value.decode(errors="replace")
            case b"id" if b"\0" not in value and len(value) <= _LONGEST_ID:
                self.last_id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) <= _LONGEST_RETRY:
                self.retry = int(value) / 1000
            case _:
                pass  # a comment, or a field of the future

    def _finished(self) -> Event | None:
        name, data, some = self._name, bytes(self._data), self._some
        self._name, self._some = "", False
        self._data.clear()
        return Event(name or "message", data, self.last_id) if some else None
