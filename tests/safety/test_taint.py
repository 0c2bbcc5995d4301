"""Labels from content, and the table of what may flow where."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.decisions import ALLOW, Allow, Ask, Deny
from openfang.core.labels import Labels
from openfang.core.tools import Effect, Sink
from openfang.safety.redact import Redactor
from openfang.safety.taint import judge, labels_of

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
PERSONAL = [
    "write to ada.lovelace@example.co.uk, please",
    "IBAN DE89 3704 0044 0532 0130 00 BIC X",
    "GB82WEST12345698765432",
    "AT61 1904 3002 3457 3201 WITH THANKS",
    "card 4111 1111 1111 1111 12/29",
    "5500-0000-0000-0004",
    "378282246310005",
    "call +49 30 901820-00",
    "tel:+14155552671",
    "+44 (20) 7946 0958",
]
ORDINARY = [
    "",
    "order 4111 1111 1111 1112",
    "1734567890123 and 1734567890123456789",
    "DE89 3704 0044 0532 0130 01",
    "a diff:\n+20240101\n-20240102",
    "git@github.com:org/repo.git noreply@example.com",
    "lodash@4.17.21 and user@localhost",
    "0000 0000 0000 0000",
    "timezone +0200, 2 + 2 = 4, C++11",
    "550e8400-e29b-41d4-a716-446655440000",
    "192.168.0.1:8080 v1.2.3",
    "日本語 \ud800",
]


@pytest.mark.requirement("C9.1")
@pytest.mark.parametrize("text", PERSONAL)
def test_personal_data_is_labelled(text: str) -> None:
    assert labels_of(text) == Labels.PII


@pytest.mark.requirement("C9.1")
@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_and_names_are_not(text: str) -> None:
    assert labels_of(text) == Labels.NONE


@pytest.mark.requirement("C9.1")
def test_secrets_are_labelled_by_shape_and_with_a_redactor_by_value() -> None:
    assert labels_of(f"key {AWS}") == Labels.SECRET
    assert labels_of(f"{AWS} of ada@example.com") == Labels.SECRET | Labels.PII
    redactor = Redactor(b"k" * 32, ["correct horse"])
    assert labels_of("correct horse") == Labels.NONE
    assert labels_of("correct horse", redactor=redactor) == Labels.SECRET


@pytest.mark.requirement("C9.1")
def test_a_long_text_is_read_in_bounded_time() -> None:
    began = time.process_time()
    for text in ("4111 1111 1111 1112 " * 200_000, "a.b@" * 500_000, "DE89 3704 " * 400_000):
        assert labels_of(text) == Labels.NONE
    assert labels_of("x " * 600_000 + AWS) == Labels.NONE
    assert time.process_time() - began < 5


def luhn(digits: str) -> str:
    """Add the check digit, computed the schoolbook way."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return digits + str(-total % 10)


@pytest.mark.requirement("C9.1")
@settings(max_examples=100, deadline=None)
@given(body=st.text("0123456789", min_size=14, max_size=14), wrong=st.integers(1, 9))
def test_a_card_is_known_by_its_check_digit(body: str, wrong: int) -> None:
    card = luhn("4" + body)
    assert labels_of(f"pay {card} now") & Labels.PII
    bad = card[:-1] + str((int(card[-1]) + wrong) % 10)
    assert not labels_of(f"pay {bad} now") & Labels.PII


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
