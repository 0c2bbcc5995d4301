"""What is told of a chain comes back as it was, and whoever changes it is found out."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given
from hypothesis import strategies as st

from openfang.core.labels import Labels
from openfang.core.trace import Told
from openfang.protocols.hops.labels import hints_of, labels_beside, labels_in
from openfang.protocols.hops.token import (
    LIFE_MS,
    SKEW_MS,
    TELLS,
    BadToken,
    check_signature,
    check_times,
    claims_in,
    sealed,
)
from openfang.protocols.hops.words import ASKS, header_of, read_told, told_in, words_of

pytestmark = pytest.mark.requirement("C8.4", "C9.4")
KEY = Ed25519PrivateKey.generate()
names = st.from_regex(r"\A[!-+\--~]{1,40}\Z")
labels = st.integers(0, 127).map(lambda bits: Labels.of(Labels(bits).names))
tolds = st.builds(
    Told,
    depth=st.integers(1, 60),
    ancestors=st.lists(names, max_size=5).map(tuple),
    seconds=st.none() | st.integers(0, 10**6).map(lambda ms: ms / 1000),
    calls=st.none() | st.integers(0, 10**6),
    usd=st.none() | st.floats(0, 10**6),
    labels=labels,
)


def deep(told: Told) -> Told:
    """As deep as it must be to have so many ancestors."""
    return Told(
        depth=max(told.depth, len(told.ancestors) + 1),
        ancestors=told.ancestors,
        seconds=told.seconds,
        calls=told.calls,
        usd=told.usd,
        labels=told.labels,
    )


@given(tolds)
def test_what_is_told_is_read_as_it_was_told(told: Told) -> None:
    assert told_in(words_of(told)).labels >= told.labels
    for read in (read_told(words_of(told)), read_told(header_of(told))):
        assert read is not None
        assert (read.depth, read.ancestors) == (deep(told).depth, told.ancestors)
        assert (read.calls, read.usd) == (told.calls, told.usd)
        assert read.labels & told.labels == told.labels


@given(tolds)
def test_a_signed_chain_survives_the_way(told: Told) -> None:
    token = sealed(ASKS, words_of(told), KEY.sign)
    check_signature(ASKS, token, KEY.public_key())
    assert told_in(claims_in(ASKS, token)).ancestors == told.ancestors
    read = read_told(token)
    assert read is not None
    assert read.token == token


@given(tolds, st.data())
def test_one_bit_that_is_another_is_refused(told: Told, data: st.DataObject) -> None:
    token = sealed(ASKS, words_of(told), KEY.sign).encode()
    place = data.draw(st.integers(0, len(token) * 8 - 1))
    changed = bytearray(token)
    changed[place // 8] ^= 1 << place % 8
    with pytest.raises(BadToken):
        check_signature(ASKS, changed.decode("latin-1"), KEY.public_key())


@given(st.text(max_size=200))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        check_signature(ASKS, text, KEY.public_key())


def test_what_was_signed_of_an_answer_is_no_question() -> None:
    token = sealed(TELLS, {"re": "1"}, KEY.sign)
    check_signature(TELLS, token, KEY.public_key())
    with pytest.raises(BadToken):
        check_signature(ASKS, token, KEY.public_key())


@given(st.integers(-(10**6), 10**6), st.integers(-(10**5), 10**5))
def test_a_token_holds_for_a_minute_and_a_little(offset: int, life: int) -> None:
    now = 10**12
    claims = {"iat": now + offset, "exp": now + offset + life}
    good = 0 < life <= LIFE_MS and offset <= SKEW_MS and offset + life >= -SKEW_MS
    if good:
        check_times(claims, now)
    else:
        with pytest.raises(BadToken):
            check_times(claims, now)


def test_what_was_signed_before_the_node_began_may_have_been_used() -> None:
    now = 10**12
    with pytest.raises(BadToken):
        check_times({"iat": now - 1000, "exp": now + 1000}, now, since_ms=now - 500)


nonsense = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside),
    max_leaves=8,
)
odd = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("depth", "ancestors", "left_ms", "calls", "usd", "labels", "sensitiveHint"), nonsense
    ),
)


@given(odd | nonsense)
def test_nonsense_says_nothing_that_would_loosen_anything(value: object) -> None:
    told = read_told(value)
    assume(told is not None)
    assert told is not None
    assert told.depth >= 1
    for bound in (told.calls, told.usd, told.seconds):
        assert bound is None or bound >= 0


@given(labels)
def test_labels_come_back_in_the_words_of_the_proposal(one: Labels) -> None:
    hints = hints_of(one, ["agent:a"])
    assert labels_in(hints) & one == one
    hints.pop("labels")
    found = labels_in(hints)
    assert bool(found.untrusted) == one.untrusted
    assert found <= labels_in(hints_of(one)) | one | Labels.EXTERNAL_NETWORK | Labels.PRIVATE


def test_labels_are_found_in_every_place_and_only_add() -> None:
    assert labels_beside({"sensitiveHint": "high"}) == Labels.SECRET
    assert labels_beside({"annotations": {"openWorldHint": True}}) == Labels.EXTERNAL_NETWORK
    assert labels_beside({"openfang/labels": {"labels": ["pii", "?"]}}) == Labels.PII
    malicious = labels_beside({"annotations": {"maliciousActivityHint": True}})
    assert malicious == Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT
    assert labels_beside({"openWorldHint": False, "labels": "secret"}) == Labels.NONE
