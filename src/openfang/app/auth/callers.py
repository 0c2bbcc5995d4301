"""Who called a moment ago: so that a busy caller's key is looked up once a second, not each time.

What ends a key in this process is forgotten at once; another process is seen a second later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.calls import Caller
    from openfang.core.ports import Clock

_SECONDS = 1.0
_MOST = 1_000


class Credential(Protocol):
    """What somebody is known by: a key, or a token of the issuer."""

    @property
    def expires_at(self) -> int | None:
        """When it ends, in nanoseconds since the epoch, if it does."""
        ...

    def opens(self, edge: str) -> bool:
        """Whether it is good for this edge."""
        ...

    def caller(self) -> Caller:
        """Who calls with it."""
        ...


@dataclass(frozen=True, slots=True)
class _Seen:
    key: Credential
    caller: Caller
    until: float


@dataclass(slots=True)
class Callers:
    """Keys by their secrets, for a moment."""

    look_up: Callable[[str], Credential | None]
    clock: Clock
    _seen: dict[str, _Seen] = field(default_factory=dict[str, _Seen])

    def recent(self, secret: str, edge: str) -> Caller | None:
        """Return who used this key a moment ago, if it is still in force."""
        seen = self._seen.get(secret)
        if seen is None or self.clock.monotonic() >= seen.until or not seen.key.opens(edge):
            return None
        expires_at = seen.key.expires_at
        expired = expires_at is not None and expires_at <= self.clock.time_ns()
        return None if expired else seen.caller

    def find(self, secret: str, edge: str) -> Caller | None:
        """Look the key up; one that is bound to other edges is none here."""
        key = self.look_up(secret)
        if key is None or not key.opens(edge):
            return None
        if len(self._seen) >= _MOST:
            self._seen.clear()
        seen = self._seen[secret] = _Seen(key, key.caller(), self.clock.monotonic() + _SECONDS)
        return seen.caller

    def forget(self) -> None:
        """Look everybody up anew: a key was ended, or the configuration changed."""
        self._seen.clear()
