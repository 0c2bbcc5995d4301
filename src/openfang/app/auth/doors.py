"""Who knocks too often: the rate of each address, and of its failures to sign in.

What many fail at from one address must not lock out who has a right key there: behind a proxy, or
on one machine, everybody has the same address.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from openfang.core.errors import GuardTripped
from openfang.guard.rate import Granted, Limited, Limiter, Quota
from openfang.pipeline.guards import granted

if TYPE_CHECKING:
    from openfang.app.auth.issuer import TrustedIssuer
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

    def __contains__(self, secret: str) -> bool:
        if self.issuer.reads(secret):
            return self.issuer.find(secret) is not None
        now = self.clock.monotonic()
        if now >= self._until:
            self._digests, self._until = self.store.digests(), now + _FRESH_SECONDS
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
    _welcome: OrderedDict[bytes, None] = field(default_factory=OrderedDict[bytes, None])

    def charge(self, address: str, cells: int) -> Granted:
        """Take cells from the rate of an address, or refuse."""
        now = self.clock.monotonic()
        return granted(self.addresses.charge(address, cells, self.quota, now), address)

    def allowance(self, address: str) -> Granted:
        """Say what is left of it."""
        now = self.clock.monotonic()
        return granted(self.addresses.look(address, 0, self.quota, now), address)

    def check(self, address: str, secret: str) -> None:
        """Refuse an address that failed too often; a right key, or one used there, is let through.

        The key of the configuration may be one that can be guessed: only its use before counts.
        """
        now = self.clock.monotonic()
        charge = self.failures.look(address, 1, self.failing, now)
        if not isinstance(charge, Limited) or self._lets_through(address, secret, now):
            return
        if isinstance(self._told.charge(address, 1, _TOLD, now), Granted):
            _log.warning("Policy violation: too many keys from %s were not known", address)
        raise GuardTripped(
            f"Too many keys from {address} were not known.",
            rule="sign_in_limit",
            way_out="wait; then use a key that is in force",
            retry_after=charge.retry_after,
        )

    def _lets_through(self, address: str, secret: str, now: float) -> bool:
        mark = _mark(address, secret)
        if mark in self._welcome:
            return True
        own = self._of_right_keys.look(mark.hex(), 1, _OF_A_RIGHT_KEY, now)
        return isinstance(own, Granted) and secret in self.right

    def tell(self, address: str, secret: str, *, known: bool) -> None:
        """Remember how it went."""
        mark, now = _mark(address, secret), self.clock.monotonic()
        if not known:
            self._welcome.pop(mark, None)
            self.failures.charge(address, 1, self.failing, now)
            if secret in self.right:  # but not for this edge
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
