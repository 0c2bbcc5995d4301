"""What is to be done at its time, as rows; who runs one takes it first, so that nobody else may."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.values import dataclass
from openfang.storage.marks import marks, outside

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
NEVER: Final = 2**63 - 1
"""When a row is due that waits for another one to make way."""
_COLUMNS: Final = "id, kind, subject, due, tries, body, party, place"
_SAME: Final = "id = ? AND due = ? AND tries = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """Something to be done when it is `due`, in nanoseconds; `tries` have failed before.

    `party` is for whom, and `place` where: of those that name the same, only some run at once.
    """

    id: str
    kind: str
    subject: str
    due: int
    tries: int = 0
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    party: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Besides:
    """What is not looked for: these ids, and all that is for these parties or at these places."""

    ids: Collection[str] = ()
    parties: Collection[str] = ()
    places: Collection[str] = ()


NOTHING: Final = Besides()


@dataclass(frozen=True, slots=True)
class TimerStore:
    """Reads timers; the statements below change them."""

    database: Reader

    async def soonest(self, kind: str, limit: int, but: Besides = NOTHING) -> list[Timer]:
        """List those of a kind that are due first."""
        left = {"id": but.ids, "party": but.parties, "place": but.places}
        others = "".join(f" AND {outside(name, out)}" for name, out in left.items())
        sql = (
            f"SELECT {_COLUMNS} FROM timers WHERE kind = ?{others} "  # noqa: S608 - constants and marks
            f"ORDER BY due, id LIMIT {limit}"
        )
        rows = await self.database.read(sql, (kind, *but.ids, *but.parties, *but.places))
        return [_timer(row) for row in rows]


def add(timer: Timer) -> Statement:
    """Keep a new timer; the unit fails if there is one of its id."""
    return f"INSERT INTO timers ({_COLUMNS}) VALUES ({marks(_row(timer))})", _row(timer)  # noqa: S608 - constants


def replace(timer: Timer) -> Statement:
    """Keep a timer in the place of what was there under its id."""
    sql, parameters = add(timer)
    changed = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
    return f"{sql} ON CONFLICT (id) DO UPDATE SET {changed}, taken_by = ''", parameters


def take(timer: Timer, until: int, by: str) -> tuple[Statement, ...]:
    """Take a timer, for nobody else to run it until then. If somebody was faster the unit fails."""
    gone = (
        f"INSERT INTO timers ({_COLUMNS}) SELECT ?, NULL, '', 0, 0, '', '', '' "  # noqa: S608 - constants
        f"WHERE NOT EXISTS (SELECT 1 FROM timers WHERE {_SAME})"
    )
    same = (timer.id, timer.due, timer.tries)
    sql = "UPDATE timers SET due = ?, taken_by = ? WHERE id = ?"
    return (gone, (timer.id, *same)), (sql, (until, by, timer.id))


def release(process: str, now: int) -> Statement:
    """Have all that a process had taken, and that it will not run to its end, due now."""
    sql = "UPDATE timers SET due = ?, taken_by = '' WHERE taken_by = ? AND taken_by <> ''"
    return sql, (now, process)


def again(timer: Timer, due: int, tries: int) -> Statement:
    """Have it run again then, unless somebody has changed it since it was taken."""
    sql = f"UPDATE timers SET due = ?, tries = ?, taken_by = '' WHERE {_SAME}"  # noqa: S608 - constants
    return sql, (due, tries, timer.id, timer.due, timer.tries)


def done(timer: Timer) -> Statement:
    """Forget it, unless somebody has changed it since it was taken."""
    return f"DELETE FROM timers WHERE {_SAME}", (timer.id, timer.due, timer.tries)  # noqa: S608 - constants


def _row(timer: Timer) -> tuple[Any, ...]:
    body = orjson.dumps(timer.body).decode()
    first = (timer.id, timer.kind, timer.subject, timer.due, timer.tries)
    return *first, body, timer.party, timer.place


def _timer(row: tuple[Any, ...]) -> Timer:
    return Timer(
        id=row[0],
        kind=row[1],
        subject=row[2],
        due=row[3],
        tries=row[4],
        body=orjson.loads(row[5]),
        party=row[6],
        place=row[7],
    )
