"""Between the pipeline and the log: records become text, redacted, durable, or the call stops.

A record is handed to the writer before anybody waits for it, so a caller that goes away takes
nothing with it. An ending that cannot be written (a full disk) is owed: it goes in front of the
next record that can.

The first task that calls in a turn of the event loop commits at once; those that come beside it in
the same turn share a commit, and so do all of the next turn: where there were several there will be
more. So a lone caller waits for nobody, many share the cost, and a caller that never pauses gives
way after a few calls.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.errors import AuditUnavailable, HomeError, Unrecorded
from openfang.core.events import TOOL_INVOCATION_END
from openfang.core.results import Outcome
from openfang.core.values import dataclass
from openfang.storage.units import Fate, Head, Line, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.events import Record
    from openfang.storage.ports import Writes
    from openfang.storage.processes import Process
    from openfang.storage.units import Notice, Written

Statements = tuple[tuple[str, "Sequence[Any]"], ...]
_COMMITS_IN_A_TURN = 16
"""Of one task: two milliseconds or so, and the loop goes round."""
_NOT_MADE = orjson.dumps(
    {
        "outcome": Outcome.INTERRUPTED.value,
        "reason": "the call was not made: its start could not be known to be on record",
    }
).decode()
_NO_CHANGE = ("UPDATE settings SET value = value WHERE name = 'node'", ())


@dataclass(slots=True, kw_only=True)
class Broker:
    """Writes records. `redact` takes and returns JSON text."""

    writer: Writes
    process: Process
    redact: Callable[[str], str]
    _open: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _ends: set[str] = field(init=False, default_factory=set[str])
    _owed: list[Line] = field(init=False, default_factory=list[Line])
    _handed: set[str] = field(init=False, default_factory=set[str])
    _first: object = field(init=False, default=None)
    _left: int = field(init=False, default=0)
    _several: bool = field(init=False, default=False)
    _crowded: bool = field(init=False, default=False)
    _failing: bool = field(init=False, default=False)
    _start: Fate = field(init=False)
    _ending: Fate = field(init=False)

    def __post_init__(self) -> None:
        self._start = Fate(lost=self._never_began, kept=self._was_not_made)
        self._ending = Fate(lost=self._owe, kept=self._has_ended)

    async def append(
        self,
        records: Sequence[Record],
        statements: Statements = (),
        notices: tuple[Notice, ...] = (),
    ) -> Sequence[int]:
        """Return the records' numbers once they are durable."""
        unit = Unit(tuple(self._line(record) for record in records), statements, notices)
        if self._owed:
            await self._pay()
        return (await self._commit(unit, alone=not self._open)).numbers

    def unit(self, records: Sequence[Record]) -> Unit:
        """The records as the writer takes them: text, redacted."""
        return Unit(tuple(self._line(record) for record in records))

    async def refused(self, lines: Sequence[Line]) -> None:
        """Record that a call was refused. Lines of calls come redacted."""
        if self._owed:
            await self._pay()
        await self._commit(Unit((*lines,)), alone=not self._open)

    async def started(
        self, call_id: str, lines: Sequence[Line], statements: Statements = ()
    ) -> int:
        """Record that a call begins; nothing may run before this returns."""
        seq = self._open[call_id] = self.writer.head.seq + 1
        process = self.process
        if not process.known:
            statements = (process.begin(seq), *statements)
        if self._owed:
            try:
                await self._pay()
            except AuditUnavailable:
                self._open.pop(call_id, None)
                raise
        unit = Unit((*lines,), statements)
        written = await self._commit(unit, alone=self._alone(), fate=self._start)
        process.known = True
        return written.numbers[-1]

    async def finished(self, call_id: str, line: Line, statements: Statements = ()) -> Head:
        """Record that a call ended, and say where; an ending that cannot be written now is owed."""
        if call_id not in self._open:
            raise Unrecorded(
                "The call ran, but this node was taken for dead meanwhile: another one recorded it "
                "as interrupted.",
                way_out="look whether it did what it was to do before you make it again",
            )
        unit = Unit((line,), statements)
        self._ends.add(call_id)
        try:
            if self._owed:
                await self._pay(unit.lines)
            written = await self._commit(unit, alone=self._alone(), fate=self._ending)
        except AuditUnavailable as error:
            raise Unrecorded(
                f"The call ran, but its ending could not be recorded: {error.message}",
                way_out=error.way_out,
            ) from error
        except BaseException:
            self._close(call_id)  # nobody waits any more, but it is on its way
            raise
        self._close(call_id)
        return Head(written.numbers[-1], written.hash)

    @property
    def in_flight(self) -> int:
        """How many calls have begun and not ended."""
        return len(self._open)

    @property
    def failing(self) -> bool:
        """Whether the last record could not be written: then no call is taken."""
        return self._failing

    async def try_again(self) -> None:
        """Find out whether records can be written again: what is owed, and a change of nothing."""
        with suppress(AuditUnavailable):
            await self.append((), (_NO_CHANGE,))
            self._failing = False

    @property
    def unfinished(self) -> bool:
        """Whether any call has no ending in the log yet."""
        return bool(self._open or self._owed)

    @property
    def low_water(self) -> int:
        """The oldest record whose call may still be open."""
        return min(self._open.values(), default=self.writer.head.seq + 1)

    def hand_over(self, process: str) -> None:
        """Leave the endings of all calls of this process to who wrote them in our place.

        Nothing may be queued, so that none of them is on its way.
        """
        self._handed.add(process)
        self._open.clear()
        self._ends.clear()
        self._owed.clear()

    @property
    def open(self) -> frozenset[str]:
        """The calls that have begun and not ended."""
        return frozenset(self._open)

    def have_ended(self, calls: frozenset[str]) -> bool:
        """Whether each of these calls has its ending on record."""
        return not self._owed and calls.isdisjoint(self._open)

    async def settle(self) -> None:
        """Wait for what is queued, and write what is owed."""
        await self.writer.drain()
        if self._owed:
            await self._pay()

    def _alone(self) -> bool:
        """Whether one task alone calls in this turn of the loop, as in the turn before."""
        task = asyncio.current_task()
        if self._first is None:
            self._first, self._left = task, _COMMITS_IN_A_TURN
            asyncio.get_running_loop().call_soon(self._next_turn)
        elif self._first is not task:
            self._several = True
            return False
        self._left -= 1
        return self._left >= 0 and not self._crowded

    def _next_turn(self) -> None:
        self._first = None
        self._crowded, self._several = self._several, False

    async def _pay(self, behind: Sequence[Line] = ()) -> None:
        """Write what is owed, in a unit of its own, so that no other failure takes it along.

        `behind` are endings that wait for it: they are owed too if it cannot be written.
        """
        owed, self._owed = self._owed, []
        try:
            await self._commit(Unit(tuple(owed)), alone=True, fate=self._ending)
        except BaseException:
            self._owe(Unit((*behind,)))
            raise

    async def _commit(self, unit: Unit, *, alone: bool, fate: Fate | None = None) -> Written:
        try:
            written = self.writer.commit(unit, fate) if alone else None
            # A caller that goes away cancels the future, not the unit.
            written = await self.writer.submit(unit, fate) if written is None else written
        except HomeError as error:
            self._failing = True
            raise _unavailable(error) from error
        if unit.lines:  # that something else could be written says nothing about records
            self._failing = False
        return written

    def _never_began(self, unit: Unit) -> None:
        """Forget a call whose start failed: it is not on record."""
        self._close(unit.lines[-1].call_id)

    def _was_not_made(self, unit: Unit) -> None:
        """End a call whose start is on record after all: it was refused, since nobody knew.

        But for one whose caller had gone before that: its ending is on its way.
        """
        start = unit.lines[-1]
        if start.call_id not in self._open or start.call_id in self._ends:
            return
        end = start._replace(event=TOOL_INVOCATION_END, level="error", payload=_NOT_MADE)
        written = self.writer.submit(Unit((end,)), self._ending)
        written.add_done_callback(lambda done: self._ended(start.call_id, done))

    def _ended(self, call_id: str, done: asyncio.Future[Written]) -> None:
        if done.exception() is None:  # else it is owed, or in doubt itself
            self._close(call_id)

    def _owe(self, unit: Unit) -> None:
        """Keep an ending that failed, also when its caller no longer waits for it.

        But for calls of a process that was taken for dead: they were ended by another one.
        """
        for line in unit.lines:
            self._close(line.call_id)
            if not self._handed or orjson.loads(line.context).get("process") not in self._handed:
                self._owed.append(line)

    def _has_ended(self, unit: Unit) -> None:
        for line in unit.lines:
            self._close(line.call_id)

    def _close(self, call_id: str) -> None:
        self._open.pop(call_id, None)
        self._ends.discard(call_id)

    def _line(self, record: Record) -> Line:
        payload, context = (
            self.redact(orjson.dumps(value).decode()) for value in (record.payload, record.context)
        )
        return Line(record.event, record.level, record.call_id, record.task_id, payload, context)


def _unavailable(error: HomeError) -> AuditUnavailable:
    return AuditUnavailable(f"audit unavailable: {error.message}", way_out=error.way_out)
