"""The records of a call, as lines for the log: its decision, its start, its refusal, its end.

`redact` sees whatever somebody else may have written; words of our own are not looked through.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

from openfang.core.calls import Role
from openfang.core.errors import UnknownTool
from openfang.core.events import (
    EVENT_PUBLISHED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
)
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.results import Outcome
from openfang.core.triggers import PEER_CALL
from openfang.storage.units import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.calls import Call
    from openfang.core.decisions import Verdict
    from openfang.core.errors import CallRefused
    from openfang.core.events import Level
    from openfang.core.tools import Tool
    from openfang.policy.engine import Decided

Redact: TypeAlias = "Callable[[str], str]"
_LEVELS: dict[Outcome, Level] = {
    Outcome.OK: "info",
    Outcome.ERROR: "warning",
    Outcome.CANCELLED: "warning",
    Outcome.TIMEOUT: "error",
    Outcome.FAILED: "error",
    Outcome.INTERRUPTED: "error",
}


class Ending(NamedTuple):
    """How a call ended. `steps` are the times of `Trail.steps`, `size` is what came back."""

    outcome: Outcome
    duration_us: int
    labels: Labels = Labels.NONE
    reason: str = ""
    evidence: Mapping[str, Any] | None = None
    steps: tuple[int, ...] = ()
    size: int = 0


class Given(NamedTuple):
    """What a call carried as far as it came; its arguments, if they are to be kept."""

    labels: Labels
    arguments: bytes = b""


def context_of(call: Call, tool: Tool | None, process: str) -> dict[str, Any]:
    """Say who called what, in which chain, by which process."""
    chain = call.chain
    context: dict[str, Any] = {
        "source_type": tool.kind.source_type if tool else "unknown",
        "tool": tool.id if tool else call.tool[:200],
        "caller": call.caller.id,
        "edge": call.edge,
        "trace": chain.trace_id,
        "depth": chain.depth,
        "mode": call.context.mode.value,
        "project": call.context.project,
        "process": process,
    }
    if call.caller.role is not Role.USER:
        context["role"] = call.caller.role.value
    if call.run is not None:
        context["run"] = call.run
    if chain.starry_id is not None:
        context["x-openstarry-trace-id"] = chain.starry_id
    if chain.ancestors:
        context["ancestors"] = chain.ancestors
    if call.context.spec_hash is not None:
        context["spec"] = call.context.spec_hash
    return context


def decision(call: Call, context: str, decided: Decided, labels: Labels | None = None) -> Line:
    """Every gate's verdict, once per call; with its labels, if no start will tell them."""
    return _line(POLICY_DECISION, "info", call, _decision_text(decided, labels), context)


@lru_cache(maxsize=64)
def _decision_text(decided: Decided, labels: Labels | None) -> str:
    gates = [
        {key: value for key, value in _verdict_fields(verdict) if value}
        for verdict in decided.verdicts
    ]
    told = {} if labels is None else {"labels": labels.names}
    return orjson.dumps({"decision": decided.outcome, "gates": gates, **told}).decode()


def _verdict_fields(verdict: Verdict) -> tuple[tuple[str, object], ...]:
    return (
        ("gate", verdict.gate),
        ("verdict", verdict.verdict),
        ("reason", verdict.reason),
        ("code", verdict.code),
        ("rules", verdict.rules),
        ("shadow", dict(verdict.shadow)),
    )


def start(call: Call, tool: Tool, context: str, arguments: str, labels: Labels) -> Line:
    """What is about to run, with its redacted arguments."""
    payload = {
        "arguments": orjson.Fragment(arguments),
        "risk": tool.risk.name,
        "side_effects": sorted(tool.tags),
        "labels": labels.names,
    }
    return _line(TOOL_INVOCATION_START, "info", call, orjson.dumps(payload).decode(), context)


def taken(call: Call, tool: Tool, context: str, redact: Redact) -> Line:
    """A call of a peer's, as the event that it is to the rest of the house (C8.5)."""
    chain = call.chain
    payload = {
        "id": new_id("event"),
        "event": PEER_CALL,
        "payload": {
            "tool": tool.id,
            "peer": call.peer,
            "caller": call.caller.id,
            "trace": chain.trace,
            "depth": chain.depth,
            "path": chain.ancestors,
        },
        "labels": call.labels.names,
    }
    text = redact(orjson.dumps(payload).decode())
    return _line(EVENT_PUBLISHED, "info", call, text, context)


def end(call: Call, context: str, ending: Ending, redact: Redact) -> Line:
    """How it ended, with the labels of what came back."""
    payload: dict[str, Any] = {
        "outcome": ending.outcome.value,
        "duration_us": ending.duration_us,
        "labels": ending.labels.names,
        "size": ending.size,
        "steps_us": ending.steps,
    }
    if ending.evidence:
        payload["evidence"] = ending.evidence
    if not ending.reason:
        text = orjson.dumps(payload).decode()
    else:
        text = redact(orjson.dumps({**payload, "reason": ending.reason}).decode())
    return _line(TOOL_INVOCATION_END, _LEVELS[ending.outcome], call, text, context)


def refusal(call: Call, context: str, refused: CallRefused, given: Given, redact: Redact) -> Line:
    """Which step said no, by which rule, and why, and what the call carried as far as it came."""
    payload: dict[str, Any] = {
        "step": refused.step,
        "rule": refused.rule,
        "reason": refused.message,
        "labels": given.labels.names,
    }
    denied = next((verdict for verdict in refused.verdicts if verdict.verdict == "deny"), None)
    if denied is not None:
        payload["gate"] = denied.gate
    if isinstance(refused, UnknownTool) and refused.hidden:
        payload["hidden"] = "true"
    if given.arguments:
        payload["arguments"] = orjson.Fragment(given.arguments)
    text = redact(orjson.dumps(payload).decode())
    return _line(POLICY_VIOLATION, "warning", call, text, context)


def _line(event: str, level: Level, call: Call, payload: str, context: str) -> Line:
    return Line(event, level, call.id, call.context.task_id or "", payload, context)
