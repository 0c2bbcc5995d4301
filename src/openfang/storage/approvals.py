"""Questions and their answers, as rows: they outlive the process that asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.keys import Answer, Question, QuestionFilter, QuestionPage, Scope, Way
from openfang.core.values import dataclass
from openfang.storage import timers
from openfang.storage.marks import marks
from openfang.storage.timers import Timer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

_COLUMNS: Final = (
    "id, caller, tool, arguments_hash, run, rule, reason, arguments, state, scope, "
    "asked_at, expires_at, answered_at, answered_by, via, root, about"
)
Statement = tuple[str, "Sequence[Any]"]
EXPIRY: Final = "approvals"
"""The kind, and the id, of the one timer by which questions that nobody answered are denied."""
_MOST_COVERING: Final = 50
_MOST_LISTED: Final = 1000
_ASKED_AT_ONCE: Final = 100
_WAITS: Final = "state = 'pending' AND expires_at > ?"
_OVERDUE: Final = "state = 'pending' AND expires_at <= ?"
_ALL: Final = "all"
_EXPIRED: Final = "expired"


@dataclass(frozen=True, slots=True)
class ApprovalStore:
    """Reads questions; the statements below change them, inside a unit with their record."""

    database: Reader

    async def get(self, question_id: str) -> Question | None:
        """Find one question."""
        rows = await self._select("id = ?", (question_id,))
        return rows[0] if rows else None

    async def covering(
        self, caller: str, tool: str, arguments_hash: str, run: str, now: int
    ) -> list[Question]:
        """Find what this caller was asked about such a call and is not spent, newest first.

        Each kind is looked for by itself, so that ten thousand other questions are not read.
        """
        of_it = "SELECT id FROM approvals WHERE caller = ? AND tool = ? AND scope ="
        each = (
            f"{of_it} 'rule' UNION ALL {of_it} 'once' AND arguments_hash = ? "
            f"UNION ALL {of_it} 'session' AND run = ?"
        )
        where = f"id IN ({each}) AND state <> 'spent' AND expires_at > ?"
        it = (caller, tool)
        return await self._select(where, (*it, *it, arguments_hash, *it, run, now), _MOST_COVERING)

    async def state(self, question_id: str) -> Answer | None:
        """Look how it stands with a question, and at nothing else of it."""
        rows = await self.database.read("SELECT state FROM approvals WHERE id = ?", (question_id,))
        return Answer(rows[0][0]) if rows else None

    async def answered(self, among: Sequence[str]) -> list[str]:
        """Name those of some that wait no longer, whoever answered them, by whichever clock."""
        found = list[str]()
        for first in range(0, len(among), _ASKED_AT_ONCE):
            some = among[first : first + _ASKED_AT_ONCE]
            sql = f"SELECT id FROM approvals WHERE id IN ({marks(some)}) AND state <> 'pending'"  # noqa: S608 - marks
            found += [row[0] for row in await self.database.read(sql, some)]
        return found

    async def count_pending(self, now: int, caller: str | None = None) -> int:
        """Count the questions that wait for a person: everybody's, or one caller's."""
        where, parameters = _of(caller, _WAITS, now)
        return await self._count(where, parameters)

    async def pending(self, now: int, caller: str | None = None) -> list[Question]:
        """List the newest questions that wait for a person: everybody's, or one caller's."""
        return await self._select(*_of(caller, _WAITS, now))

    async def all(self, caller: str | None = None) -> list[Question]:
        """List the newest questions of any state: everybody's, or one caller's."""
        return await self._select(*_of(caller, "1 = 1"))

    async def page(self, wanted: QuestionFilter, now: int) -> QuestionPage:
        """List those that are wanted, newest first, and count all of them."""
        where, parameters = _wanted(wanted, now)
        total = await self._count(where, parameters)
        if wanted.after:
            where, parameters = f"{where} AND id < ?", (*parameters, wanted.after)
        found = await self._select(where, parameters, min(wanted.limit, _MOST_LISTED) + 1)
        shown = found[: wanted.limit]
        more = len(found) > len(shown)
        return QuestionPage(questions=shown, total=total, next=shown[-1].id if more else "")

    async def overdue(self, now: int, limit: int) -> list[Question]:
        """List those that nobody answered in time, the oldest first."""
        sql = f"SELECT {_COLUMNS} FROM approvals WHERE {_OVERDUE} ORDER BY expires_at LIMIT {limit}"  # noqa: S608 - constants
        return [_question(row) for row in await self.database.read(sql, (now,))]

    async def next_expiry(self) -> int | None:
        """Say when the next one is over, if any waits."""
        sql = "SELECT MIN(expires_at) FROM approvals WHERE state = 'pending'"
        return (await self.database.read(sql))[0][0]

    async def waits_in(self, run: str) -> bool:
        """Whether a run waits for a person."""
        sql = "SELECT 1 FROM approvals WHERE run = ? AND state = 'pending' LIMIT 1"
        return bool(await self.database.read(sql, (run,)))

    async def _count(self, where: str, parameters: Sequence[Any]) -> int:
        sql = f"SELECT COUNT(*) FROM approvals WHERE {where}"  # noqa: S608 - constants
        return int((await self.database.read(sql, parameters))[0][0])

    async def _select(
        self, where: str, parameters: Sequence[Any], limit: int = _MOST_LISTED
    ) -> list[Question]:
        sql = f"SELECT {_COLUMNS} FROM approvals WHERE {where} ORDER BY id DESC LIMIT {limit}"  # noqa: S608 - constants
        return [_question(row) for row in await self.database.read(sql, parameters)]


def _of(caller: str | None, where: str, *parameters: object) -> tuple[str, Sequence[Any]]:
    """Narrow a condition to one caller's questions, if one is named."""
    if caller is None:
        return where, parameters
    return f"caller = ? AND {where}", (caller, *parameters)


def _wanted(wanted: QuestionFilter, now: int) -> tuple[str, tuple[Any, ...]]:
    where, parameters = _in_state(wanted.state, now)
    for column, value in (("caller", wanted.caller), ("tool", wanted.tool)):
        if value:
            where, parameters = f"{where} AND {column} = ?", (*parameters, value)
    return where, parameters


def _in_state(state: str, now: int) -> tuple[str, tuple[Any, ...]]:
    """What is shown as expired is a pending one whose time is over, or was denied for that."""
    if state == _ALL:
        return "1 = 1", ()
    if state == _EXPIRED:
        return f"({_OVERDUE} OR state = 'denied' AND via = 'timeout')", (now,)
    if state == Answer.PENDING.value:
        return _WAITS, (now,)
    besides = " AND (via IS NULL OR via <> 'timeout')" if state == Answer.DENIED.value else ""
    return f"state = ?{besides}", (state,)


def insert(question: Question) -> Statement:
    """Store a new question."""
    row = _row(question)
    return f"INSERT INTO approvals ({_COLUMNS}) VALUES ({marks(row)})", row  # noqa: S608 - constants


def expire_by(at: int) -> Statement:
    """Have what nobody has answered by then denied; one timer serves all of them."""
    sql, row = timers.add(Timer(id=EXPIRY, kind=EXPIRY, subject="", due=at))
    sooner = "CASE WHEN excluded.due < timers.due THEN excluded.due ELSE timers.due END"
    return f"{sql} ON CONFLICT (id) DO UPDATE SET due = {sooner}", row


def answer(question: Question, before: Answer) -> Statement:
    """Store an answer. If somebody else was faster the column turns NULL, and the unit fails."""
    sql = (
        "UPDATE approvals SET state = CASE WHEN state = ? THEN ? END, scope = ?, "
        "answered_at = ?, answered_by = ?, via = ?, expires_at = ? WHERE id = ?"
    )
    return sql, (
        before.value,
        question.state.value,
        question.scope.value,
        question.answered_at,
        question.answered_by,
        question.via.value if question.via else None,
        question.expires_at,
        question.id,
    )


def end_all(caller: str, now: int) -> Statement:
    """End whatever was approved for, or asked by, a caller that is no more, or agents for it."""
    sql = (
        "UPDATE approvals SET state = 'denied', expires_at = ?, answered_at = ? "
        "WHERE (caller = ? OR root = ?) AND state IN ('pending', 'approved')"
    )
    return sql, (now, now, caller, caller)


def spend(question_id: str) -> Statement:
    """Use an approval up. If it was used already the column turns NULL, and the unit fails."""
    sql = "UPDATE approvals SET state = CASE WHEN state = 'approved' THEN 'spent' END WHERE id = ?"
    return sql, (question_id,)


def _row(question: Question) -> tuple[Any, ...]:
    return (
        question.id,
        question.caller,
        question.tool,
        question.arguments_hash,
        question.run,
        question.rule,
        question.reason,
        question.arguments,
        question.state.value,
        question.scope.value,
        question.asked_at,
        question.expires_at,
        question.answered_at,
        question.answered_by,
        question.via.value if question.via else None,
        question.root,
        orjson.dumps(question.about).decode(),
    )


def _question(row: tuple[Any, ...]) -> Question:
    return Question(
        id=row[0],
        caller=row[1],
        tool=row[2],
        arguments_hash=row[3],
        run=row[4],
        rule=row[5],
        reason=row[6],
        arguments=row[7],
        state=Answer(row[8]),
        scope=Scope(row[9]),
        asked_at=row[10],
        expires_at=row[11],
        answered_at=row[12],
        answered_by=row[13],
        via=Way(row[14]) if row[14] else None,
        root=row[15],
        about=orjson.loads(row[16]),
    )
