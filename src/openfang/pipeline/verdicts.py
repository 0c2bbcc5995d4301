"""What the verdicts on a call lead to: a refusal, a question to a person, or nothing at all."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from openfang.core.decisions import Allow, Ask, Deny, Verdict
from openfang.core.errors import FlowRefused, PolicyViolation
from openfang.policy.approvals import Subject
from openfang.safety.taint import judge

if TYPE_CHECKING:
    from openfang.core.calls import Call
    from openfang.core.labels import Labels
    from openfang.core.tools import Tool
    from openfang.policy.engine import Decided

_FLOW_ALLOWED: Final = Verdict("flow", "allow")


def flow_verdict(tool: Tool, labels: Labels) -> Verdict:
    """Judge whether what a call carries may reach what the tool reaches."""
    match judge(labels, tool.sink):
        case Allow():
            return _FLOW_ALLOWED
        case Deny(reason, code, way_out):
            return Verdict("flow", "deny", reason, code, way_out)
        case Ask(reason, code, way_out):
            return Verdict("flow", "ask", reason, code, way_out)


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


def subject_of(call: Call, tool: Tool, canonical: bytes) -> Subject:
    """What a person would be asked about."""
    return Subject(
        call=call,
        tool=tool,
        arguments=canonical.decode(),
        arguments_hash=sha256(canonical).hexdigest(),
    )
