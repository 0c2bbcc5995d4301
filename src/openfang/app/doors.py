"""Who knocks too often: the rate of each address, and of its failures to sign in."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from openfang.core.errors import GuardTripped
from openfang.guard.rate import Granted, Limited, Limiter, Quota
from openfang.pipeline.guards import granted

if TYPE_CHECKING:
    from openfang.core.ports import Clock

_FAILURES = Quota(cells_per_minute=10, burst=20)
_REMEMBERED = 10_000


@dataclass(slots=True, kw_only=True)
class Doors:
    """The state of every address."""

    clock: Clock
    quota: Quota
    failing: Quota = _FAILURES
    addresses: Limiter = field(default_factory=Limiter)
    failures: Limiter = field(default_factory=Limiter)
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
        """Refuse an address that failed too often; a key that it used before is let through.

        So a stranger at the same address cannot lock out who has the right key.
        """
        now = self.clock.monotonic()
        charge = self.failures.look(address, 1, self.failing, now)
        if isinstance(charge, Limited) and _mark(address, secret) not in self._welcome:
            raise GuardTripped(
                f"Too many keys from {address} were not known.",
                rule="sign_in_limit",
                way_out="wait; then use a key that is in force",
                retry_after=charge.retry_after,
            )

    def tell(self, address: str, secret: str, *, known: bool) -> None:
        """Remember how it went."""
        if not known:
            self._welcome.pop(_mark(address, secret), None)
            self.failures.charge(address, 1, self.failing, self.clock.monotonic())
            return
        mark = _mark(address, secret)
        if mark not in self._welcome:
            self._welcome[mark] = None
            if len(self._welcome) > _REMEMBERED:
                self._welcome.popitem(last=False)


def _mark(address: str, secret: str) -> bytes:
    """Remember a key by what nobody can turn back into it."""
    text = f"{address}\0{secret}".encode(errors="surrogatepass")
    return blake2b(text, digest_size=16, key=_PEPPER).digest()


_PEPPER = os.urandom(32)
