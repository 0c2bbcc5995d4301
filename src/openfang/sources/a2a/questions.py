"""A question of a peer's to whoever made the call that it serves: a call, like any other (C1.6)."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.calls import Caller, Grants
from openfang.core.clients import ELICITATION
from openfang.core.ids import Kind, tool_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Admitted, Call
    from openfang.core.clients import Client
    from openfang.core.results import Result

_FORM: Final = "form"
_MODES: Final = frozenset({_FORM, "url"})
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}


def shows_forms(client: Client | None) -> bool:
    """Whether it can be asked; who names no way of asking means forms."""
    offered: object = None if client is None else client.capabilities.get("elicitation")
    if not isinstance(offered, dict):
        return False
    named = _MODES & cast("dict[str, Any]", offered).keys()
    return _FORM in named or not named


def form_of(question: str) -> dict[str, Any]:
    """Write the question as a form with one field."""
    return {"message": question, "requestedSchema": _SCHEMA}


def question_call(peer: str, admitted: Admitted, client: Client, form: Mapping[str, Any]) -> Call:
    """Make the call that asks: the peer's own, and allowed to do nothing else.

    Its run is the call that it belongs to: the same question in another call is no loop.
    """
    call = admitted.call
    asker, tool = tool_id(Kind.A2A, peer), tool_id(Kind.CLIENT, client.key, ELICITATION)
    caller = Caller(
        id=asker,
        grants=Grants(tools=(escape(tool),)),
        mode=call.caller.mode,
        projects=call.caller.projects,
    )
    return replace(
        call.child(tool, form, ancestor=asker),
        caller=caller,
        labels=admitted.labels | admitted.tool.labels,
        client=client,
        run=call.id,
    )


def answer_in(result: Result) -> str | None:
    """Read what the person said; None if they would not say anything."""
    match result.structured:
        case {"action": "accept", "content": {"answer": answer}} if not result.is_error:
            return str(answer)
        case _:
            return None
