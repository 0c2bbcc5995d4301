"""`/api/approvals`: the questions that wait for a person, and the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.keys import Scope
from openfang.core.wire import question_body
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import Answer, json_answer

if TYPE_CHECKING:
    from openfang.core.keys import Question
    from openfang.edges.api.exchange import Asked


def _shown(asked: Asked, question: Question) -> Answer:
    return json_answer(question_body(question, asked.node.now()))


async def _list(asked: Asked) -> Answer:
    found = await asked.session.questions(answered=asked.query.get("all", False))
    now = asked.node.now()
    bodies = [question_body(question, now) for question in found]
    return json_answer({"approvals": bodies, "total": len(bodies)})


async def _show(asked: Asked) -> Answer:
    return _shown(asked, await asked.session.question(asked.path["id"]))


async def _answer(asked: Asked) -> Answer:
    scope = Scope(asked.body.get("scope", Scope.ONCE.value))
    approve = asked.body["answer"] == "approve"
    return _shown(asked, await asked.session.answer(asked.path["id"], approve=approve, scope=scope))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/approvals",
        name="list_approvals",
        summary="List what waits for a person: one's own, or everybody's for who watches.",
        handle=_list,
        query=schemas.ALL_QUERY,
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
)
