"""One call: its verdict in a sentence, its chain, each step, its timing, arguments and records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError
from openfang.edges.web.asking import Page
from openfang.edges.web.drawing import graph, parts_of, stepfall, tied, waterfall
from openfang.edges.web.origins import UNNAMED, origins
from openfang.edges.web.steps import Told, steps_of
from openfang.edges.web.words import number, took

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.keys import Question
    from openfang.core.watching import CallStory, SeenCall
    from openfang.edges.web.asking import Ask

_ENDS: Final = {
    "error": "Ran once and answered with an error",
    "timeout": "May have run: it did not answer in time",
    "failed": "May have run: its source broke",
    "interrupted": "May have run: the process that made it vanished",
    "cancelled": "Cancelled while it ran",
}


async def show(ask: Ask) -> Page:
    """Show one call, from its records."""
    story = await ask.watch.call(ask.caller, ask.names["id"])
    told, call = Told(story.records), story.call
    entered, reason, question = _entered(told), _reason(told), await _question(ask, told)
    arguments = told.arguments or (json.loads(question.arguments) if question else {})
    before, after = _beside(story.chain, call.id)
    first = f"#{number(story.records[0].audit_id)}"
    return Page(
        template="call.html",
        title=call.tool,
        section="calls",
        crumbs=(("Calls", "/calls"), (first, "")),
        values={
            "call": call,
            "sentence": sentence(story, told),
            "risk": _of_start(told, "risk"),
            "effects": _of_start(told, "side_effects") or [],
            "entered": entered,
            "arguments": arguments,
            "origins": origins(arguments, entered, reason, call.caller, call.depth),
            "result": told.end.payload if told.end is not None else {},
            "told": told,
            "steps": steps_of(story, told),
            "graph": graph(story.chain, call.id),
            "knots": tied(story.chain),
            "waterfall": waterfall(story.chain, call.id),
            "stepfall": stepfall(parts_of(told.steps, call.us)),
            "before": before,
            "after": after,
            "records": story.records,
            "question": question,
            "several": ask.watch.several,
            "auditor": ask.may(Role.AUDITOR),
        },
    )


def sentence(story: CallStory, told: Told) -> str:
    """Say in a sentence what became of a call, and whether the tool ran."""
    call = story.call
    match call.verdict:
        case "allow":
            asked = "; a person was asked and allowed it" if told.answered is not None else ""
            return f"Ran once, {took(call.us)}. Every gate let it pass{asked}."
        case "deny":
            return f"Denied by {_who(told)}. {call.reason or 'A person said no'}. It did not run."
        case "ask":
            return f"Waits for a person: {_asked(told)}. It has not run."
        case "failed":
            end = _ENDS.get(call.outcome, "Ran and broke")
            return f"{end}{f': {call.reason}' if call.reason else ''}. {took(call.us)}."
        case "run":
            return "It is running."
        case _:
            return _ENDS.get(call.outcome, "A person answered; this call itself did not run") + "."


def _who(told: Told) -> str:
    """Name what denied a call: a gate, or the step that it did not pass."""
    found: Mapping[str, Any] = told.violation.payload if told.violation is not None else {}
    gate = f"the gate {found['gate']}" if found.get("gate") else ""
    return gate or f"the step {found.get('step', 'approval')}"


def _asked(told: Told) -> str:
    reasons = [one.get("reason") for one in told.gates if one.get("verdict") == "ask"]
    reasons += [told.asked.payload.get("reason")] if told.asked is not None else []
    return str((reasons and reasons[0]) or "policy asks for an approval")


def _of_start(told: Told, name: str) -> Any:  # noqa: ANN401 - any JSON
    return told.start.payload.get(name) if told.start is not None else None


def _entered(told: Told) -> list[str]:
    for record in (told.start, told.violation, told.decision):
        if record is not None and isinstance(found := record.payload.get("labels"), list):
            return [str(one) for one in found]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return []


def _reason(told: Told) -> str:
    """What the flow said of a value that nobody had named."""
    said = (str(one.payload.get("reason")) for one in (told.violation, told.asked) if one)
    return next((one for one in said if UNNAMED in one), "")


def _beside(chain: Sequence[SeenCall], here: str) -> tuple[str, str]:
    """Name the calls of the chain before and after this one."""
    ids = ["", *(one.id for one in chain), ""]
    place = ids.index(here) if here in ids else 0
    return (ids[place - 1], ids[place + 1]) if place else ("", "")


async def _question(ask: Ask, told: Told) -> Question | None:
    if told.asked is None:
        return None
    try:
        return await ask.session.question(str(told.asked.payload.get("question", "")))
    except OpenFangError:
        return None
