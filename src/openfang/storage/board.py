"""The task board as rows: what is to be done for somebody, who has taken it, what came of it.

A change is one statement that finds its row only while the change is allowed, whatever other
processes do meanwhile; who made it reads the row again to see whether it was.
"""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from openfang.core.labels import Labels
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
MOST_OPEN: Final = 1_000
"""Tasks of one board that are not completed."""
MOST_COMPLETED: Final = 1_000
"""Completed ones that are kept; the oldest go first."""


class Status(Enum):
    """How far a task has got."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """A task on somebody's board. Who has it is `owner`; times are in nanoseconds."""

    id: str
    space: str
    title: str
    description: str
    assigned_to: str = ""
    priority: int = 0
    posted_by: str
    posted_at: int
    status: Status = Status.PENDING
    owner: str = ""
    claimed_until: int = 0
    result: str = ""
    completed_at: int = 0
    labels: Labels = Labels.NONE
    changed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a board, or takes from it; whose board it is sees all of it."""

    id: str
    space: str

    @property
    def everything(self) -> bool:
        """Whether the board is its own."""
        return self.id == self.space


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Who changes a board, by which call and when."""

    viewer: Viewer
    call: str
    now: int


_NAMES: Final = tuple(field.name for field in fields(Posting))
_COLUMNS: Final = ", ".join(_NAMES)
_MARKS: Final = ", ".join("?" * len(_NAMES))
_SEEN: Final = "space = ? AND (? OR assigned_to IN ('', ?) OR posted_by = ? OR owner = ?)"
_FREE: Final = "(status = 'pending' OR (status = 'in_progress' AND claimed_until <= ?))"
_TAKEN: Final = "status = 'in_progress', owner = ?, claimed_until = ?, changed_by = ?"


@dataclass(frozen=True, slots=True)
class BoardStore:
    """Reads boards; the statements below change them."""

    database: Reader

    async def find(self, viewer: Viewer, task: str) -> Posting | None:
        """Read one that this viewer may see."""
        sql = f"SELECT {_COLUMNS} FROM board WHERE id = ? AND {_SEEN}"  # noqa: S608 - constants
        rows = await self.database.read(sql, (task, *_seen(viewer)))
        return _posting(rows[0]) if rows else None

    async def changed(self, space: str, call: str) -> Posting | None:
        """Read the one that a call changed; none if it changed none."""
        sql = f"SELECT {_COLUMNS} FROM board WHERE space = ? AND changed_by = ?"  # noqa: S608 - constants
        rows = await self.database.read(sql, (space, call))
        return _posting(rows[0]) if rows else None

    async def page(
        self, viewer: Viewer, status: Status | None, limit: int
    ) -> tuple[list[Posting], int]:
        """List those that this viewer may see, the newest first, and count all of them."""
        where, values = _SEEN, _seen(viewer)
        if status is not None:
            where, values = f"{where} AND status = ?", (*values, status.value)
        newest = "ORDER BY posted_at DESC, id DESC"
        # Only of those that are wanted are the long texts read.
        sql = (
            f"SELECT {_COLUMNS} FROM board WHERE id IN "  # noqa: S608 - constants
            f"(SELECT id FROM board WHERE {where} {newest} LIMIT ?) {newest}"
        )
        found = [_posting(row) for row in await self.database.read(sql, (*values, limit))]
        ((total,),) = await self.database.read(f"SELECT COUNT(*) FROM board WHERE {where}", values)  # noqa: S608 - constants
        return found, total


def post(posting: Posting) -> Statement:
    """Put a task up, unless the board is full."""
    sql = (
        f"INSERT INTO board ({_COLUMNS}) SELECT {_MARKS} WHERE "  # noqa: S608 - constants
        "(SELECT COUNT(*) FROM board WHERE space = ? AND status <> 'completed') < ?"
    )
    return sql, (*_row(posting), posting.space, MOST_OPEN)


def claim_next(change: Change, until: int) -> Statement:
    """Take the first that nobody has and that is for this one or for anybody."""
    sql = (
        f"UPDATE board SET {_TAKEN} WHERE id = (SELECT id FROM board WHERE space = ? "  # noqa: S608 - constants
        f"AND assigned_to IN ('', ?) AND {_FREE} ORDER BY priority DESC, posted_at, id LIMIT 1)"
    )
    viewer = change.viewer
    return sql, (viewer.id, until, change.call, viewer.space, viewer.id, change.now)


def claim(change: Change, task: str, until: int) -> Statement:
    """Take one that nobody else has, or keep it for longer; who owns the board takes any."""
    sql = (
        f"UPDATE board SET {_TAKEN} WHERE id = ? AND space = ? AND status <> 'completed' AND "  # noqa: S608 - constants
        f"(? OR (assigned_to IN ('', ?) AND (owner = ? OR {_FREE})))"
    )
    viewer = change.viewer
    mine = (viewer.everything, viewer.id, viewer.id, change.now)
    return sql, (viewer.id, until, change.call, task, viewer.space, *mine)


def complete(change: Change, task: str, result: str, labels: Labels) -> Statement:
    """Keep what came of a task, if this one has it."""
    sql = (
        "UPDATE board SET status = 'completed', result = ?, completed_at = ?, "
        "labels = labels | ?, changed_by = ? "
        "WHERE id = ? AND space = ? AND owner = ? AND status = 'in_progress'"
    )
    kept = (result, change.now, int(labels), change.call)
    return sql, (*kept, task, change.viewer.space, change.viewer.id)


def drop_oldest(space: str) -> Statement:
    """Forget the completed ones of a board that are too many."""
    sql = (
        "DELETE FROM board WHERE space = ? AND status = 'completed' AND id NOT IN (SELECT id "
        "FROM board WHERE space = ? AND status = 'completed' "
        "ORDER BY completed_at DESC, id DESC LIMIT ?)"
    )
    return sql, (space, space, MOST_COMPLETED)


def _seen(viewer: Viewer) -> tuple[Any, ...]:
    return viewer.space, viewer.everything, viewer.id, viewer.id, viewer.id


def _row(posting: Posting) -> tuple[Any, ...]:
    values = {name: getattr(posting, name) for name in _NAMES}
    values |= {"status": posting.status.value, "labels": int(posting.labels)}
    return tuple(values.values())


def _posting(row: tuple[Any, ...]) -> Posting:
    known = dict(zip(_NAMES, row, strict=True))
    known |= {"status": Status(known["status"]), "labels": Labels(known["labels"])}
    return Posting(**known)
