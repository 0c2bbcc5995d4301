from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.compat import InvocationContext, RiskLevel, ToolDescriptor, ToolResult, ToolSource
from openfang.core.calls import Mode
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Tool
from openfang.policy.context import Wish

pytestmark = pytest.mark.requirement("C20")


@pytest.mark.requirement("C7.6")
def test_risks_are_ordered_and_med_is_medium() -> None:
    words = ["CRITICAL", "LOW", "HIGH", "MED", "medium"]
    ordered = sorted(RiskLevel(word) for word in words)
    assert [risk.name for risk in ordered] == ["LOW", "MEDIUM", "MEDIUM", "HIGH", "CRITICAL"]
    assert RiskLevel.CRITICAL >= RiskLevel.HIGH > RiskLevel.MED
    assert RiskLevel.MED is RiskLevel.MEDIUM
    with pytest.raises(ValueError, match="SEVERE"):
        RiskLevel("SEVERE")


@given(st.sampled_from(Risk), st.sampled_from(RiskLevel))
def test_a_seeds_risk_compares_with_ours(ours: Risk, theirs: RiskLevel) -> None:
    assert (theirs.value < ours.value) is (theirs < ours)
    assert RiskLevel(ours).name == ours.name


def test_a_source_is_its_word_and_knows_our_kind() -> None:
    words = {source: source.kind for source in ToolSource}
    assert words["extension"] is Kind.EXTENSION  # pyright: ignore[reportArgumentType] - a word
    assert {kind.source_type for kind in words.values()} == set(ToolSource)
    assert set(words.values()) == set(Kind)


def test_a_descriptor_says_what_the_tool_is() -> None:
    tool = Tool(
        id="ext:mail:send",
        kind=Kind.EXTENSION,
        source="mail",
        name="send",
        description="Sends a letter.",
        input_schema={"type": "object"},
        risk=Risk.HIGH,
        tags=frozenset({"network.http", "fs.read"}),
        requires_admin_token=True,
        timeout=2.5,
        hold="it changed",
    )
    described = ToolDescriptor.of(tool)
    assert described == ToolDescriptor(
        tool_id="ext:mail:send",
        name="send",
        description="Sends a letter.",
        input_schema={"type": "object"},
        risk_level=RiskLevel.HIGH,
        side_effect_tags=["fs.read", "network.http"],
        requires_admin_token=True,
        source_type=ToolSource.EXTENSION,
        source_id="mail",
        timeout_ms=2500,
        enabled=False,
    )
    back = described.as_tool()
    assert (back.id, back.kind, back.tags, back.risk) == (tool.id, tool.kind, tool.tags, tool.risk)
    assert not back.available


def test_a_context_wishes_only_what_may_be_wished() -> None:
    ctx = InvocationContext(
        mode="planning",
        spec_frozen=True,
        spec_hash="h",
        project_id="p",
        policy_blacklist=["payments"],
        admin_token="secret",
        task_id="t",
    )
    assert ctx.wish == Wish(
        mode=Mode.PLANNING,
        project_id="p",
        spec_hash="h",
        task_id="t",
        blacklist=frozenset({"payments"}),
    )
    assert "secret" not in repr(ctx)
    assert InvocationContext().wish == Wish()
    with pytest.raises(ValueError, match="dreaming"):
        InvocationContext(mode="dreaming")


def test_a_result_with_an_error_is_no_success() -> None:
    assert ToolResult(error="no").success is False
