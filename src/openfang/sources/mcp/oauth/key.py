"""A private key that a client proves with who it is (RFC 7523)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import to_thread
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

from openfang.sources.mcp.oauth.sign_in import SignInFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_MARK: Final = "-----BEGIN "
_WAY_OUT: Final = (
    "set private_key of its `oauth` to a key in PEM form without a password, or to its path"
)


async def assertions(client_id: str, key: str) -> Callable[[str], Awaitable[str]]:
    """Make what signs for a client; `key` is its text, or the path of its file."""
    text = key if _MARK in key else await to_thread.run_sync(_read, key)
    return SignedJWTParameters(
        issuer=client_id, subject=client_id, signing_key=text, signing_algorithm=_algorithm(text)
    ).create_assertion_provider()


def _read(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SignInFailed(f"The key {path} cannot be read: {why}.", way_out=_WAY_OUT) from error


def _algorithm(text: str) -> str:
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise SignInFailed("private_key is no key that can be read.", way_out=_WAY_OUT) from error
    match key:
        case rsa.RSAPrivateKey():
            return "RS256"
        case ec.EllipticCurvePrivateKey() if key.curve.name in _CURVES:
            return _CURVES[key.curve.name]
        case ed25519.Ed25519PrivateKey():
            return "EdDSA"
        case _:
            raise SignInFailed("private_key is of a kind that nobody signs with.", way_out=_WAY_OUT)
