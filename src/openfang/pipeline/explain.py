"""The decision on a call that is not made: every step is asked, nothing changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.decisions import Explanation, Verdict
from openfang.core.errors import CallRefused
from openfang.pipeline.verdicts import subject_of
from openfang.policy.approvals import rule_of
from openfang.policy.context import check_bound
from openfang.safety.sizes import check_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Call
    from openfang.core.keys import Question
    from openfang.core.tools import Tool
    from openfang.pipeline.invoke import Pipeline


async def explain(pipeline: Pipeline, call: Call) -> Explanation:
    """Take a call through the same checks as `invoke`, without making it."""
    tool = pipeline.catalog.find(call.caller, call.tool)
    canonical = check_arguments(call.arguments)
    now = pipeline.clock.monotonic()
    labels = await pipeline.entered(call, tool, canonical)
    arguments = _step("arguments", lambda: pipeline.validator(tool).check(call.arguments))
    # No gate is ever asked about arguments that the tool does not take.
    known = call if arguments.verdict == "allow" else replace(call, arguments={})
    known = await pipeline.shown(known, tool)
    decided = await pipeline.engine.explain(tool, known, labels)
    verdicts = [
        _step("context", lambda: check_bound(call.context)),
        _step("guards", lambda: pipeline.guards.look(call, tool, now, canonical)),
        arguments,
        *decided.verdicts,
        pipeline.flow.verdict(call, tool, labels),
    ]
    verdicts.append(await _approval(pipeline, call, tool, canonical, verdicts))
    return Explanation(
        tool=tool, outcome=_overall(verdicts), verdicts=tuple(verdicts), labels=labels.names
    )


def _step(name: str, check: Callable[[], None]) -> Verdict:
    try:
        check()
    except CallRefused as refusal:
        return Verdict(name, "deny", refusal.message, refusal.rule, refusal.way_out)
    return Verdict(name, "allow")


async def _approval(
    pipeline: Pipeline, call: Call, tool: Tool, canonical: bytes, verdicts: Sequence[Verdict]
) -> Verdict:
    asked = [verdict for verdict in verdicts if verdict.verdict == "ask"]
    if not asked:
        return Verdict("approval", "allow")
    subject = subject_of(call, tool, canonical, call.labels)
    return _answered(await pipeline.approvals.find(subject, rule_of(asked)))


def _answered(question: Question | None) -> Verdict:
    if question is None:
        return Verdict("approval", "ask", "a person would be asked", "not_asked_yet")
    state = question.state.value
    if state == "approved":
        return Verdict("approval", "allow", f"approval {question.id} covers it", "approved")
    verdict = "ask" if state == "pending" else "deny"
    return Verdict("approval", verdict, f"question {question.id} is {state}", state)


def _overall(verdicts: Sequence[Verdict]) -> str:
    words = [verdict.verdict for verdict in verdicts]
    if "deny" in words:
        return "deny"
    return "ask" if words[-1] == "ask" else "allow"
