"""The records of a call, each as it stands in the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from openfang.core.calls import Call, Caller, Context, Mode
from openfang.core.decisions import Verdict
from openfang.core.errors import GuardTripped, PolicyViolation, UnknownTool
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Outcome
from openfang.core.tools import Risk, Tool
from openfang.core.trace import read_chain
from openfang.pipeline import records
from openfang.pipeline.records import Given
from openfang.policy.engine import Decided

if TYPE_CHECKING:
    from openfang.storage.units import Line

pytestmark = pytest.mark.requirement("C7.13", "C13.1")
TOOL = Tool(
    id="ext:demo:act",
    kind=Kind.EXTENSION,
    source="demo",
    name="act",
    risk=Risk.HIGH,
    tags=frozenset({"fs.write", "fs.read"}),
)
CALL = Call(
    tool="demo_act",
    caller=Caller(id="key:me"),
    context=Context(project="default", task_id="task 7"),
    edge="mcp",
)
CONTEXT = '{"c":1}'


def redact(text: str) -> str:
    return text.replace("hunter2", "***")


def said(line: Line, event: str, level: str) -> object:
    assert line[:4] == (event, level, CALL.id, "task 7")
    assert line.context == CONTEXT
    return orjson.loads(line.payload)


def test_a_context_says_who_called_what_in_which_chain() -> None:
    assert records.context_of(CALL, TOOL, "process 1") == {
        "source_type": "extension",
        "tool": "ext:demo:act",
        "caller": "key:me",
        "edge": "mcp",
        "trace": CALL.chain.trace_id,
        "depth": 1,
        "mode": "execution",
        "project": "default",
        "process": "process 1",
    }


def test_a_context_has_what_only_some_calls_have() -> None:
    chain = replace(read_chain(starry_id="star"), depth=3, ancestors=("agent:a", "agent:b"))
    context = Context(mode=Mode.PLANNING, spec_hash="a spec")
    call = replace(CALL, chain=chain, run="a run", context=context, tool="x" * 300)
    found = records.context_of(call, None, "process 1")
    assert (
        found
        | {
            "source_type": "unknown",
            "tool": "x" * 200,
            "mode": "planning",
            "project": None,
            "depth": 3,
            "run": "a run",
            "x-openstarry-trace-id": "star",
            "ancestors": ("agent:a", "agent:b"),
            "spec": "a spec",
        }
        == found
    )


def test_a_decision_has_every_gates_verdict() -> None:
    denied = Verdict("b", "deny", "because", "a_code", "not for the log")
    decided = Decided((Verdict("a", "allow"), denied, Verdict("c", "not_reached")), denied)
    assert said(records.decision(CALL, CONTEXT, decided), "policy_decision", "info") == {
        "decision": "deny",
        "gates": [
            {"gate": "a", "verdict": "allow"},
            {"gate": "b", "verdict": "deny", "reason": "because", "code": "a_code"},
            {"gate": "c", "verdict": "not_reached"},
        ],
    }


def test_a_start_says_what_is_about_to_run() -> None:
    labels = Labels.SECRET | Labels.USER_INPUT
    line = records.start(CALL, TOOL, CONTEXT, '{"a":[1]}', labels)
    assert said(line, "tool_invocation_start", "info") == {
        "arguments": {"a": [1]},
        "risk": "HIGH",
        "side_effects": ["fs.read", "fs.write"],
        "labels": ["user_input", "secret"],
    }


@pytest.mark.parametrize(
    ("outcome", "level"),
    [
        (Outcome.OK, "info"),
        (Outcome.ERROR, "warning"),
        (Outcome.CANCELLED, "warning"),
        (Outcome.TIMEOUT, "error"),
        (Outcome.FAILED, "error"),
        (Outcome.INTERRUPTED, "error"),
    ],
)
def test_an_end_is_as_severe_as_its_outcome(outcome: Outcome, level: str) -> None:
    ending = records.Ending(outcome, 17, steps=(40, 0, 9, 5), size=12)
    line = records.end(CALL, CONTEXT, ending, redact)
    assert said(line, "tool_invocation_end", level) == {
        "outcome": outcome.value,
        "duration_us": 17,
        "labels": [],
        "size": 12,
        "steps_us": [40, 0, 9, 5],
    }


def test_an_end_has_its_evidence_and_a_reason_without_secrets() -> None:
    ending = records.Ending(Outcome.FAILED, 17, Labels.PII, "hunter2 was wrong", {"sha": "1"})
    line = records.end(CALL, CONTEXT, ending, redact)
    assert said(line, "tool_invocation_end", "error") == {
        "outcome": "failed",
        "duration_us": 17,
        "labels": ["pii"],
        "size": 0,
        "steps_us": [],
        "evidence": {"sha": "1"},
        "reason": "*** was wrong",
    }


def test_a_refusal_names_step_rule_and_gate() -> None:
    verdicts = (Verdict("a", "allow"), Verdict("b", "deny"), Verdict("c", "not_reached"))
    refused = PolicyViolation("no hunter2", rule="a_rule", verdicts=verdicts)
    line = records.refusal(CALL, CONTEXT, refused, Given(Labels.EXTERNAL_NETWORK), redact)
    assert said(line, "policy_violation", "warning") == {
        "step": "gate",
        "rule": "a_rule",
        "reason": "no ***",
        "labels": ["external_network"],
        "gate": "b",
    }


@pytest.mark.parametrize("hidden", [True, False])
def test_only_the_log_knows_whether_a_tool_was_hidden(*, hidden: bool) -> None:
    refused = UnknownTool("x", hidden=hidden)
    line = records.refusal(CALL, CONTEXT, refused, Given(Labels.NONE), redact)
    told = {
        "step": "resolve",
        "rule": "unknown_tool",
        "reason": "Unknown tool: x",
        "labels": list[str](),
    }
    assert said(line, "policy_violation", "warning") == (
        {**told, "hidden": "true"} if hidden else told
    )


def test_a_call_that_is_part_of_no_task_says_so() -> None:
    call = replace(CALL, context=Context())
    line = records.refusal(
        call, CONTEXT, GuardTripped("no", rule="loop"), Given(Labels.NONE), redact
    )
    assert (line.task_id, line.call_id) == ("", CALL.id)
