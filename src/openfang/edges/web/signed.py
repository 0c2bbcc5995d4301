"""Who is signed in with a browser: a random name in a cookie, and here what it stands for.

It is kept in memory, and ends with the process. The name itself is not here, only an HMAC of it;
and the key that it stands for is masked by the name: neither can be read without the browser.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import shake_256
from secrets import token_bytes, token_urlsafe
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST: Final = 1_000
_SECOND: Final = 1_000_000_000
_IDLE: Final = 12 * 3600 * _SECOND
_LONGEST: Final = 7 * 24 * 3600 * _SECOND
_LONGEST_NAME: Final = 100


@dataclass(slots=True)
class _Open:
    masked: bytes
    used: int
    ends: int


class SignedIn:
    """The browsers that are signed in; of too many the oldest is forgotten."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._pepper = token_bytes(32)
        self._open: OrderedDict[bytes, _Open] = OrderedDict()

    def begin(self, secret: str) -> str:
        """Let a browser in with this key, and name it."""
        name, now = token_urlsafe(32), self._now()
        self._open[self._mark(name)] = _Open(_masked(secret.encode(), name), now, now + _LONGEST)
        if len(self._open) > _MOST:
            self._open.popitem(last=False)
        return name

    def secret(self, name: str) -> str | None:
        """Return the key that a browser signed in with, while that holds."""
        found = self._open.get(mark := self._mark(name))
        if found is None:
            return None
        now = self._now()
        if now >= min(found.ends, found.used + _IDLE):
            del self._open[mark]
            return None
        found.used = now
        return _masked(found.masked, name).decode()

    def end(self, name: str) -> None:
        """Let a browser in no longer."""
        self._open.pop(self._mark(name), None)

    def token(self, name: str) -> str:
        """Give what every form of this browser must bring back."""
        return hmac.digest(self._pepper, f"form {name}".encode(), "sha256").hex()

    def _mark(self, name: str) -> bytes:
        return hmac.digest(self._pepper, f"name {name[:_LONGEST_NAME]}".encode(), "sha256")


def _masked(text: bytes, name: str) -> bytes:
    """Mask a text by a name, or take the mask off."""
    mask = shake_256(f"mask {name}".encode()).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))
