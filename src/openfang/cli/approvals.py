"""`openfang approvals list|show|approve|deny`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import orjson
from cyclopts import Parameter

from openfang.cli.options import Json
from openfang.cli.output import entry, fields, json_text, note, print_json, say
from openfang.cli.session import on_home
from openfang.cli.times import span
from openfang.core.keys import QuestionFilter, Scope
from openfang.core.wire import question_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.keys import Question


def list_questions(
    *,
    every: Annotated[bool, Parameter(name="--all", help="Also those that were answered.")] = False,
    caller: Annotated[str, Parameter(help="Only those of this caller, such as key:ide.")] = "",
    tool: Annotated[str, Parameter(help="Only those about this tool, by its id.")] = "",
    limit: Annotated[int, Parameter(help="The newest, so many.")] = 1000,
    as_json: Json = False,
) -> None:
    """List the questions that wait for a person, newest first."""
    state = "all" if every else "pending"
    wanted = QuestionFilter(state=state, caller=caller, tool=tool, limit=limit)
    page = on_home(lambda session: session.questions(wanted))
    found = page.questions
    if as_json:
        print_json([question_body(question, time.time_ns()) for question in found])
    elif not found:
        note("No question was ever asked." if every else "No question waits.")
    else:
        _show_list(found)
        if page.next:
            note(f"there are {page.total}; --limit shows more, --caller and --tool fewer")


def _show_list(found: Sequence[Question]) -> None:
    for question in found:
        now = time.time_ns()
        state, left = question_body(question, now)["state"], span(question.expires_at - now)
        entry(
            question.id,
            f"{state}, {left} left" if state == "pending" else state,
            f"{question.caller} wants {question.tool} {question.arguments}",
            question.reason,
        )
    note("answer with: openfang approvals approve ID, or: openfang approvals deny ID")


def show_question(question_id: str, /, *, as_json: Json = False) -> None:
    """Show everything about one question.

    Args:
        question_id: The id of the question.
    """
    question = on_home(lambda session: session.question(question_id))
    if as_json:
        print_json(question_body(question, time.time_ns()))
        return
    body = question_body(question, time.time_ns())
    body |= body.pop("about")
    for name in ("arguments", "verdicts", "chain"):
        if name in body:
            body[name] = json_text(body[name], orjson.OPT_INDENT_2)
    fields({name.replace("_", " "): value for name, value in body.items() if value is not None})


def approve(
    question_id: str,
    /,
    *,
    scope: Annotated[
        Scope,
        Parameter(help="once: this call; session: this run and tool; rule: this caller and tool."),
    ] = Scope.ONCE,
    as_json: Json = False,
) -> None:
    """Allow what a question asks for.

    Args:
        question_id: The id of the question.
    """
    question = on_home(lambda session: session.answer(question_id, approve=True, scope=scope))
    if as_json:
        print_json(question_body(question, time.time_ns()))
        return
    say(f"{question.id} is approved: {_REACH[scope]}.")
    if scope is Scope.ONCE:
        note("the identical call, sent again, now runs once")


def deny(question_id: str, /, *, as_json: Json = False) -> None:
    """Refuse what a question asks for; an approved rule is taken back.

    Args:
        question_id: The id of the question.
    """
    question = on_home(lambda session: session.answer(question_id, approve=False))
    if as_json:
        print_json(question_body(question, time.time_ns()))
    else:
        say(f"{question.id} is denied.")


_REACH = {
    Scope.ONCE: "this call, once",
    Scope.SESSION: "this tool for the rest of the run",
    Scope.RULE: "this tool for this caller, until it is denied",
}
