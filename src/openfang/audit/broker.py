"""Between the pipeline and the log: records become text, redacted, durable, or the call stops.

A record is handed to the writer before anybody waits for it, so a caller that goes away takes
nothing with it. An ending that cannot be written (a full disk) is owed: it goes in front of the
next record that can.

The first call in a turn of the event loop commits at once; those that come beside it in the same
turn share a commit. So a lone caller waits for nobody, many share the cost, and a caller that never
pauses gives way.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.errors import AuditUnavailable, HomeError, Unrecorded
from openfang.storage.writer import Line, Unit, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.events import Record
    from openfang.storage.processes import Process

Statements = tuple[tuple[str, "Sequence[Any]"], ...]


@dataclass(slots=True, kw_only=True)
class Broker:
    """Writes records. `redact` takes and returns JSON text."""

    writer: Writer
    process: Process
    redact: Callable[[str], str]
    _open: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _owed: list[Line] = field(init=False, default_factory=list[Line])
    _first: str | None = field(init=False, default=None)

    async def append(self, records: Sequence[Record], statements: Statements = ()) -> Sequence[int]:
        """Return the records' numbers once they are durable."""
        lines = [self._line(record) for record in records]
        return await self._write(lines, statements, alone=not self._open)

    def unit(self, records: Sequence[Record]) -> Unit:
        """The records as the writer takes them: text, redacted."""
        return Unit(tuple(self._line(record) for record in records))

    async def refused(self, lines: Sequence[Line]) -> None:
        """Record that a call was refused. Lines of calls come redacted."""
        await self._write(list(lines), (), alone=not self._open)

    async def started(self, call_id: str, lines: Sequence[Line]) -> int:
        """Record that a call begins; nothing may run before this returns."""
        self._open[call_id] = self.writer.head.seq + 1
        statements: Statements = ()
        if not self.process.known:
            statements = (self.process.begin(self.writer.head.seq + 1),)
        try:
            numbers = await self._write(list(lines), statements, alone=self._alone(call_id))
        except AuditUnavailable:
            del self._open[call_id]
            raise
        return numbers[-1]

    async def finished(self, call_id: str, line: Line, statements: Statements = ()) -> int:
        """Record that a call ended; an ending that cannot be written now is owed."""
        try:
            numbers = await self._write([line], statements, alone=self._alone(call_id))
        except AuditUnavailable as error:
            self._owed.append(line)
            raise Unrecorded(
                f"The call ran, but its ending could not be recorded: {error.message}",
                way_out=error.way_out,
            ) from error
        finally:
            self._open.pop(call_id, None)
        return numbers[-1]

    @property
    def low_water(self) -> int:
        """The oldest record whose call may still be open."""
        return min(self._open.values(), default=self.writer.head.seq + 1)

    async def settle(self) -> None:
        """Wait for what is queued, and write what is owed."""
        await self.writer.drain()
        if self._owed:
            await self._write([], (), alone=True)

    def _alone(self, call_id: str) -> bool:
        """Whether this is the first call in this turn of the loop."""
        if self._first is None:
            self._first = call_id
            asyncio.get_running_loop().call_soon(self._next_turn)
        return self._first == call_id

    def _next_turn(self) -> None:
        self._first = None

    async def _write(
        self, lines: list[Line], statements: Statements, *, alone: bool
    ) -> Sequence[int]:
        owed, self._owed = self._owed, []
        unit = Unit((*owed, *lines), statements)
        try:
            numbers = self.writer.commit(unit) if alone else None
            if numbers is None:
                numbers = await self.writer.submit(unit)
        except HomeError as error:
            self._owed = owed + self._owed
            raise AuditUnavailable(
                f"audit unavailable: {error.message}", way_out=error.way_out
            ) from error
        return numbers[len(owed) :]

    def _line(self, record: Record) -> Line:
        payload, context = (
            self.redact(orjson.dumps(value).decode()) for value in (record.payload, record.context)
        )
        return Line(record.event, record.level, record.call_id, record.task_id, payload, context)
