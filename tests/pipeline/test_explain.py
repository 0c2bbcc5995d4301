"""The decision on a call that is not made, step by step, and what a person has said to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.errors import Parked
from openfang.core.ids import Kind
from openfang.core.keys import Way
from openfang.core.tools import Risk
from openfang.pipeline.explain import explain
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.core.decisions import Explanation, Verdict

pytestmark = pytest.mark.requirement("C7.14")
GATES = ("disabled", "mode", "spec_frozen", "project", "policy", "admin_token", "trust", "grants")
STEPS = ("context", "guards", "arguments", *GATES, "flow", "approval")


async def done(_: Mapping[str, Any]) -> str:
    return "done"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    schema = {"properties": {"n": {"type": "integer"}}}
    harmless = {"risk": Risk.LOW, "tags": frozenset[str](), "input_schema": schema}
    risky = {"risk": Risk.HIGH, "tags": frozenset({"fs.write"})}
    source = TableSource(Kind.MCP, "demo", {"reads": (harmless, done), "acts": (risky, done)})
    async with open_test_app(tmp_path / "home", sources=[source]) as opened:
        yield opened


async def explained(app: OpenApp, tool: str, **arguments: object) -> Explanation:
    return await explain(app.parts.pipeline, app.make(f"mcp:demo:{tool}", arguments))


def approval(explanation: Explanation) -> Verdict:
    return explanation.verdicts[-1]


async def test_every_step_has_its_say(app: OpenApp) -> None:
    found = await explained(app, "reads", n=1)
    assert [(one.gate, one.verdict) for one in found.verdicts] == [
        (step, "allow") for step in STEPS
    ]
    assert (found.outcome, found.tool.id, found.labels) == ("allow", "mcp:demo:reads", [])


async def test_arguments_that_do_not_fit_are_one_step_that_refuses(app: OpenApp) -> None:
    found = await explained(app, "reads", n="x")
    refused = [one for one in found.verdicts if one.verdict != "allow"]
    assert [(one.gate, one.verdict, one.code) for one in refused] == [
        ("arguments", "deny", "schema_mismatch")
    ]
    assert found.outcome == "deny"


@pytest.mark.parametrize(
    ("approve", "outcome", "verdict", "code"),
    [(True, "allow", "allow", "approved"), (False, "deny", "deny", "denied")],
)
async def test_what_a_person_has_said_is_the_last_word(
    app: OpenApp, *, approve: bool, outcome: str, verdict: str, code: str
) -> None:
    before = await explained(app, "acts")
    assert (before.outcome, approval(before).code) == ("ask", "not_asked_yet")
    with pytest.raises(Parked) as parked:
        await app.call("mcp:demo:acts")
    question = parked.value.question_id
    meanwhile = await explained(app, "acts")
    assert (meanwhile.outcome, approval(meanwhile).code) == ("ask", "pending")
    await app.parts.approvals.answer(question, approve=approve, by=app.caller.id, via=Way.API)
    after = await explained(app, "acts")
    last = approval(after)
    assert (after.outcome, last.gate, last.verdict, last.code) == (
        outcome,
        "approval",
        verdict,
        code,
    )
    assert question in last.reason
