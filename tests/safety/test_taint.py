"""The table of what may flow where."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.decisions import ALLOW, Allow, Ask, Deny
from openfang.core.labels import Labels
from openfang.core.tools import Effect, Sink
from openfang.safety.taint import judge

UNTRUSTED = Labels.EXTERNAL_NETWORK
CONFIDENTIAL = (Labels.PII, Labels.PRIVATE, Labels.LOCAL_FILE)
ACTS = (Effect.EXEC, Effect.MONEY, Effect.IDENTITY)
LEAVING = (Effect.EXTERNAL_READ, Effect.EXTERNAL_WRITE, *ACTS)
URL_READER = Sink(targets=("url",))


@pytest.mark.requirement("C9.3")
@pytest.mark.parametrize("effect", ACTS)
@pytest.mark.parametrize("provenance", [None, False, True])
@pytest.mark.parametrize("label", [Labels.EXTERNAL_NETWORK, Labels.UNTRUSTED_AGENT])
def test_untrusted_and_exec_money_or_identity_asks_always(
    effect: Effect, label: Labels, *, provenance: bool | None
) -> None:
    decision = judge(label, Sink(effect=effect, targets=("to",)), provenance=provenance)
    assert isinstance(decision, Ask)
    assert decision.code == "untrusted_act"


@pytest.mark.requirement("C9.3")
@pytest.mark.parametrize("effect", [e for e in Effect if e not in (*ACTS, Effect.NONE)])
def test_untrusted_and_any_effect_asks_unless_the_user_named_the_target(effect: Effect) -> None:
    sink = Sink(effect=effect, targets=("to",))
    for provenance in (None, False):
        decision = judge(UNTRUSTED, sink, provenance=provenance)
        assert isinstance(decision, Ask)
        assert decision.code == "untrusted_effect"
    assert judge(UNTRUSTED, sink, provenance=True) == ALLOW


@pytest.mark.requirement("C9.2", "C9.3")
@pytest.mark.parametrize(
    "sink",
    [
        URL_READER,
        *(Sink(effect=effect) for effect in LEAVING),
    ],
)
def test_a_secret_never_leaves_whoever_asks_and_whatever_else_is_true(sink: Sink) -> None:
    for more, provenance in product((Labels.NONE, UNTRUSTED, Labels.PII), (None, False, True)):
        decision = judge(Labels.SECRET | more, sink, provenance=provenance)
        assert isinstance(decision, Deny)
        assert decision.code == "secret_leaves"


@pytest.mark.requirement("C9.3")
def test_a_secret_may_stay_on_the_machine() -> None:
    assert judge(Labels.SECRET, Sink(effect=Effect.LOCAL_WRITE)) == ALLOW
    assert judge(Labels.SECRET, Sink()) == ALLOW


@pytest.mark.requirement("C9.2", "C9.3")
@pytest.mark.parametrize("label", CONFIDENTIAL)
@pytest.mark.parametrize(
    "sink",
    [URL_READER, Sink(effect=Effect.EXTERNAL_READ), Sink(effect=Effect.EXTERNAL_WRITE)],
)
def test_private_and_untrusted_together_leave_only_to_whom_the_user_named(
    label: Labels, sink: Sink
) -> None:
    for provenance in (None, False):
        decision = judge(label | UNTRUSTED, sink, provenance=provenance)
        assert isinstance(decision, Deny)
        assert decision.code == "private_leaves"
    assert judge(label | UNTRUSTED, sink, provenance=True) == ALLOW


@pytest.mark.requirement("C9.3")
def test_where_one_rule_asks_and_another_refuses_the_refusal_wins() -> None:
    sink = Sink(effect=Effect.EXEC)
    assert isinstance(judge(UNTRUSTED, sink), Ask)
    assert isinstance(judge(UNTRUSTED | Labels.LOCAL_FILE, sink), Deny)
    assert isinstance(judge(UNTRUSTED | Labels.LOCAL_FILE, sink, provenance=True), Ask)
    assert isinstance(judge(UNTRUSTED | Labels.SECRET, sink, provenance=True), Deny)


@pytest.mark.requirement("C9.3")
@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("label", [Labels.NONE, Labels.USER_INPUT, *CONFIDENTIAL])
def test_without_untrusted_content_the_rest_passes(effect: Effect, label: Labels) -> None:
    assert judge(label, Sink(effect=effect, targets=("to",))) == ALLOW


STRICTNESS = {Allow: 0, Ask: 1, Deny: 2}
ALL = st.integers(0, 127).map(Labels)


@pytest.mark.requirement("C9.1", "C9.3")
@settings(max_examples=200, deadline=None)
@given(
    labels=ALL,
    more=ALL,
    effect=st.sampled_from(Effect),
    targets=st.sampled_from([(), ("url",)]),
    provenance=st.sampled_from([None, False, True]),
)
def test_more_labels_never_make_a_decision_milder(
    *,
    labels: Labels,
    more: Labels,
    effect: Effect,
    targets: tuple[str, ...],
    provenance: bool | None,
) -> None:
    sink = Sink(effect=effect, targets=targets)
    before = judge(labels, sink, provenance=provenance)
    after = judge(labels | more, sink, provenance=provenance)
    assert STRICTNESS[type(after)] >= STRICTNESS[type(before)]
    unnamed = judge(labels, sink, provenance=None)
    assert unnamed == judge(labels, sink, provenance=False)
    assert STRICTNESS[type(unnamed)] >= STRICTNESS[type(judge(labels, sink, provenance=True))]
