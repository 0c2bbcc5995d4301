"""Who is signed in with a browser: a random name in a cookie, and here what it stands for.

It is kept in memory, and ends with the process; among several nodes all of them know it. The name
itself is not here, only an HMAC of it; and the key that it stands for is masked by the name:
neither can be read without the browser.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import replace
from hashlib import shake_256
from secrets import token_bytes, token_urlsafe
from typing import TYPE_CHECKING, Final, Protocol

from openfang.core.values import dataclass
from openfang.edges.web.cookies import session_cookie

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.edges.api.exchange import Headers

MOST: Final = 1_000
_SECOND: Final = 1_000_000_000
IDLE: Final = 12 * 3600 * _SECOND
_NOTED: Final = 600 * _SECOND
_LONGEST: Final = 7 * 24 * 3600 * _SECOND
_LONGEST_NAME: Final = 100


@dataclass(slots=True)
class Open:
    """A key that a browser signed in with, when that was used last, and until when it holds."""

    masked: bytes
    used: int
    ends: int


class Browsers(Protocol):
    """What all nodes know of the browsers that are signed in, each by its mark."""

    @property
    def pepper(self) -> bytes:
        """What marks are made with."""
        ...

    async def find(self, mark: bytes) -> Open | None:
        """Find one."""
        ...

    async def keep(self, mark: bytes, signed: Open) -> None:
        """Keep one as it is now."""
        ...

    async def drop(self, mark: bytes) -> None:
        """Forget one."""
        ...


class SignedIn:
    """The browsers that are signed in; of too many the oldest is forgotten."""

    def __init__(self, now: Callable[[], int], shared: Browsers | None = None) -> None:
        self._now = now
        self._shared = shared
        self._pepper = token_bytes(32) if shared is None else shared.pepper
        self._cookie = "" if shared is None else f"openfang_{self._mark('')[:4].hex()}"
        self._open: OrderedDict[bytes, Open] = OrderedDict()

    def cookie(self, headers: Headers) -> str:
        """Name the cookie: one for all nodes that know the same browsers."""
        return self._cookie or session_cookie(headers)

    async def begin(self, secret: str) -> str:
        """Let a browser in with this key, and name it."""
        name, now = token_urlsafe(32), self._now()
        mark, signed = self._mark(name), Open(_masked(secret.encode(), name), now, now + _LONGEST)
        if self._shared is not None:
            await self._shared.keep(mark, signed)
        self._know(mark, signed)
        return name

    def _know(self, mark: bytes, signed: Open) -> None:
        self._open[mark] = signed
        if len(self._open) > MOST:
            self._open.popitem(last=False)

    async def recall(self, name: str) -> None:
        """Learn of another node how it is with a browser."""
        if self._shared is None:
            return
        mark, now = self._mark(name), self._now()
        signed = await self._shared.find(mark)
        if signed is None:
            self._open.pop(mark, None)
            return
        if now - signed.used > _NOTED and now < _end(signed):
            await self._shared.keep(mark, replace(signed, used=now))
        self._know(mark, signed)

    def secret(self, name: str) -> str | None:
        """Return the key that a browser signed in with, while that holds."""
        found = self._open.get(mark := self._mark(name))
        if found is None:
            return None
        now = self._now()
        if now >= _end(found):
            del self._open[mark]
            return None
        found.used = now
        return _masked(found.masked, name).decode()

    async def end(self, name: str) -> None:
        """Let a browser in no longer."""
        self._open.pop(self._mark(name), None)
        if self._shared is not None:
            await self._shared.drop(self._mark(name))

    def token(self, name: str) -> str:
        """Give what every form of this browser must bring back."""
        return hmac.digest(self._pepper, f"form {name}".encode(), "sha256").hex()

    def _mark(self, name: str) -> bytes:
        return hmac.digest(self._pepper, f"name {name[:_LONGEST_NAME]}".encode(), "sha256")


def _end(signed: Open) -> int:
    return min(signed.ends, signed.used + IDLE)


def _masked(text: bytes, name: str) -> bytes:
    """Mask a text by a name, or take the mask off."""
    mask = shake_256(f"mask {name}".encode()).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))
