"""What governing looks like: the assistant makes three calls, and each verdict is shown.

One is allowed, one is denied and one waits for a person. Verdict, reason and number are what the
audit log says of them.
"""

from __future__ import annotations

import sys
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from openfang.cli.answers import message
from openfang.cli.output import clean, folded, note_command, paint, say
from openfang.core.agents import Made
from openfang.core.bodies import message_body
from openfang.core.events import (
    APPROVAL_REQUESTED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_START,
)
from openfang.core.log import Search
from openfang.core.session import NO_OPTIONS
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.events import AuditEvent
    from openfang.core.progress import Told
    from openfang.core.results import Result
    from openfang.core.session import Session

AGENT: Final = "assistant"
CONVERSATION: Final = "openfang up"
_TOOL: Final = f"agent:{AGENT}"
_EMBEDDED: Final = "planner"
_SAID: Final = (
    "what time is it?",
    "fetch https://example.org/?key=AKIAIOSFODNN7EXAMPLE",
    "run date",
)
_VERDICTS: Final = {"ok": "allowed", "refused": "denied", "parked": "asks", "error": "failed"}
_COLOURS: Final = {"allowed": "green", "denied": "red", "asks": "yellow"}
_MEANING: Final = {
    "denied": "nothing ran",
    "asks": "a risky tool waits for a frozen plan, or for a person's yes to this one call",
}
# The record that says why, for each ending of a call.
_EVENTS: Final = {
    "ok": TOOL_INVOCATION_START,
    "refused": POLICY_VIOLATION,
    "parked": APPROVAL_REQUESTED,
}


@dataclass(slots=True)
class _Listener:
    """Hears what became of the call that the agent makes."""

    made: Made | None = field(default=None, init=False)

    def __call__(self, told: Told) -> None:
        """Keep the last one."""
        if isinstance(told, Made):
            self.made = told


async def was_shown(session: Session) -> bool:
    """Whether this was shown on this home before: the log has the conversation."""
    wanted = Search(tool=_TOOL, event=TOOL_INVOCATION_START, text=f'"{CONVERSATION}"', limit=1)
    return bool(await session.search(wanted))


async def obstacle(session: Session) -> str:
    """Say why it cannot be shown here, if it cannot."""
    found = next((one for one in await session.agents() if one["name"] == AGENT), None)
    if found is None:
        return f"there is no agent {AGENT} here"
    if found["model"] != _EMBEDDED:
        return f"{AGENT} thinks with {found['model']}, not with the embedded planner"
    return ""


async def verdicts(session: Session) -> list[dict[str, Any]]:
    """Have the three calls made, and say what the log has of each."""
    return [await _verdict(session, said) for said in _SAID]


async def _verdict(session: Session, said: str) -> dict[str, Any]:
    heard = _Listener()
    options = replace(NO_OPTIONS, progress=heard)
    result = await session.call(*message(AGENT, said, CONVERSATION), options)
    made, answer = heard.made, str(message_body(result)["response"])
    if made is None:
        return {"said": said, "tool": None, "verdict": "no call", "reason": answer, "audit": None}
    records = await _records(session, result)
    record = next((one for one in records if one.event_type == _EVENTS.get(made.outcome)), None)
    return {
        "said": said,
        "tool": made.wish.tool,
        "verdict": _VERDICTS.get(made.outcome, made.outcome),
        "reason": _reason(made, record, records),
        "audit": record.audit_id if record else made.receipt.start if made.receipt else None,
        "question": record.payload.get("question") if record else None,
        "answer": answer if made.outcome == "ok" else None,
    }


async def _records(session: Session, result: Result) -> Sequence[AuditEvent]:
    """Find what was written down of the agent's own call, between the two ends of its run."""
    receipt = result.receipt
    if receipt is None:
        return ()
    wanted = Search(caller=_TOOL, after=receipt.start)
    found = await session.search(wanted)
    return [one for one in found if one.audit_id < receipt.end]


def _reason(made: Made, record: AuditEvent | None, records: Sequence[AuditEvent]) -> str:
    if record is None:
        return made.text
    decided = next((one for one in records if one.event_type == POLICY_DECISION), None)
    if made.outcome == "ok" and decided:
        gates: Sequence[Mapping[str, Any]] = decided.payload.get("gates", ())
        passed = sum(one["verdict"] == "allow" for one in gates)
        return f"{passed} of {len(gates)} gates allow it"
    return str(record.payload.get("reason", made.text))


def show(found: Sequence[Mapping[str, Any]]) -> None:
    """Show a person each verdict, with its reason and its number in the log."""
    say(f"\nThe agent {AGENT} makes three calls (embedded planner, no model, no network):")
    for one in found:
        _show(one)


def _show(one: Mapping[str, Any]) -> None:
    verdict = str(one["verdict"])
    word = paint(f"{verdict.upper():<8}", _COLOURS.get(verdict, "bold"), sys.stdout)
    say(f"\n  {word} {clean(one['said'])}")
    lines = [f"{one['tool'] or 'no tool'}: {one['reason']}"]
    lines += [_MEANING[verdict]] if verdict in _MEANING else []
    lines += [f"answer: {one['answer']}"] if one.get("answer") else []
    lines += [f"audit {one['audit']}"] if one["audit"] else []
    for line in lines:
        for part in folded(clean(line), sys.stdout, beside=11):
            say(f"           {part}")
    if one.get("question"):
        note_command("           say yes", f"openfang approvals approve {one['question']}")
