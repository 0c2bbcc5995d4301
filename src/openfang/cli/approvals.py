"""`openfang approvals list|show|approve|deny`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from cyclopts import Parameter

from openfang.cli.options import Json
from openfang.cli.output import entry, fields, json_text, note, print_json, say
from openfang.cli.session import on_home
from openfang.cli.times import span
from openfang.core.keys import QuestionFilter, Scope
from openfang.core.wire import question_body

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        who = f" (answered by {question.answered_by})" if question.answered_by else ""
        entry(
            question.id,
            f"{state}, {left} left" if state == "pending" else f"{state}{who}",
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
    about = _about(body.pop("about"))
    body["arguments"] = json_text(body["arguments"], orjson.OPT_INDENT_2)
    shown = {**body, **about}
    fields({name.replace("_", " "): value for name, value in shown.items() if value is not None})


def _about(about: Mapping[str, Any]) -> dict[str, Any]:
    """Put into words what is known of the call; a question from before has less of it."""
    shown = dict(about)
    for name in ("tags", "labels"):
        if name in shown:
            shown[name] = ", ".join(shown[name])
    if "verdicts" in shown:
        shown["gates"] = _gates(shown.pop("verdicts"))
    if chain := shown.pop("chain", None):
        shown |= {"depth": chain["depth"], "within": "\n".join(chain["ancestors"]) or None}
        shown["trace"] = chain["trace"]
    return shown


def _gates(verdicts: Sequence[Mapping[str, str]]) -> str:
    """Those that had something to say, each in a line, then the others."""
    spoke = [
        f"{one['gate']}: {one['verdict']}, {one['reason']}".removesuffix(", ")
        for one in verdicts
        if one["verdict"] != "allow"
    ]
    silent = ", ".join(one["gate"] for one in verdicts if one["verdict"] == "allow")
    return "\n".join([*spoke, f"allow: {silent}"] if silent else spoke)


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
