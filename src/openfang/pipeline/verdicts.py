"""What the verdicts on a call lead to: a refusal, a question to a person, or nothing at all."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from openfang.core.decisions import Allow, Ask, Deny, Verdict
from openfang.core.errors import FlowRefused, PolicyViolation
from openfang.policy.approvals import Subject
from openfang.safety.taint import judge, turns_on_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.calls import Call
    from openfang.core.labels import Labels
    from openfang.core.tools import Tool
    from openfang.policy.engine import Decided
    from openfang.safety.provenance import Unnamed

_FLOW_ALLOWED: Final = Verdict("flow", "allow")


def flow_verdict(
    tool: Tool, labels: Labels, look: Callable[[], Unnamed | None], redact: Callable[[str], str]
) -> Verdict:
    """Judge whether what a call carries may reach what the tool reaches.

    `look` finds a target that nobody trusted has named; it is told, without secrets.
    """
    missing = look() if turns_on_targets(labels, tool.sink) else None
    match judge(labels, tool.sink, provenance=missing is None):
        case Allow():
            return _FLOW_ALLOWED
        case Deny(reason, code, way_out):
            return Verdict("flow", "deny", _told(reason, missing, redact), code, way_out)
        case Ask(reason, code, way_out):
            return Verdict("flow", "ask", _told(reason, missing, redact), code, way_out)


def _told(reason: str, missing: Unnamed | None, redact: Callable[[str], str]) -> str:
    return reason if missing is None else redact(f"{reason}: {missing}")


def refused_or_asked(decided: Decided, flow: Verdict) -> tuple[Verdict, ...]:
    """Raise the first refusal, or return what a person must be asked."""
    if decided.denied:
        raise PolicyViolation(
            f"Policy violation: {decided.denied.reason}",
            rule=decided.denied.code,
            way_out=decided.denied.way_out,
            verdicts=decided.verdicts,
        )
    if flow.verdict == "deny":
        verdicts = (*decided.verdicts, flow)
        raise FlowRefused(
            f"Policy violation: {flow.reason}",
            rule=flow.code,
            way_out=flow.way_out,
            verdicts=verdicts,
        )
    return (*decided.asked, flow) if flow.verdict == "ask" else decided.asked


def subject_of(call: Call, tool: Tool, canonical: bytes, labels: Labels) -> Subject:
    """What a person would be asked about."""
    return Subject(
        call=call,
        tool=tool,
        labels=labels,
        arguments=canonical.decode(),
        arguments_hash=sha256(canonical).hexdigest(),
    )
