"""The header by which one node of a cluster knows another: `OpenFang-Member`.

It holds for one request, once, at one process of one node, within a minute of its own clock. All
nodes have the same master key, and nobody else has it. Whether who signed is alive, others know.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from openfang.core.errors import Unauthenticated
from openfang.core.ids import random_hex
from openfang.guard.nonces import Nonces

if TYPE_CHECKING:
    from openfang.core.ports import Clock

HEADER: Final = b"openfang-member"
PURPOSE: Final = "cluster"
SKEW_MS: Final = 60_000
_MILLISECOND: Final = 1_000_000
_PARTS: Final = 5
_DIGITS: Final = 15
_NONCE: Final = 16
_LONGEST: Final = 400
# Each is kept for a minute or two: a node that made more requests would be refused for a while.
_MOST: Final = 200_000


class Signing:
    """Signs as the node `me`, and believes what was signed for the process `here`, once."""

    __slots__ = ("_clock", "_key", "_me", "_nonces", "here")

    def __init__(self, key: bytes, *, me: str, here: str, clock: Clock) -> None:
        self._key = key
        self._me = me
        self.here = here
        self._clock = clock
        self._nonces = Nonces(capacity=_MOST)

    def sign(self, *, to: str, method: str, target: str, body: bytes) -> str:
        """Write the header for one request to the process `to`; `target` is its path and query."""
        made, nonce, digest = str(self._now), random_hex(_NONCE), sha256(body).hexdigest()
        mac = self._mac(self._me, to, made, nonce, digest, method, target)
        return f"{self._me};{made};{nonce};{digest};{mac}"

    def signer(self, header: str, *, method: str, target: str, body: bytes) -> str:
        """Name the node that signed exactly this, for us, just now and never before; or refuse."""
        claim = self.claim(header, method=method, target=target)
        claim.check(body)
        return claim.node

    def claim(self, header: str, *, method: str, target: str) -> Claim:
        """Say who signed a request whose body is not here yet: that has to be checked."""
        node, made, nonce, digest, mac = _parts_of(header)
        ours = self._mac(node, self.here, made, nonce, digest, method, target)
        if not hmac.compare_digest(mac.encode(), ours.encode()):
            raise _refused("it was signed with another key, for another process or another request")
        self._use_once(int(made), nonce)
        return Claim(node, digest)

    @property
    def _now(self) -> int:
        return self._clock.time_ns() // _MILLISECOND

    def _use_once(self, made: int, nonce: str) -> None:
        now = self._now
        if abs(now - made) > SKEW_MS:
            raise _refused(f"it was made {(now - made) / 1000:g} s ago by the clock of this node")
        if not self._nonces.use(nonce, made + SKEW_MS, now):
            raise _refused("it was used before")

    def _mac(self, *words: str) -> str:
        return hmac.digest(self._key, "\n".join(words).encode(), "sha256").hex()


class Claim(NamedTuple):
    """Who signed a request, and the digest of the body that it has to have."""

    node: str
    digest: str

    def check(self, body: bytes) -> None:
        """Refuse any other body."""
        if not hmac.compare_digest(self.digest.encode(), sha256(body).hexdigest().encode()):
            raise _refused("it was signed with another key, for another process or another request")


def _parts_of(header: str) -> tuple[str, str, str, str, str]:
    """Take the header apart: no part of it may hold what two of them are told apart by."""
    parts = header.split(";") if len(header) <= _LONGEST and header.isprintable() else []
    if len(parts) != _PARTS or not header.isascii():
        raise _refused("it cannot be read")
    node, made, nonce, digest, mac = parts
    if not (made.isdigit() and len(made) <= _DIGITS):
        raise _refused("it does not say when it was made")
    return node, made, nonce, digest, mac


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(
        f"The header OpenFang-Member does not hold here: {why}.",
        rule="member_signature",
        way_out="the nodes of a cluster need the same master.key, and clocks at most 60 s apart",
    )
