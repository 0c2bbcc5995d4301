"""`/api/approvals`: the questions that wait for a person, and the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.keys import QuestionFilter, Scope
from openfang.core.wire import question_body
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import Answer, json_answer, secret_of

if TYPE_CHECKING:
    from openfang.core.keys import Question
    from openfang.edges.api.exchange import Asked


def _shown(asked: Asked, question: Question) -> Answer:
    return json_answer(question_body(question, asked.node.now()))


async def _list(asked: Asked) -> Answer:
    query: dict[str, Any] = dict(asked.query)
    if query.pop("all", False):
        query.setdefault("state", "all")
    wanted = QuestionFilter(**query)
    page, now = await asked.session.questions(wanted), asked.node.now()
    bodies = [question_body(question, now) for question in page.questions]
    return json_answer({"approvals": bodies, "total": page.total, "next": page.next or None})


async def _show(asked: Asked) -> Answer:
    return _shown(asked, await asked.session.question(asked.path["id"]))


async def _answer(asked: Asked) -> Answer:
    scope = Scope(asked.body.get("scope", Scope.ONCE.value))
    approve = asked.body["answer"] == "approve"
    return _shown(asked, await asked.session.answer(asked.path["id"], approve=approve, scope=scope))


async def _answer_with(asked: Asked) -> Answer:
    token, by = secret_of(asked.headers) or "", asked.query.get("by", "")
    return _shown(asked, await asked.node.answer_with(asked.path["id"], token, by))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/approvals",
        name="list_approvals",
        summary="List what waits for a person: one's own, or everybody's for who watches.",
        handle=_list,
        query=schemas.QUESTIONS_QUERY,
        answers={200: "Approvals"},
    ),
    Endpoint(
        method="GET",
        path="/api/approvals/{id}",
        name="show_approval",
        summary="Show one question.",
        handle=_show,
        answers={200: "Approval"},
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path="/api/approvals/{id}",
        name="answer_approval",
        summary="Answer a question.",
        handle=_answer,
        access=Access.APPROVER,
        body=schemas.ANSWER,
        answers={200: "Approval"},
        problems=(403, 404, 409, 422),
    ),
    Endpoint(
        method="POST",
        path="/api/approvals/{id}/answer",
        name="answer_approval_with_token",
        summary="Answer a question with a token that was sent to the webhook, once.",
        handle=_answer_with,
        access=Access.TOKEN,
        work="call",
        query=schemas.BY_QUERY,
        answers={200: "Approval"},
        problems=(403, 409),
    ),
)
