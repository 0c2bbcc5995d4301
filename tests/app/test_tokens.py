"""Whether a token is good: each algorithm that is taken, each weakness that is not, and garbage."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import ECKey, Key, KeySet, OctKey, OKPKey, RSAKey

from openfang.app.auth.claims import Bad, Said, holder_of
from openfang.app.auth.jwks import metadata_addresses
from openfang.app.auth.tokens import ALGORITHMS, Verifier, read_keys
from openfang.config.node import Issuer
from openfang.core.calls import EVERYTHING, Role

pytestmark = pytest.mark.requirement("C18.2")

NOW = int(time.time())
US, THEM = "https://fang.example", "https://login.example"
RSA = RSAKey.generate_key(2048)
KEYS: dict[str, Key] = {
    "RS": RSA,
    "PS": RSA,
    "ES256": ECKey.generate_key("P-256"),
    "ES384": ECKey.generate_key("P-384"),
    "ES512": ECKey.generate_key("P-521"),
    "ES256K": ECKey.generate_key("secp256k1"),
    "HS": OctKey.generate_key(256),
    "Ed25519": OKPKey.generate_key("Ed25519"),
    "EdDSA": OKPKey.generate_key("Ed25519"),
    "Ed448": OKPKey.generate_key("Ed448"),
}
OTHERS = sorted({known.name for known in JWS_ALGORITHMS} - {*ALGORITHMS, "none"})


def key_for(algorithm: str) -> Key:
    return KEYS.get(algorithm) or KEYS[algorithm[:2]]


def signed(key: Key, algorithm: str, **claims: Any) -> str:
    registry = jws.JWSRegistry(algorithms=[algorithm])
    if algorithm == "EdDSA":
        registry.algorithms = {"EdDSA": registry.algorithms["Ed25519"]}
    said = {"iss": THEM, "aud": US, "sub": "ada", "exp": NOW + 60, **claims}
    head = {"alg": algorithm, "kid": key.kid}
    return jws.serialize_compact(head, json.dumps(said), key, registry=registry)


def verifier(*keys: Key) -> Verifier:
    return Verifier(issuer=THEM, audiences=(US,), keys=KeySet(list(keys)))


def read(verifier: Verifier, token: str) -> Said | Bad:
    return verifier.read(token, NOW * 1_000_000_000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_signature_of_each_algorithm_is_read(algorithm: str) -> None:
    key = key_for(algorithm)
    judge = verifier(key)
    said = read(judge, signed(key, algorithm, scope="a b", scp=["c", 7]))
    assert said == Said(
        subject="ada", scopes=frozenset("abc"), expires_at=(NOW + 60 + 30) * 1_000_000_000
    )


@pytest.mark.parametrize("algorithm", OTHERS)
def test_no_other_algorithm_is_taken_even_if_the_issuer_publishes_its_key(algorithm: str) -> None:
    key = key_for(algorithm)
    judge = verifier(key)
    bad = read(judge, signed(key, algorithm))
    assert isinstance(bad, Bad)
    assert "algorithm" in bad.reason


def test_a_key_is_good_for_its_own_kind_of_signature_alone() -> None:
    ours, token = key_for("ES256"), signed(key_for("ES384"), "ES384")
    named = ECKey.import_key(ours.as_dict(), {"kid": str(key_for("ES384").kid)})
    assert read(verifier(named), token) == Bad("its signature is not the issuer's")
    for_other = RSAKey.import_key(RSA.as_dict(), {"alg": "RS512"})
    assert isinstance(read(verifier(for_other), signed(RSA, "RS256")), Bad)


def test_a_token_may_leave_its_key_unsaid_where_there_is_one() -> None:
    one, two = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    said = json.dumps({"iss": THEM, "aud": [US, "x"], "sub": "ada", "exp": NOW + 60})
    token = jws.serialize_compact({"alg": "ES256"}, said, one)
    assert isinstance(read(verifier(one), token), Said)
    assert isinstance(read(verifier(one, two), token), Bad)
    assert not verifier(one, two).lacks_key(token)


def test_only_keys_that_are_strong_and_sign_are_taken_out_of_a_set() -> None:
    strong = RSA.as_dict(kid="strong")
    with pytest.warns(UserWarning, match="2048"):
        weak = RSAKey.generate_key(1024).as_dict(kid="weak")
    others: list[Any] = [
        weak,
        {**strong, "kid": "enc", "use": "enc"},
        OctKey.generate_key(256).as_dict(kid="shared"),
        {"kty": "AKP", "kid": "unknown"},
        {"kty": ["RSA"], "kid": "odd"},
        {**strong, "kid": "broken", "n": "!"},
        {"kty": "RSA", "kid": "empty"},
        "nothing",
    ]
    found = read_keys({"keys": [*others, strong]})
    assert found
    assert [key.kid for key in found] == ["strong"]
    nothing: tuple[Any, ...] = ({"keys": others}, {"keys": []}, {"keys": "x"}, {}, [], None)
    assert [read_keys(document) for document in nothing] == [None] * len(nothing)


def test_a_token_that_never_ends_is_no_number_too_large() -> None:
    key = key_for("ES256")
    said = read(verifier(key), signed(key, "ES256", exp=10**300))
    assert isinstance(said, Said)
    assert said.expires_at < 1 << 80


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", [True, "1", None, [], {}])
def test_a_time_that_is_no_number_is_refused(claim: str, value: Any) -> None:
    key = key_for("ES256")
    assert isinstance(read(verifier(key), signed(key, "ES256", **{claim: value})), Bad)


JUDGE = verifier(key_for("ES256"))
PARTS = signed(key_for("ES256"), "ES256").split(".")
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = LEAVES | st.lists(LEAVES, max_size=3)
NAMES = st.sampled_from(["alg", "kid", "typ", "crit", "x5c", "jwk"])


@given(header=st.dictionaries(NAMES, VALUES), other=VALUES)
@settings(max_examples=60, deadline=None)
def test_a_header_of_any_form_is_answered_with_a_reason(
    header: dict[str, Any], other: object
) -> None:
    for said in (header, {**header, "alg": "ES256"}, other):
        head = urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
        assert isinstance(read(JUDGE, f"{head}.{PARTS[1]}.{PARTS[2]}"), Bad)


@given(token=st.text(max_size=60) | st.from_regex(r"e[\w-]{0,40}\.[\w-]{0,40}\.[\w-]{0,40}"))
@settings(max_examples=60, deadline=None)
def test_any_text_is_answered_with_a_reason(token: str) -> None:
    assert isinstance(read(JUDGE, token), Bad)
    JUDGE.lacks_key(token)


def test_a_header_of_many_levels_is_answered_with_a_reason() -> None:
    for depth in (400, 500, 5_000):
        text = f'{{"alg":"ES256","x":{"[" * depth}{"]" * depth}}}'
        head = urlsafe_b64encode(text.encode()).decode().rstrip("=")
        assert isinstance(read(JUDGE, f"{head}.{PARTS[1]}.{PARTS[2]}"), Bad)


# --- who holds it -----------------------------------------------------------------------------


TERMS = Issuer(url=THEM, audience=US)


def holder(subject: str) -> str:
    return holder_of(Said(subject=subject, scopes=frozenset(), expires_at=1), TERMS).id


@pytest.mark.parametrize("subject", ["ada", "auth0|6f", "a.b@example.com", "x" * 64, "0-1+2"])
def test_a_plain_subject_is_the_name_of_its_holder(subject: str) -> None:
    assert holder(subject) == f"oauth:{subject}"


@given(subjects=st.sets(st.text(min_size=1), min_size=2, max_size=20))
@settings(max_examples=50, deadline=None)
def test_no_two_subjects_share_a_name(subjects: set[str]) -> None:
    subjects |= {"a/b", "a_b", "a:b", "a b", "../a", "x" * 65, "x" * 66, "x" * 40}
    names = {holder(subject) for subject in subjects}
    assert len(names) == len(subjects)
    for name in names:
        assert len(name) <= 80
        assert not set(name.removeprefix("oauth:")) & set("/: \n\0\\'\"")
        assert name.isascii()


def test_a_holder_is_a_user_with_the_default_project_and_opens_http_alone() -> None:
    said = Said(subject="ada", scopes=frozenset(), expires_at=1)
    held = holder_of(said, TERMS)
    caller = held.caller()
    assert (caller.role, caller.projects, caller.grants) == (Role.USER, ("default",), EVERYTHING)
    opened = [edge for edge in ("api", "mcp", "a2a", "openai", "web", "cli") if held.opens(edge)]
    assert opened == ["api", "mcp", "a2a", "openai"]
    assert not replace(held, enough=False).opens("mcp")


@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        ("https://x", ["oauth-authorization-server", "openid-configuration"]),
        ("https://x/", ["oauth-authorization-server", "openid-configuration"]),
    ],
)
def test_an_issuer_without_a_path_is_asked_in_two_places(issuer: str, places: list[str]) -> None:
    assert [*metadata_addresses(issuer)] == [f"https://x/.well-known/{one}" for one in places]
