"""Access tokens: whether one is the issuer's and meant for us, and what it says.

Pure: keys and time are handed in. Importing this imports joserfc, a fifth of a second: do it when
the first token comes.
"""

from __future__ import annotations

import warnings
from base64 import urlsafe_b64decode
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import orjson
from joserfc.errors import (
    BadSignatureError,
    ClaimError,
    InvalidKeyCurveError,
    InvalidKeyIdError,
    JoseError,
    KeyParameterError,
    MissingClaimError,
    SecurityWarning,
)
from joserfc.jwa import EdDSAAlgorithm
from joserfc.jwk import JWKRegistry, KeySet
from joserfc.jws import JWSRegistry, deserialize_compact
from joserfc.jwt import JWTClaimsRegistry

from openfang.app.auth.claims import Bad, Said
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from joserfc.jwk import Key

Fields: TypeAlias = "Mapping[str, Any]"

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
LEEWAY = 30
LONGEST = 16_384
_LONGEST_HEADER = 1_366
_KEY_TYPES = ("RSA", "EC", "OKP")
_MOST_KEYS = 100
_TYPES = frozenset({"at+jwt", "application/at+jwt", "jwt"})
_SECOND = 1_000_000_000
_FAR = 1 << 40
_MALFORMED = "it is malformed"
_WRONG = {
    "iss": "it is another issuer's",
    "aud": "it is for another audience",
    "exp": "it has expired",
    "nbf": "it is not valid yet",
    "iat": "it was issued in the future",
    "sub": "it names nobody",
}


class _Edwards(EdDSAAlgorithm):
    """The older name of Ed25519, which issuers still use: no reason to warn anybody here."""

    security_warning = None


class _Asymmetric(JWSRegistry):
    """Knows signatures alone: a secret that both sides share, or none, is no algorithm here."""

    algorithms = {  # noqa: RUF012 - the library's own attribute
        **{name: JWSRegistry.algorithms[name] for name in ALGORITHMS},
        "EdDSA": _Edwards(),
    }
    max_header_length = _LONGEST_HEADER
    max_payload_length = LONGEST


_REGISTRY = _Asymmetric(algorithms=ALGORITHMS, strict_check_header=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Where a token says what: its scopes, its holder, and what every token must say beside."""

    scopes: tuple[str, ...] = ("scope", "scp")
    name: str = "sub"
    claims: Fields = field(default_factory=dict[str, Any])


_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Reads the tokens of one issuer for us, with the keys that it publishes."""

    issuer: str
    audiences: tuple[str, ...]
    keys: KeySet
    terms: Terms = _TERMS
    _names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = frozenset(key.kid for key in self.keys if key.kid)
        object.__setattr__(self, "_names", names)

    def lacks_key(self, token: str) -> bool:
        """Whether the token names a key that is not among these."""
        header = _header(token)
        return isinstance(header, dict) and header.get("kid", "") not in {"", *self._names}

    def read(self, token: str, now_ns: int) -> Said | Bad:
        """Check the signature, then what is signed."""
        header = _header(token)
        if isinstance(header, Bad):
            return header
        try:
            signed = deserialize_compact(token, self.keys, registry=_REGISTRY)
            claims = orjson.loads(signed.payload or b"")
        except InvalidKeyIdError:
            return Bad("it names no key that the issuer has")
        except (BadSignatureError, KeyParameterError, InvalidKeyCurveError):
            return Bad("its signature is not the issuer's")
        except (JoseError, ValueError):
            return Bad(_MALFORMED)
        return self._judge(claims, now_ns)

    def _judge(self, claims: object, now_ns: int) -> Said | Bad:
        if not isinstance(claims, dict):
            return Bad(_MALFORMED)
        said = cast("dict[str, Any]", claims)
        wanted = JWTClaimsRegistry(
            now=now_ns // _SECOND,
            leeway=LEEWAY,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "values": list(self.audiences)},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            wanted.validate(said)
        except MissingClaimError as error:
            return Bad(f"it does not say {error.claim}")
        except ClaimError as error:
            return Bad(_WRONG.get(error.claim, _MALFORMED))
        if "cnf" in said:
            return Bad("it is bound to a key of its holder, which is not asked for here")
        return self._said(said)

    def _said(self, said: Fields) -> Said | Bad:
        """Read what the operator's terms look for."""
        for name, value in self.terms.claims.items():
            if _at(said, name) != value:
                return Bad(f"its {name} is another")
        subject = _at(said, self.terms.name)
        if not isinstance(subject, str) or not subject:
            return Bad(f"it does not say {self.terms.name}")
        return Said(
            subject=subject,
            scopes=frozenset(_scopes(said, self.terms.scopes)),
            expires_at=(min(int(said["exp"]), _FAR) + LEEWAY) * _SECOND,
        )


def _header(token: str) -> dict[str, Any] | Bad:
    """Read what a token says of itself, before anything of it is believed."""
    if len(token) > LONGEST:
        return Bad(f"it has more than {LONGEST} characters")
    text = token.partition(".")[0]
    if len(text) > _LONGEST_HEADER:
        return Bad("its header is too long")
    try:
        header = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return Bad(_MALFORMED)
    return _plain(cast("dict[str, Any]", header)) if isinstance(header, dict) else Bad(_MALFORMED)


def _plain(header: dict[str, Any]) -> dict[str, Any] | Bad:
    algorithm, kind, name = header.get("alg"), header.get("typ", "JWT"), header.get("kid", "")
    if algorithm not in ALGORITHMS:
        return Bad(f"its algorithm is not one of {', '.join(ALGORITHMS)}")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        return Bad("it is a token of another type")
    if not isinstance(name, str):
        return Bad(_MALFORMED)
    if "crit" in header or "b64" in header:
        return Bad("it needs an extension that is not known here")
    return header


def _at(claims: Fields, path: str) -> object:
    """Find a claim by its name, or a member of one by both."""
    if path in claims:
        return claims[path]
    outer, _, inner = path.partition(".")
    value = claims.get(outer)
    return cast("Fields", value).get(inner) if inner and isinstance(value, dict) else None


def _scopes(claims: Fields, names: tuple[str, ...]) -> Iterator[str]:
    """Read the scopes by any of their names, as one text or as a list."""
    for value in (_at(claims, name) for name in names):
        if isinstance(value, str):
            yield from value.split()
        if isinstance(value, list):
            yield from (word for word in cast("list[object]", value) if isinstance(word, str))


def read_keys(document: object) -> KeySet | None:
    """Take the keys that sign out of a JWK Set, if it has any; what is too weak is left out."""
    listed = cast("Fields", document).get("keys") if isinstance(document, dict) else None
    entries = cast("list[object]", listed)[:_MOST_KEYS] if isinstance(listed, list) else ()
    found = [key for key in map(_key, entries) if key is not None]
    return KeySet(found) if found else None


def _key(entry: object) -> Key | None:
    key = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    if key.get("kty") not in _KEY_TYPES or key.get("use", "sig") != "sig":
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", SecurityWarning)
        try:
            return JWKRegistry.import_key(key)
        except (JoseError, ValueError, TypeError, KeyError, SecurityWarning):
            return None
