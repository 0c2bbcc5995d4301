"""The registry's stores on the home's database."""

from __future__ import annotations

import logging
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import orjson

from openfang.core.errors import Conflict
from openfang.core.values import dataclass
from openfang.registry.pins import Pin
from openfang.safety.definitions import Finding
from openfang.storage.marks import among
from openfang.storage.units import NAMES, PINS, Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openfang.storage.ports import Reader, Writes
    from openfang.storage.units import Line, Notice, Written

Row: TypeAlias = "tuple[Any, ...]"
_log = logging.getLogger("openfang.registry")
# Another node may have been faster. Then what is there stays, and is read again by everybody.
_NAMES = (
    "INSERT INTO names SELECT ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM names WHERE wire_name = ? AND tool <> ?) "
    "ON CONFLICT (tool) DO UPDATE SET wire_name = excluded.wire_name WHERE names.wire_name = ?"
)
_PINS = (
    "INSERT INTO pins (tool, digest, definition, first_seen, accepted, findings) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tool) DO UPDATE SET digest = excluded.digest, "
    "definition = excluded.definition, first_seen = excluded.first_seen, "
    "accepted = excluded.accepted, findings = excluded.findings "
    "WHERE pins.digest = ? AND pins.accepted = ?"
)
_ALL_NAMES = "SELECT tool, wire_name FROM names"
_COLUMNS = "tool, digest, definition, first_seen, accepted, findings"
_AT_ONCE = 100


@dataclass(slots=True)
class _Waiting:
    """A row that is not known to be written yet; `tried` while the writer has it."""

    row: Row
    tried: bool = False


@dataclass(slots=True)
class Backlog:
    """What the registry has to write: at once while the home is opened, later while it serves.

    Another process may hold the database for seconds, in which no call may wait. What could not be
    written stays here, and is tried again with the next change.
    """

    writer: Writes
    serving: bool = False
    _told: dict[str, tuple[Notice, ...]] = field(default_factory=dict["str", "tuple[Notice, ...]"])
    _rows: dict[str, dict[str, _Waiting]] = field(
        default_factory=dict["str", "dict[str, _Waiting]"]
    )
    _lines: list[Line] = field(default_factory=list["Line"])

    def put(self, sql: str, rows: Iterable[Row], *told: Notice) -> None:
        """Keep rows, each in place of what the same statement put under its first column.

        All nodes are told of them, this one too: it may not have been the first.
        """
        waiting, self._told[sql] = self._rows.setdefault(sql, {}), told
        for row in rows:
            waiting.pop(row[0], None)
            waiting[row[0]] = _Waiting(row)
        self._write()

    def add(self, unit: Unit) -> None:
        """Keep records."""
        self._lines += unit.lines
        self._write()

    def _write(self) -> None:
        """Write all that waits, each kind as a unit of its own: none takes another one along."""
        for sql, waiting in self._rows.items():
            fresh = [one for one in waiting.values() if not one.tried]
            for one in fresh:
                one.tried = True
            if fresh:
                rows = tuple((sql, one.row) for one in fresh)
                unit = Unit(statements=rows, notices=self._told[sql])
                self._submit(unit, partial(self._kept, waiting, fresh))
        lines, self._lines = tuple(self._lines), []
        if lines:
            self._submit(Unit(lines), partial(self._recorded, lines))

    def _submit(self, unit: Unit, tell: Callable[[Exception | None], None]) -> None:
        if not self.serving and isinstance(self.writer, Writer):
            try:
                self.writer.write_blocking(unit)
            finally:
                tell(None)
            return

        def done(written: asyncio.Future[Written]) -> None:
            error = written.exception()
            if error is not None:
                _log.error("What is known of the tools could not be kept yet: %s", error)
            tell(error if isinstance(error, Exception) else None)

        self.writer.submit(unit).add_done_callback(done)

    @staticmethod
    def _kept(
        waiting: dict[str, _Waiting], tried: Sequence[_Waiting], error: Exception | None
    ) -> None:
        """Forget what was written, and what the database will never take."""
        over = error is None or isinstance(error, Conflict)
        for one in tried:
            one.tried = over
            if over and waiting.get(one.row[0]) is one:
                del waiting[one.row[0]]

    def _recorded(self, lines: Sequence[Line], error: Exception | None) -> None:
        if error is not None:
            self._lines[:0] = lines


@dataclass(frozen=True, slots=True)
class StoredNames:
    """Wire names as they were first given, and as they were read at the start."""

    known: Mapping[str, str]
    backlog: Backlog

    @classmethod
    async def read(cls, database: Reader, backlog: Backlog) -> Self:
        """Read all of them."""
        return cls(await names_in(database), backlog)

    def load(self) -> Mapping[str, str]:
        """Give all of them."""
        return self.known

    def save(self, new: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Keep these, in this order, for who has had no name or the one `before`."""
        rows = ((tool, name, name, tool, before.get(tool, "")) for tool, name in new.items())
        self.backlog.put(_NAMES, rows, NAMES)


@dataclass(frozen=True, slots=True)
class StoredPins:
    """Definitions as they were first seen, or last accepted, as they were read at the start."""

    known: Mapping[str, Pin]
    backlog: Backlog

    @classmethod
    async def read(cls, database: Reader, backlog: Backlog) -> Self:
        """Read all of them."""
        return cls({pin.id: pin for pin in await _pins(database, "1 = 1", ())}, backlog)

    def load(self) -> Mapping[str, Pin]:
        """Give all of them."""
        return self.known

    def save(self, pins: Sequence[Pin], before: Mapping[str, Pin]) -> None:
        """Keep these in the place of those `before`, if they are still what is there."""
        rows = ((*_row(pin), *_state(before.get(pin.id))) for pin in pins)
        self.backlog.put(_PINS, rows, PINS)


async def names_in(database: Reader) -> dict[str, str]:
    """Read all wire names as they are by now."""
    return dict(await database.read(_ALL_NAMES))


async def pins_beside(database: Reader, known: Mapping[str, Pin]) -> list[Pin]:
    """Read those pins that are not as they are known."""
    states = await database.read("SELECT tool, digest, accepted FROM pins")
    other = [id_ for id_, *state in states if tuple(state) != _state(known.get(id_))]
    found = list[Pin]()
    for first in range(0, len(other), _AT_ONCE):
        some = other[first : first + _AT_ONCE]
        found += await _pins(database, among("tool", some), some)
    return found


async def _pins(database: Reader, where: str, given: Sequence[str]) -> list[Pin]:
    sql = f"SELECT {_COLUMNS} FROM pins WHERE {where}"  # noqa: S608 - constants and marks
    return [_pin(row) for row in await database.read(sql, given)]


def _state(pin: Pin | None) -> tuple[str, int]:
    """By what it is seen whether a pin is still the same."""
    return ("", 0) if pin is None else (pin.digest, int(pin.accepted))


def _pin(row: Row) -> Pin:
    id_, digest, definition, first_seen, accepted, findings = row
    return Pin(
        id=id_,
        digest=digest,
        definition=definition,
        first_seen=first_seen,
        accepted=bool(accepted),
        findings=tuple(Finding(**one) for one in orjson.loads(findings)),
    )


def _row(pin: Pin) -> Row:
    findings = orjson.dumps([one.body() for one in pin.findings]).decode()
    return (pin.id, pin.digest, pin.definition, pin.first_seen, int(pin.accepted), findings)
