"""A question of an agent's to the person whose message it answers: a call, like all it does."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import UNBOUNDED, Grants
from openfang.core.clients import ELICITATION, shows_forms
from openfang.core.errors import CallRefused, SourceFailed
from openfang.core.ids import Kind, tool_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.clients import Attended
    from openfang.core.results import Result

_ANSWER: Final = "answer"
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {_ANSWER: {"type": "string", "title": "Answer"}},
    "required": [_ANSWER],
}


def askable(admitted: Admitted, agent: str) -> Attended:
    """Give whom the agent can ask; who shows no forms cannot be."""
    client = admitted.client
    if client is None or not shows_forms(client.capabilities):
        raise CallRefused(
            f"The agent {agent} has a question, and nobody can be asked over this connection.",
            rule="nobody_to_ask",
            way_out="say all that it needs in the message",
        )
    return client


def question_call(parent: Call, agent: Caller, client: Attended, question: str) -> Call:
    """Make the call that asks: the agent's own, and allowed to do nothing else.

    Its run is the call that it belongs to: the same question in another call is no loop.
    """
    tool = tool_id(Kind.CLIENT, client.key, ELICITATION)
    asker = replace(agent, grants=Grants(tools=(escape(tool),)), bounds=UNBOUNDED)
    form = {"message": question, "requestedSchema": _SCHEMA}
    asked = parent.child(tool, form, ancestor=agent.id)
    return replace(asked, caller=asker, client=client, run=parent.id)


def answer_in(result: Result) -> str:
    """Read what the person said; who will not say anything refuses."""
    if result.fault is not None:
        raise SourceFailed(f"The question was not put: {result.fault.get('message', '')}")
    match result.structured:
        case {"action": "accept", "content": {"answer": answer}}:
            return str(answer)
        case {"action": "decline" | "cancel" as action}:
            raise CallRefused(
                f"The person was asked, and chose to {action}.",
                rule="question_declined",
                way_out="go on without, or say what is missing",
            )
        case _:
            raise SourceFailed(result.text or "The client did not answer the question.")
