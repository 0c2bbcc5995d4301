"""Who knocks too often: the rate of each address, and of its failures to sign in.

What many fail at from one address must not lock out who has a right key there: behind a proxy, or
on one machine, everybody has the same address.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, OrderedDict
from dataclasses import field
from hashlib import blake2b
from typing import TYPE_CHECKING

from openfang.app.auth.shared import Shared
from openfang.core.errors import GuardTripped, OpenFangError
from openfang.core.values import dataclass
from openfang.guard.rate import Granted, Limited, Limiter, Quota
from openfang.pipeline.guards import granted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.app.auth.issuer import TrustedIssuer
    from openfang.core.calls import Caller
    from openfang.core.ports import Clock
    from openfang.storage.keys import KeyStore

_log = logging.getLogger("openfang.doors")
_FAILURES = Quota(cells_per_minute=10, burst=20)
_OF_A_RIGHT_KEY = Quota(cells_per_minute=10, burst=1)
_TOLD = Quota(cells_per_minute=1, burst=1)
_REMEMBERED = 10_000
_FRESH_SECONDS = 1.0


@dataclass(slots=True)
class RightKeys:
    """The digests of the keys in force, so that a right key is told from a guess without a look-up.

    They are read anew when they are a second old, however many knock. A good token is as right.
    """

    store: KeyStore
    clock: Clock
    issuer: TrustedIssuer
    _digests: frozenset[bytes] = frozenset()
    _until: float = float("-inf")
    _looks: Shared[frozenset[bytes]] = field(default_factory=Shared[frozenset[bytes]])

    async def hold(self, secret: str) -> bool:
        """Whether this is one of them."""
        if self.issuer.reads(secret):
            return self.issuer.find(secret) is not None
        now = self.clock.monotonic()
        if now >= self._until:
            self._digests = await self._looks.look("digests", self.store.digests)
            self._until = now + _FRESH_SECONDS
        return self.store.digest(secret) in self._digests


@dataclass(slots=True, kw_only=True)
class Doors:
    """The state of every address."""

    clock: Clock
    quota: Quota
    right: RightKeys
    failing: Quota = _FAILURES
    addresses: Limiter = field(default_factory=Limiter)
    failures: Limiter = field(default_factory=Limiter)
    _of_right_keys: Limiter = field(default_factory=Limiter)
    _told: Limiter = field(default_factory=Limiter)
    _trying: Counter[str] = field(default_factory=Counter[str])
    _welcome: OrderedDict[bytes, None] = field(default_factory=OrderedDict[bytes, None])

    def charge(self, address: str, cells: int) -> Granted:
        """Take cells from the rate of an address, or refuse."""
        now = self.clock.monotonic()
        return granted(self.addresses.charge(address, cells, self.quota, now), address)

    def allowance(self, address: str) -> Granted:
        """Say what is left of it."""
        now = self.clock.monotonic()
        return granted(self.addresses.look(address, 0, self.quota, now), address)

    async def sign_in(
        self, address: str, secret: str, find: Callable[[], Awaitable[Caller | None]]
    ) -> Caller | None:
        """Find who that is, and remember how it went.

        As long as nobody knows, it counts as a failure, so that guesses side by side get no further
        than one after the other; so does the guess of one who does not wait for the answer.
        """
        self._trying[address] += 1
        found: Caller | None = None
        failed = True
        try:
            await self._check(address, secret)
            found = await find()
            failed = found is None
        except OpenFangError:
            failed = False  # it was refused already, or nobody could tell
            raise
        finally:
            self._trying[address] -= 1
            if not self._trying[address]:
                del self._trying[address]
            if failed:
                self.failures.charge(address, 1, self.failing, self.clock.monotonic())
        await self._tell(address, secret, known=found is not None)
        return found

    async def _check(self, address: str, secret: str) -> None:
        """Refuse an address that failed too often; a right key, or one used there, is let through.

        The key of the configuration may be one that can be guessed: only its use before counts.
        """
        now = self.clock.monotonic()
        charge = self.failures.look(address, self._trying[address], self.failing, now)
        if not isinstance(charge, Limited) or await self._lets_through(address, secret, now):
            return
        if isinstance(self._told.charge(address, 1, _TOLD, now), Granted):
            _log.warning("Policy violation: too many keys from %s were not known", address)
        raise GuardTripped(
            f"Too many keys from {address} were not known.",
            rule="sign_in_limit",
            way_out="wait; then use a key that is in force",
            retry_after=charge.retry_after or self.failing.interval,
        )

    async def _lets_through(self, address: str, secret: str, now: float) -> bool:
        mark = _mark(address, secret)
        if mark in self._welcome:
            return True
        own = self._of_right_keys.look(mark.hex(), 1, _OF_A_RIGHT_KEY, now)
        return isinstance(own, Granted) and await self.right.hold(secret)

    async def _tell(self, address: str, secret: str, *, known: bool) -> None:
        mark = _mark(address, secret)
        if not known:
            self._welcome.pop(mark, None)
            if await self.right.hold(secret):  # but not for this edge
                now = self.clock.monotonic()
                self._of_right_keys.charge(mark.hex(), 1, _OF_A_RIGHT_KEY, now)
        elif mark not in self._welcome:
            self._welcome[mark] = None
            if len(self._welcome) > _REMEMBERED:
                self._welcome.popitem(last=False)


def _mark(address: str, secret: str) -> bytes:
    """Remember a key by what nobody can turn back into it."""
    text = f"{address}\0{secret}".encode(errors="surrogatepass")
    return blake2b(text, digest_size=16, key=_PEPPER).digest()


_PEPPER = os.urandom(32)
