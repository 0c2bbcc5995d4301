"""Which signed chains were used already. Bounded: where there is no room, none is believed."""

from __future__ import annotations

from collections import OrderedDict


class Nonces:
    """Remembers each until it has expired, in the order in which they were used."""

    __slots__ = ("_capacity", "_seen")

    def __init__(self, *, capacity: int = 100_000) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def use(self, nonce: str, ends: int, now: int) -> bool:
        """Take one that is good until `ends`; false if it was used, or if there is no room."""
        seen = self._seen
        while seen and next(iter(seen.values())) < now:
            seen.popitem(last=False)
        if nonce in seen or len(seen) >= self._capacity:
            return False
        seen[nonce] = ends
        return True
