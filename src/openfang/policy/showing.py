"""A question as a form that a client shows, and what the person there has made of it.

What is put is shown by the client to a person, and says so; nothing of it is for a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.clients import ELICITATION, shows_forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.clients import Client
    from openfang.core.keys import Question
    from openfang.core.results import Result

_LONGEST_SHOWN: Final = 4000
_MARK: Final = "openfang/approval"
_ANSWER: Final[Mapping[str, Any]] = {
    "type": "string",
    "title": "Answer",
    "description": "Whether this one call may be made.",
    "enum": ["approve", "deny"],
}


def may_be_shown(client: Client | None) -> bool:
    """Whether there is somebody who can be shown a form."""
    return client is not None and shows_forms(client.capabilities)


def form_of(question: Question, *, named: bool = False) -> Mapping[str, Any]:
    """Write the form. If it must be `named`, no plain text fills it in: two fields have to be."""
    asked = f"for {question.root}" if question.root != question.caller else ""
    who = " ".join(filter(None, (question.caller, asked)))
    arguments = question.arguments
    if len(arguments) > _LONGEST_SHOWN:
        arguments = f"{arguments[:_LONGEST_SHOWN]}... (see: openfang approvals show {question.id})"
    return {
        "message": (
            f"A person has to decide: may {who} run {question.tool}?\n"
            f"Why: {question.reason}\nArguments: {arguments}\nQuestion: {question.id}"
        ),
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": _ANSWER, **(_name(question) if named else {})},
            "required": ["answer", "question"] if named else ["answer"],
        },
        "_meta": {_MARK: question.id},
    }


def _name(question: Question) -> Mapping[str, Any]:
    return {"question": {"type": "string", "title": "Question", "enum": [question.id]}}


def asked_in(form: Mapping[str, Any]) -> str:
    """Name the question that a form asks, if it is one of these."""
    match form.get("_meta"):
        case {"openfang/approval": str(question)}:
            return question
        case _:
            return ""


async def show(client: Client, question: Question) -> bool | None:
    """Have the person at a client decide; None if they did not."""
    form = form_of(question, named=not client.has_person)
    return _read(await client.ask(ELICITATION, form, question.id), question)


def _read(result: Result, question: Question) -> bool | None:
    match result.structured:
        case {"action": "accept", "content": {"answer": answer, **rest}}:
            return read_answer({**rest, "answer": answer}, question.id)
        case {"action": "decline"}:
            return False
        case _:
            return None


def read_answer(content: Mapping[str, Any], question_id: str) -> bool | None:
    """Read what a form was filled with: yes, no, or no answer to this question."""
    if content.get("question", question_id) != question_id:
        return None
    return {"approve": True, "deny": False}.get(str(content.get("answer")))
