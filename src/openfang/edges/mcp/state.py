"""The state of a parked call, as a client carries it about: it can neither be made up nor moved."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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


class State(NamedTuple):
    """Which call waits, until when, and on which node."""

    call: str
    until: int
    node: str


def seal(secret: bytes, state: State, subject: bytes) -> str:
    """Write the state."""
    body = f"{state.call}.{state.until}.{state.node}"
    return f"{body}.{_mark(secret, body, subject)}"


def unseal(secret: bytes, text: str, subject: bytes) -> State | None:
    """Read the state; nothing if any of it was changed."""
    body, _, mark = text[:_LONGEST].rpartition(".")
    if not hmac.compare_digest(mark.encode(), _mark(secret, body, subject).encode()):
        return None
    call, until, node = body.split(".", 2)
    return State(call, int(until), node)


def _mark(secret: bytes, body: str, subject: bytes) -> str:
    made = hmac.digest(secret, body.encode() + b"\0" + subject, "sha256")
    return urlsafe_b64encode(made).decode().rstrip("=")
