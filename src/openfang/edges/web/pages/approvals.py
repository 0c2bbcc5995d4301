"""Approvals: what waits for a person, with the exact arguments, and what became of the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import Conflict, OpenFangError
from openfang.core.keys import QuestionFilter, Scope
from openfang.core.wire import question_body
from openfang.edges.web.asking import Go, Page
from openfang.edges.web.origins import origins
from openfang.edges.web.words import lasting

if TYPE_CHECKING:
    from openfang.core.keys import Question, QuestionPage
    from openfang.edges.web.asking import Ask

STATES: Final = {
    "pending": "Waiting",
    "approved": "Allowed",
    "spent": "Allowed and used",
    "denied": "Denied",
    "expired": "Ran out",
}
_AT_ONCE: Final = 50
_SECOND: Final = 1_000_000_000
_EFFECTS: Final = {
    "payments": "Moves money.",
    "system.exec": "Runs a program on this machine.",
    "fs.delete": "Deletes files.",
    "fs.write": "Writes files.",
    "network.http": "Reaches an address elsewhere.",
    "cloud.resource_create": "Makes something at a cloud.",
    "cloud.resource_delete": "Deletes something at a cloud.",
    "database.write": "Changes a database.",
    "database.delete": "Deletes from a database.",
}


async def show(ask: Ask) -> Page | Go:
    """Show what waits, the newest opened."""
    state = ask.query.get("state", "pending")
    state = state if state in STATES else "pending"
    found = await ask.session.questions(
        QuestionFilter(state=state, after=ask.query.get("after", "")[:200], limit=_AT_ONCE)
    )
    opened = found.questions[0] if found.questions else None
    return await _page(ask, found, state, opened)


async def one(ask: Ask) -> Page | Go:
    """Show one question, or answer it."""
    question = await ask.session.question(ask.names["id"])
    state = question_body(question, ask.came.node.now())["state"]
    if ask.came.method == "POST":
        return await _answered(ask, question)
    found = await ask.session.questions(QuestionFilter(state=state, limit=_AT_ONCE))
    return await _page(ask, found, state, question)


async def _answered(ask: Ask, question: Question) -> Page | Go:
    approve = ask.form.get("answer") == "allow"
    if ask.form.get("hash") != question.arguments_hash:
        raise Conflict("The arguments are not those that were shown.", way_out="look again")
    try:
        await ask.session.answer(question.id, approve=approve, scope=Scope.ONCE)
    except OpenFangError as error:
        found = await ask.session.questions(QuestionFilter(limit=_AT_ONCE))
        return await _page(ask, found, "pending", question, error)
    return Go(where=f"/approvals/{question.id}")


async def _page(
    ask: Ask,
    found: QuestionPage,
    state: str,
    opened: Question | None,
    error: OpenFangError | None = None,
) -> Page:
    now = ask.came.node.now()
    crumbs = (("Approvals", "/approvals"), (opened.tool, "")) if ask.names and opened else ()
    return Page(
        template="approvals.html",
        title="Approvals",
        section="approvals",
        crumbs=crumbs,
        values={
            "states": STATES,
            "chosen": state,
            "total": found.total,
            "queue": [_shown(one, now) for one in found.questions],
            "more": found.next,
            "next_id": _behind(found, opened),
            "one": _shown(opened, now) | _whole(ask, opened) if opened else None,
            "error": error,
        },
    )


def _behind(found: QuestionPage, opened: Question | None) -> str:
    """Name the question after this one."""
    ids = [one.id for one in found.questions]
    place = ids.index(opened.id) + 1 if opened is not None and opened.id in ids else len(ids)
    return ids[place] if place < len(ids) else ""


def _shown(question: Question, now: int) -> dict[str, Any]:
    body = question_body(question, now)
    return {
        **body,
        "risk": question.about.get("risk"),
        "left": lasting(max(0, question.expires_at - now) / _SECOND),
        "word": STATES[body["state"]],
    }


def _whole(ask: Ask, question: Question) -> dict[str, Any]:
    tags = [str(tag) for tag in question.about.get("tags", ())]
    mine = ask.caller.id in question.askers
    answers = ask.may(Role.APPROVER)
    exact = json.loads(question.arguments)
    labels, chain = question.about.get("labels", ()), question.about.get("chain", {})
    return {
        "does": [_EFFECTS[tag] for tag in tags if tag in _EFFECTS] or ["Has effects."],
        "tags": tags,
        "labels": labels,
        "chain": chain,
        "call": question.about.get("call", ""),
        "exact": list(exact.items()),
        "origins": origins(
            exact, labels, question.reason, question.caller, chain.get("depth") or 1
        ),
        "may_deny": answers,
        "may_allow": answers and (ask.caller.admin or not mine),
        "mine": mine,
        "careful": question.about.get("risk") in {"HIGH", "CRITICAL"},
    }
