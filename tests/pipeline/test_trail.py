"""What is known of a call on its way: where its time went, and what of it others have written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openfang.core.calls import Call, Caller, Context
from openfang.core.decisions import Verdict
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Tool
from openfang.core.trace import new_chain
from openfang.pipeline.trail import Trail
from openfang.policy.engine import Decided

TOOL = Tool(id="builtin:echo", kind=Kind.BUILTIN, source="builtin", name="echo")
CALL = Call(tool=TOOL.id, caller=Caller(id="key:a"))


@pytest.mark.requirement("C14.3")
def test_the_time_of_a_call_is_told_step_by_step() -> None:
    whole = Trail(CALL, came=1.0, asked=0.5, noted=4.0, answered=6.0)
    assert whole.steps(began=3.0, ended=7.0) == (1_500_000, 500_000, 1_000_000, 2_000_000)
    unanswered = Trail(CALL, came=1.0, noted=4.0)
    assert unanswered.steps(began=3.0, ended=7.0) == (2_000_000, 0, 1_000_000, 3_000_000)
    unnoted = Trail(CALL, came=1.0)
    assert unnoted.steps(began=3.0, ended=7.0) == (2_000_000, 0, 4_000_000, 0)


@pytest.mark.requirement("C13.4")
@pytest.mark.parametrize(
    "told",
    [
        {"run": "session"},
        {"chain": replace(new_chain(), starry_id="star")},
        {"chain": new_chain().deeper("agent:a")},
        {"context": Context(spec_hash="0")},
    ],
)
def test_what_somebody_else_wrote_is_not_ours(told: dict[str, Any]) -> None:
    assert Trail(CALL, TOOL).ours
    assert not Trail(CALL).ours
    assert not Trail(replace(CALL, **told), TOOL).ours


@pytest.mark.requirement("C13.4", "C7.13")
@pytest.mark.parametrize(
    ("size", "labels", "kept"),
    [
        (16_384, Labels.PII, True),
        (16_385, Labels.NONE, False),
        (10, Labels.SECRET | Labels.PII, False),
    ],
)
def test_arguments_of_what_was_judged_are_kept_if_they_are_short_and_no_secret(
    size: int, labels: Labels, *, kept: bool
) -> None:
    decided = Decided((Verdict("gate", "allow"),))
    trail = Trail(CALL, TOOL, canonical=b"x" * size, labels=labels, decided=decided)
    assert trail.given.labels == labels
    assert trail.given.arguments == (trail.canonical if kept else b"")
    assert Trail(CALL, TOOL, canonical=b"{1}").given.arguments == b""


@pytest.mark.requirement("C7.12")
def test_a_result_of_a_million_characters_is_not_large_and_one_more_is() -> None:
    assert not Trail(CALL, weight=1_000_000).large
    assert Trail(CALL, weight=1_000_001).large
