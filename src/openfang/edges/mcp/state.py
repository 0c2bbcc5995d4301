"""The state of a parked call, as a client carries it about: it can neither be made up nor moved."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST: Final = 1000
# What changes from one attempt of a request to the next.
_PASSING: Final = frozenset({"_meta", "inputResponses", "requestState"})


def digest(caller: str, place: str, method: str, params: Mapping[str, Any]) -> bytes:
    """Bind a request to who made it and where: the same method, with the same arguments."""
    lasting = {name: value for name, value in params.items() if name not in _PASSING}
    text = orjson.dumps([caller, place, method, lasting], option=orjson.OPT_SORT_KEYS)
    return sha256(text).digest()


def seal(secret: bytes, call: str, until: int, subject: bytes) -> str:
    """Write the state."""
    body = f"{call}.{until}"
    return f"{body}.{_mark(secret, body, subject)}"


def unseal(secret: bytes, state: str, subject: bytes) -> tuple[str, int] | None:
    """Read the call and until when it waits; nothing if any of it was changed."""
    body, _, mark = state[:_LONGEST].rpartition(".")
    if not hmac.compare_digest(mark.encode(), _mark(secret, body, subject).encode()):
        return None
    call, _, until = body.partition(".")
    return call, int(until)


def _mark(secret: bytes, body: str, subject: bytes) -> str:
    made = hmac.digest(secret, body.encode() + b"\0" + subject, "sha256")
    return urlsafe_b64encode(made).decode().rstrip("=")
