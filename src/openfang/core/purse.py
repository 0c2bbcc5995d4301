"""What a chain from elsewhere may still use here: calls to agents and peers, and money."""

from __future__ import annotations

from typing import TypeVar

from openfang.core.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of what is left, lent to who goes on with the chain elsewhere. None is no bound."""

    calls: int
    usd: float | None = None


class Purse:
    """Counts down. None is no bound of its own; what is taken here is taken `above` as well."""

    __slots__ = ("_above", "_calls", "_usd", "used_calls", "used_usd")

    def __init__(
        self, calls: int | None = None, usd: float | None = None, above: tuple[Purse, ...] = ()
    ) -> None:
        self._calls = calls
        self._usd = usd
        self._above = above
        self.used_calls = 0
        self.used_usd = 0.0

    @property
    def calls(self) -> int | None:
        """How many calls are left."""
        own = None if self._calls is None else max(0, self._calls - self.used_calls)
        return least(own, *(one.calls for one in self._above))

    @property
    def usd(self) -> float | None:
        """How many US dollars are left."""
        own = None if self._usd is None else max(0.0, self._usd - self.used_usd)
        return least(own, *(one.usd for one in self._above))

    @property
    def given_usd(self) -> float | None:
        """How many US dollars there were at first."""
        return least(self._usd, *(one.given_usd for one in self._above))

    def take(self, calls: int = 0, usd: float = 0.0) -> None:
        """Take from it, or give back what is less than nothing."""
        self.used_calls += calls
        self.used_usd += usd
        for one in self._above:
            one.take(calls, usd)


Number = TypeVar("Number", int, float)


def least(*bounds: Number | None) -> Number | None:
    """Give the tightest of some bounds, of which None is none."""
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known else None
