"""What the node signs for others: checked by a library of theirs."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import jwt
import pytest
from a2a.utils._jcs import canonicalize
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.app.a2a.signing import Signer, canonical
from openfang.app.clock import SystemClock
from openfang.audit.notary import signer_id
from openfang.testing.clock import ManualClock

pytestmark = pytest.mark.requirement("C5.1", "C5.3")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
BASE = "https://node.example.com"
THERE = "https://peer.example.com:8443"
SIGNER = Signer(KEY, SystemClock(), lambda: BASE)


def test_the_public_key_is_named_as_in_the_audit_log_and_nothing_else_is_shown() -> None:
    (key,) = SIGNER.keys()["keys"]
    assert key["kid"] == SIGNER.kid == signer_id(KEY.public_key())
    assert set(key) == {"kty", "crv", "x", "kid", "use", "alg"}
    assert (key["kty"], key["crv"], key["alg"]) == ("OKP", "Ed25519", "EdDSA")
    assert jwt.PyJWK(key).key == KEY.public_key()


def checked(token: str, audience: str = THERE) -> dict[str, Any]:
    public = jwt.PyJWK(SIGNER.keys()["keys"][0])
    return jwt.decode(token, public, ["EdDSA"], audience=audience, issuer=BASE)


def test_what_is_told_to_a_peer_is_signed_for_this_body_alone() -> None:
    token, other = SIGNER.sign_body(b"{}", THERE), SIGNER.sign_body(b"{}", THERE)
    claims = checked(token)
    assert claims["request_body_sha256"] == sha256(b"{}").hexdigest()
    assert set(claims) == {"iss", "aud", "iat", "exp", "jti", "request_body_sha256"}
    assert jwt.get_unverified_header(token) == {
        "alg": "EdDSA",
        "kid": SIGNER.kid,
        "typ": "JWT",
        "jku": f"{BASE}/.well-known/jwks.json",
    }
    assert checked(other)["jti"] != claims["jti"]
    head, _, signature = token.split(".")
    payload = SIGNER.sign_body(b"{ }", THERE).split(".")[1]
    with pytest.raises(jwt.InvalidSignatureError):
        checked(f"{head}.{payload}.{signature}")


def test_what_one_peer_was_told_holds_for_no_other_and_not_for_long() -> None:
    token = SIGNER.sign_body(b"{}", THERE)
    claims = checked(token)
    assert claims["exp"] - claims["iat"] == 300
    with pytest.raises(jwt.InvalidAudienceError):
        checked(token, "https://other.example.com")
    before = ManualClock(time.time_ns() - 301 * 1_000_000_000)
    with pytest.raises(jwt.ExpiredSignatureError):
        checked(Signer(KEY, before, lambda: BASE).sign_body(b"{}", THERE))


_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_names = st.text("abcXYZ_-", min_size=1, max_size=8)
_cards = st.dictionaries(
    _names,
    st.recursive(
        _words | st.booleans(),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3)
            | st.dictionaries(_names, inner, min_size=1, max_size=3)
        ),
        max_leaves=8,
    ),
    min_size=1,
    max_size=5,
)


@given(_cards)
@settings(max_examples=60, deadline=None)
def test_a_card_is_written_as_rfc_8785_says(card: dict[str, object]) -> None:
    card.pop("signatures", None)
    assert canonical(card) == canonicalize(card or {}).encode()


def test_signatures_and_what_is_empty_are_not_signed() -> None:
    card: dict[str, Any] = {"b": [{"c": []}, ""], "a": {"x": "", "y": {}}, "d": False, "e": "é"}
    assert canonical({**card, "signatures": [{}]}) == '{"d":false,"e":"é"}'.encode()
