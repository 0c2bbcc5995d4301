from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import TAGS, Effect, Risk, Sink, Tool, Trust
from openfang.registry.adapters import apply_adapters
from openfang.registry.classify import harm

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("C7.15")

SINKS = st.builds(Sink, effect=st.sampled_from(Effect), targets=st.sampled_from([(), ("url",)]))
LOOKS = st.fixed_dictionaries(
    {
        "risk": st.sampled_from(Risk),
        "tags": st.frozensets(st.sampled_from(sorted(TAGS)), max_size=3),
        "sink": SINKS,
        "labels": st.sampled_from([Labels.NONE, Labels.EXTERNAL_NETWORK, Labels.SECRET]),
        "requires_admin_token": st.booleans(),
        "enabled": st.booleans(),
    }
)


@dataclass(frozen=True)
class Says:
    change: Callable[[Tool], Tool]

    def adapt(self, tool: Tool) -> Tool:
        return self.change(tool)


def tool(trust: Trust, **looks: object) -> Tool:
    plain = Tool(id="mcp:s:t", kind=Kind.MCP, source="s", name="t", trust=trust)
    return replace(plain, **looks)  # pyright: ignore[reportArgumentType] - fields of a tool


@given(LOOKS, LOOKS, st.sampled_from([Trust.LOW, Trust.MEDIUM]))
@settings(max_examples=150, deadline=None)
def test_an_adapter_never_lowers_below_trust_high(
    has: dict[str, object], wants: dict[str, object], trust: Trust
) -> None:
    before = tool(trust, **has)
    after = apply_adapters(before, [Says(lambda _: tool(Trust.HIGH, **wants))])
    assert after.risk == max(before.risk, cast("Risk", wants["risk"]))
    assert after.tags >= before.tags
    assert harm(after.sink.effect) >= harm(before.sink.effect)
    assert set(after.sink.targets) >= set(before.sink.targets)
    assert after.labels & before.labels == before.labels
    assert after.requires_admin_token >= before.requires_admin_token
    assert after.enabled <= before.enabled
    assert after.trust is trust


def test_an_adapter_raises_and_a_critical_tool_asks_for_the_token() -> None:
    low = tool(Trust.MEDIUM, risk=Risk.LOW, tags=frozenset[str]())
    after = apply_adapters(low, [Says(lambda t: replace(t, risk=Risk.CRITICAL))])
    assert (after.risk, after.tags, after.requires_admin_token) == (
        Risk.CRITICAL, {"unknown"}, True,
    )  # fmt: skip


def test_an_adapter_lowers_for_trust_high() -> None:
    high = tool(Trust.HIGH, risk=Risk.HIGH, tags=frozenset({"fs.write"}))
    lower = Says(lambda t: replace(t, risk=Risk.LOW, tags=frozenset({"fs.read"})))
    after = apply_adapters(high, [lower])
    assert (after.risk, after.tags) == (Risk.LOW, {"fs.read"})


def test_an_adapter_cannot_change_who_a_tool_is() -> None:
    before = tool(Trust.HIGH)
    other = replace(before, id="builtin:x", kind=Kind.BUILTIN, name="x", hold="", trust=Trust.LOW)
    assert apply_adapters(replace(before, hold="held"), [Says(lambda _: other)]) == replace(
        before, hold="held"
    )


@pytest.mark.parametrize(
    "answer", [None, "tool", tool(Trust.LOW, tags=frozenset({"fs_write"})), tool(Trust.LOW, risk=9)]
)
def test_an_adapter_that_fails_leaves_the_risk_and_makes_the_effects_unknown(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    before = tool(Trust.HIGH, risk=Risk.LOW, tags=frozenset({"fs.read"}))
    with caplog.at_level(logging.ERROR, "openfang.registry"):
        after = apply_adapters(before, [Says(lambda _: cast("Tool", answer))])
    assert after == replace(before, tags=frozenset({"fs.read", "unknown"}))
    assert "mcp:s:t" in caplog.text


def test_adapters_follow_each_other_and_a_broken_one_stops_nobody() -> None:
    def broken(_: Tool) -> Tool:
        raise RuntimeError

    raise_it = Says(lambda t: replace(t, risk=Risk(min(t.risk + 1, Risk.CRITICAL))))
    low = tool(Trust.MEDIUM, risk=Risk.LOW, tags=frozenset[str]())
    after = apply_adapters(low, [raise_it, Says(broken), raise_it])
    assert (after.risk, after.tags) == (Risk.HIGH, {"unknown"})
