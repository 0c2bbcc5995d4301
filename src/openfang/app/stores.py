"""The registry's stores on the home's database."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import orjson

from openfang.core.errors import Conflict
from openfang.registry.pins import Pin
from openfang.safety.definitions import Finding
from openfang.storage.units import Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openfang.storage.ports import Reader, Writes
    from openfang.storage.units import Line, Written

Row: TypeAlias = "tuple[Any, ...]"
_log = logging.getLogger("openfang.registry")
_NAMES = (
    "INSERT INTO names VALUES (?, ?) "
    "ON CONFLICT (tool) DO UPDATE SET wire_name = excluded.wire_name"
)
_PINS = (
    "INSERT INTO pins (tool, digest, definition, first_seen, accepted, findings) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tool) DO UPDATE SET digest = excluded.digest, "
    "definition = excluded.definition, first_seen = excluded.first_seen, "
    "accepted = excluded.accepted, findings = excluded.findings"
)


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
    _rows: dict[str, dict[str, _Waiting]] = field(
        default_factory=dict["str", "dict[str, _Waiting]"]
    )
    _lines: list[Line] = field(default_factory=list["Line"])

    def put(self, sql: str, rows: Iterable[Row]) -> None:
        """Keep rows, each in place of what the same statement put under its first column."""
        waiting = self._rows.setdefault(sql, {})
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
                unit = Unit(statements=tuple((sql, one.row) for one in fresh))
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
        return cls(dict(await database.read("SELECT tool, wire_name FROM names")), backlog)

    def load(self) -> Mapping[str, str]:
        """Give all of them."""
        return self.known

    def save(self, new: Mapping[str, str]) -> None:
        """Keep these, in this order."""
        self.backlog.put(_NAMES, new.items())


@dataclass(frozen=True, slots=True)
class StoredPins:
    """Definitions as they were first seen, or last accepted, as they were read at the start."""

    known: Mapping[str, Pin]
    backlog: Backlog

    @classmethod
    async def read(cls, database: Reader, backlog: Backlog) -> Self:
        """Read all of them."""
        sql = "SELECT tool, digest, definition, first_seen, accepted, findings FROM pins"
        return cls({row[0]: _pin(row) for row in await database.read(sql)}, backlog)

    def load(self) -> Mapping[str, Pin]:
        """Give all of them."""
        return self.known

    def save(self, pins: Sequence[Pin]) -> None:
        """Keep these in place of what was there."""
        self.backlog.put(_PINS, map(_row, pins))


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
