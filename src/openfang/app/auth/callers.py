"""Who called a moment ago, and who has something open: by what is remembered of their keys.

A busy caller's key is looked up once a second, not each time; the keys of those who have a stream
or a session open are seen to once a second, all by one query. What ends a key in this process is
known at once; of what another one ends we hear, or see it a second later.
"""

from __future__ import annotations

import logging
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

import anyio

from openfang.app.auth.shared import LOOK_SECONDS, Shared
from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.storage.units import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.app.auth.credentials import Credentials
    from openfang.core.calls import Caller
    from openfang.core.keys import Key
    from openfang.core.ports import Clock
    from openfang.storage.ports import Storage

_log = logging.getLogger("openfang.callers")
_SECONDS: Final = 1.0
_MOST: Final = 1_000
_NEVER: Final = float("-inf")
_KEPT_SECONDS: Final = 10.0
UNSEEN_SECONDS: Final = 15.0
"""So long what is open stays open while nobody can tell whether its key is in force."""


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


@dataclass(slots=True, eq=False, weakref_slot=True, kw_only=True)
class _Known:
    """What a secret was found to be. Whoever has something open with it holds this.

    `key` is what is stored, and `seen` when that was last known to be in force; what is not stored
    is judged anew each time. Until `until` nobody looks it up again.
    """

    key: Key | None
    digest: bytes
    credential: Credential
    caller: Caller
    until: float
    seen: float
    ended: bool = False


@dataclass(slots=True)
class Callers:
    """Keys by their secrets, for a moment, or as long as something is open with them."""

    credentials: Credentials
    clock: Clock
    _recent: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _known: WeakValueDictionary[str, _Known] = field(
        default_factory=WeakValueDictionary[str, _Known]
    )
    _looks: Shared[_Known | None] = field(default_factory=Shared[_Known | None])
    _changes: int = 0
    _told: anyio.Event = field(default_factory=anyio.Event)
    _blind: bool = False

    def recent(self, secret: str, edge: str) -> Caller | None:
        """Return who used this key a moment ago, if it is still in force."""
        known = self._recent.get(secret)
        if known is None or self.clock.monotonic() >= known.until:
            return None
        return known.caller if self._opens(known.credential, edge) else None

    async def find(self, secret: str, edge: str) -> Caller | None:
        """Look the key up; one that is bound to other edges is none here."""
        known = await self._looks.look(secret, partial(self._look_up, secret))
        return known.caller if known is not None and known.credential.opens(edge) else None

    def still(self, caller: Caller, secret: str, edge: str) -> Callable[[], bool]:
        """Give what says whether one who was let in would be so again; it awaits nothing."""
        known = self._recent.get(secret) or self._known.get(secret)
        return partial(self._is_still, known, caller, secret, edge)

    def end(self, key: str) -> None:
        """Hear that a key was ended here, by its id."""
        for known in list(self._known.values()):
            known.ended = known.ended or (known.key is not None and known.key.id == key)
        self.forget()

    def forget(self) -> None:
        """Look everybody up anew: a key was ended, or the configuration changed."""
        self._changes += 1
        for known in self._recent.values():
            known.until = _NEVER
        self._told.set()

    async def run(self, storage: Storage) -> None:
        """See to the keys in use once a second, and whenever another node tells of a change."""
        storage.on(KEYS.topic, lambda _: self.forget())
        while True:
            with anyio.move_on_after(_SECONDS):
                await self._told.wait()
            self._told = anyio.Event()
            await self._see_to_them()

    async def _look_up(self, secret: str) -> _Known | None:
        """Look until nothing changes meanwhile: what was ended must not come back."""
        while True:
            changes, began, key = self._changes, self.clock.monotonic(), None
            if self.credentials.at_hand(secret):
                found = self.credentials.known(secret)
            else:
                key = await self.credentials.keys.find_key(secret)
                found = key and self.credentials.bound(key)
            if changes == self._changes:
                return None if found is None else self._remembered(secret, key, found, began)

    def _remembered(
        self, secret: str, key: Key | None, credential: Credential, began: float
    ) -> _Known:
        known = self._known.get(secret)
        if known is None or known.ended:
            digest = self.credentials.keys.digest(secret)
            known = self._known[secret] = _Known(
                key=key,
                digest=digest,
                credential=credential,
                caller=credential.caller(),
                until=_NEVER,
                seen=began,
            )
        known.key, known.credential, known.caller = key, credential, credential.caller()
        known.until, known.seen = began + _SECONDS, began
        self._recent.pop(secret, None)
        if len(self._recent) >= _MOST:
            del self._recent[next(iter(self._recent))]
        self._recent[secret] = known
        return known

    def _is_still(self, known: _Known | None, caller: Caller, secret: str, edge: str) -> bool:
        if known is None or known.key is None:
            found = self.credentials.known(secret) if self.credentials.at_hand(secret) else None
            return found is not None and self._opens(found, edge) and found.caller() == caller
        if known.ended or self.clock.monotonic() - known.seen > UNSEEN_SECONDS:
            return False
        return self._opens(known.key, edge) and known.caller == caller

    def _opens(self, credential: Credential, edge: str) -> bool:
        if not credential.opens(edge):
            return False
        expires_at = credential.expires_at
        return expires_at is None or expires_at > self.clock.time_ns()

    async def _see_to_them(self) -> None:
        """Find out which of the keys in use were ended, by one query for all of them."""
        began = self.clock.monotonic()
        old = [one for one, known in self._recent.items() if known.until + _KEPT_SECONDS < began]
        for secret in old:
            del self._recent[secret]
        # Whoever was looked up after the query began may have a key that it does not show.
        stored = [one for one in self._known.values() if one.key and not one.ended]
        if not stored or (in_force := await self._in_force(stored)) is None:
            return
        for known in stored:
            if known.digest in in_force:
                known.seen = max(known.seen, began)
            elif known.seen <= began:
                known.ended, known.until = True, _NEVER

    async def _in_force(self, stored: Sequence[_Known]) -> frozenset[bytes] | None:
        """Ask which of them are; nothing, if nobody can tell now."""
        try:
            with anyio.fail_after(LOOK_SECONDS):
                found = await self.credentials.keys.in_force([one.digest for one in stored])
        except (OpenFangError, TimeoutError) as error:
            if not self._blind:
                why = str(error) or f"the database did not answer within {LOOK_SECONDS:g} s"
                _log.warning("Nobody can tell which keys are in force: %s", why)
            self._blind = True
            return None
        self._blind = False
        return found
