"""Questions and their answers, as rows: they outlive the process that asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openfang.core.keys import Answer, Question, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.database import Database

_COLUMNS = (
    "id, caller, tool, arguments_hash, run, rule, reason, arguments, state, scope, "
    "asked_at, expires_at, answered_at, answered_by"
)
Statement = tuple[str, "Sequence[Any]"]
_MOST_COVERING = 50
_MOST_LISTED = 1000
_WAITS = "state = 'pending' AND expires_at > ?"


@dataclass(frozen=True, slots=True)
class ApprovalStore:
    """Reads questions; the statements below change them, inside a unit with their record."""

    database: Database

    def get(self, question_id: str) -> Question | None:
        """Find one question."""
        rows = self._select("id = ?", (question_id,))
        return rows[0] if rows else None

    def covering(
        self, caller: str, tool: str, arguments_hash: str, run: str, now: int
    ) -> list[Question]:
        """Find what this caller was asked about such a call and is not spent, newest first."""
        where = (
            "caller = ? AND tool = ? AND state <> 'spent' AND expires_at > ? AND (scope = 'rule' "
            "OR scope = 'once' AND arguments_hash = ? OR scope = 'session' AND run = ?)"
        )
        return self._select(where, (caller, tool, now, arguments_hash, run), _MOST_COVERING)

    def state(self, question_id: str) -> Answer | None:
        """Look how it stands with a question, and at nothing else of it."""
        rows = self.database.read("SELECT state FROM approvals WHERE id = ?", (question_id,))
        return Answer(rows[0][0]) if rows else None

    def count_pending(self, now: int, caller: str | None = None) -> int:
        """Count the questions that wait for a person: everybody's, or one caller's."""
        where, parameters = _of(caller, _WAITS, now)
        sql = f"SELECT COUNT(*) FROM approvals WHERE {where}"  # noqa: S608 - constants
        return int(self.database.read(sql, parameters)[0][0])

    def pending(self, now: int, caller: str | None = None) -> list[Question]:
        """List the newest questions that wait for a person: everybody's, or one caller's."""
        return self._select(*_of(caller, _WAITS, now))

    def all(self, caller: str | None = None) -> list[Question]:
        """List the newest questions of any state: everybody's, or one caller's."""
        return self._select(*_of(caller, "1 = 1"))

    def _select(
        self, where: str, parameters: Sequence[Any], limit: int = _MOST_LISTED
    ) -> list[Question]:
        sql = f"SELECT {_COLUMNS} FROM approvals WHERE {where} ORDER BY id DESC LIMIT {limit}"  # noqa: S608 - constants
        return [_question(row) for row in self.database.read(sql, parameters)]


def _of(caller: str | None, where: str, *parameters: object) -> tuple[str, Sequence[Any]]:
    """Narrow a condition to one caller's questions, if one is named."""
    if caller is None:
        return where, parameters
    return f"caller = ? AND {where}", (caller, *parameters)


def insert(question: Question) -> Statement:
    """Store a new question."""
    marks = ", ".join("?" * 14)
    return f"INSERT INTO approvals ({_COLUMNS}) VALUES ({marks})", (  # noqa: S608 - constants
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
    )


def answer(question: Question, before: Answer) -> Statement:
    """Store an answer. If somebody else was faster the column turns NULL, and the unit fails."""
    sql = (
        "UPDATE approvals SET state = CASE WHEN state = ? THEN ? END, scope = ?, "
        "answered_at = ?, answered_by = ?, expires_at = ? WHERE id = ?"
    )
    return sql, (
        before.value,
        question.state.value,
        question.scope.value,
        question.answered_at,
        question.answered_by,
        question.expires_at,
        question.id,
    )


def end_all(caller: str, now: int) -> Statement:
    """End whatever was approved for, or asked by, a caller that is no more."""
    sql = (
        "UPDATE approvals SET state = 'denied', expires_at = ? "
        "WHERE caller = ? AND state IN ('pending', 'approved')"
    )
    return sql, (now, caller)


def spend(question_id: str) -> Statement:
    """Use an approval up. If it was used already the column turns NULL, and the unit fails."""
    sql = "UPDATE approvals SET state = CASE WHEN state = 'approved' THEN 'spent' END WHERE id = ?"
    return sql, (question_id,)


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
    )
