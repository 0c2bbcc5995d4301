"""Questions to people, as a daemon tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.app.remote.addresses import query_of
from openfang.app.remote.keys import late
from openfang.core.keys import QuestionPage
from openfang.core.wire import read_question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.keys import Question, QuestionFilter


def dated_question(body: Mapping[str, Any]) -> Question:
    """Read a question."""
    question = read_question(body)
    return replace(question, expires_at=late(question.expires_at))


def questions_query(wanted: QuestionFilter) -> str:
    """Write which are wanted."""
    return query_of(
        {
            "state": wanted.state,
            "caller": wanted.caller or None,
            "tool": wanted.tool or None,
            "after": wanted.after or None,
            "limit": wanted.limit,
        }
    )


def read_questions(body: Mapping[str, Any]) -> QuestionPage:
    """Read a page of them."""
    questions = [dated_question(one) for one in body["approvals"]]
    return QuestionPage(questions=questions, total=body["total"], next=body["next"] or "")
