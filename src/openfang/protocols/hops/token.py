"""The signed form: canonical JSON in base 64, and an Ed25519 signature over exactly that. No I/O.

A token is good for one node, for a minute, once. What is signed is the text itself, so that there
is one way to write each: whatever is changed in it, it is no longer the one that was signed.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TELLS: Final = "ofr1."
"""How the signed word on a result begins; that on a request has `ASKS`."""
LIFE_MS: Final = 60_000
SKEW_MS: Final = 5_000
_LONGEST: Final = 65_536
_SIGNATURE: Final = 64


class BadToken(ValueError):  # noqa: N818 - it reads as what it is
    """It does not hold here. The text says why."""


def sealed(kind: str, claims: Mapping[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """Sign claims."""
    body = kind.encode() + urlsafe_b64encode(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))
    return f"{body.decode()}.{urlsafe_b64encode(sign(body)).decode()}"


def claims_in(kind: str, token: str) -> dict[str, Any]:
    """Read what is claimed, whoever signed it."""
    payload, _, _ = token.removeprefix(kind).partition(".")
    if len(token) > _LONGEST:
        raise BadToken("it is too long")
    try:
        claims: object = orjson.loads(urlsafe_b64decode(payload.encode()))
    except (binascii.Error, ValueError) as error:
        raise BadToken("it cannot be read") from error
    if not isinstance(claims, dict):
        raise BadToken("it holds no object")
    return cast("dict[str, Any]", claims)


def check_signature(kind: str, token: str, key: Ed25519PublicKey) -> None:
    """Raise unless the holder of the key signed exactly this."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - where nodes are

    body, _, written = token.rpartition(".")
    try:
        key.verify(_signature(written), body.encode())
    except (InvalidSignature, ValueError) as error:
        raise BadToken("its signature is wrong") from error
    if not token.startswith(kind):
        raise BadToken("it was signed for something else")


def _signature(written: str) -> bytes:
    """Read it: the last character has bits to spare, and one of its spellings is the right one."""
    signature = urlsafe_b64decode(written.encode())
    if urlsafe_b64encode(signature).decode() != written or len(signature) != _SIGNATURE:
        raise BadToken("it is not written as it is signed")
    return signature


def check_times(claims: Mapping[str, Any], now_ms: int, *, since_ms: int = 0) -> None:
    """Raise unless it was made lately, for no longer than a minute, and not before `since_ms`."""
    made, ends = claims.get("iat"), claims.get("exp")
    if not isinstance(made, int) or not isinstance(ends, int) or not 0 < ends - made <= LIFE_MS:
        raise BadToken("its times make no sense")
    if now_ms > ends + SKEW_MS:
        raise BadToken("it has expired")
    if made > now_ms + SKEW_MS:
        raise BadToken("it comes from the future")
    if made < since_ms:
        raise BadToken("it was made before this node began, which cannot know whether it was used")
