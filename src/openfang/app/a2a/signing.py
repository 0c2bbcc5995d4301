"""What the node signs for others to check: the cards of its agents, and what it tells them later.

Signatures are JWS by the node's own Ed25519 key, whose public half is at `jwks.json`. Importing
this imports joserfc, a fifth of a second: do it when A2A is used.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from joserfc.jwa import EdDSAAlgorithm
from joserfc.jwk import OKPKey
from joserfc.jws import JWSRegistry, serialize_compact

from openfang.audit.notary import signer_id
from openfang.core.ids import random_hex
from openfang.edges.a2a.places import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from openfang.core.ports import Clock

_ALGORITHM: Final = "EdDSA"
_SIGNATURES: Final = "signatures"
_SECOND: Final = 1_000_000_000
_HOLDS_SECONDS: Final = 300


class _Edwards(EdDSAAlgorithm):
    """Ed25519 under the name by which every peer knows it: no reason to warn anybody."""

    security_warning = None


class _Registry(JWSRegistry):
    algorithms = {_ALGORITHM: _Edwards()}  # noqa: RUF012 - the library's own attribute


class Signer:
    """Signs as one node. `base` says where that is reached, which a reload may change."""

    def __init__(self, key: Ed25519PrivateKey, clock: Clock, base: Callable[[], str]) -> None:
        self.kid = signer_id(key.public_key())
        self._key = OKPKey.import_key(key, {"kid": self.kid, "use": "sig", "alg": _ALGORITHM})
        self._clock = clock
        self._base = base
        self._registry = _Registry(algorithms=[_ALGORITHM], strict_check_header=False)

    def sign(self, card: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sign a card in its canonical form: the two parts of a JWS whose payload it is."""
        protected, _, signature = self._signed("JOSE", canonical(card)).split(".")
        return {"protected": protected, "signature": signature}

    def sign_body(self, body: bytes, audience: str) -> str:
        """Sign what is told to a peer: a JWT that holds there, for this body, for five minutes."""
        now = self._clock.time_ns() // _SECOND
        claims = {
            "iss": self._base(),
            "aud": audience,
            "iat": now,
            "exp": now + _HOLDS_SECONDS,
            "jti": random_hex(16),
            "request_body_sha256": sha256(body).hexdigest(),
        }
        return self._signed("JWT", json.dumps(claims, separators=(",", ":")).encode())

    def keys(self) -> Mapping[str, Any]:
        """The key that all this is checked with, as a JWK set."""
        return {"keys": [self._key.as_dict(private=False)]}

    def _signed(self, kind: str, payload: bytes) -> str:
        keys_at = f"{self._base()}{KEYS}"
        header = {"alg": _ALGORITHM, "kid": self.kid, "typ": kind, "jku": keys_at}
        return serialize_compact(header, payload, self._key, registry=self._registry)


def canonical(card: Mapping[str, Any]) -> bytes:
    """Write a card as it is signed: without signatures and what is empty, by RFC 8785.

    Cards hold text and truth values alone, so the order of keys is all that has to be settled.
    """
    signed = {name: value for name, value in card.items() if name != _SIGNATURES}
    text = json.dumps(
        _filled(signed) or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return text.encode()


def _filled(value: object) -> object:
    """Leave out what is empty, and what is empty without it."""
    match value:
        case dict():
            held = cast("dict[str, object]", value)
            return {
                name: kept for name, one in held.items() if (kept := _filled(one)) is not None
            } or None
        case list() | tuple():
            kept = (_filled(one) for one in cast("list[object]", value))
            return [one for one in kept if one is not None] or None
        case "":
            return None
        case _:
            return value
