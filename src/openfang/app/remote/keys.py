"""Keys as a daemon tells them, and what is told to it of new ones."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openfang.core.keys import AdminToken, Key
from openfang.core.wire import key_body, read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


K = TypeVar("K", Key, AdminToken)
_SECOND: Final = 1_000_000_000
_LAST_OF_SECOND: Final = 999_999_000
_GIVEN: Final = frozenset({"id", "state", "created_at", "expires_at", "revoked_at"})


def dated_key(body: Mapping[str, Any]) -> Key | AdminToken:
    """Read a key or a token."""
    key = read_key(body)
    return key if key.expires_at is None else replace(key, expires_at=late(key.expires_at))


def late(moment: int) -> int:
    """Let what ends within a second end with it: never here before it does there."""
    return moment if moment % _SECOND else moment + _LAST_OF_SECOND


def read_made(kind: type[K]) -> Callable[[Any], tuple[K, str]]:
    """Read one that was just made, with its secret."""

    def read(body: Mapping[str, Any]) -> tuple[K, str]:
        key = dated_key(body)
        if not isinstance(key, kind):
            raise TypeError(body["kind"])
        return key, body["secret"]

    return read


def wanted_key(key: Key | AdminToken, ttl: float | None) -> dict[str, Any]:
    """Say what is wanted of a key; what is not said is as a new one has it."""
    fields = {**key_body(key, 0), "ttl_secs": ttl}
    if fields.get("edges") == ["*"]:
        del fields["edges"]
    return {n: value for n, value in fields.items() if value is not None and n not in _GIVEN}


def content_body(content: bytes) -> dict[str, str]:
    """Write what is no text as text."""
    try:
        return {"content": content.decode()}
    except UnicodeDecodeError:
        return {"content_base64": b64encode(content).decode()}
