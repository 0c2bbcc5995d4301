"""Whether a budget is used up, and when there is room in it again. Pure, but for the look."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from openfang.core.budgets import Reached, Window
from openfang.core.usage import DAY_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.core.agents import Usage
    from openfang.core.budgets import Account, Allowance
    from openfang.core.usage import Spending

_MINUTE_NS: Final = 60_000_000_000
_MINUTES: Final = 60
_SECOND: Final = 1_000_000_000
_CENT_OF_A_MILLIONTH: Final = 1e-9
"""Sums of prices are off by less than this."""


class Look(Protocol):
    """What was spent, as the ledger has it."""

    async def minutes(self, account: Account, first: int) -> Sequence[tuple[int, int, float]]:
        """Tokens and money by the minute from the first on, oldest first."""
        ...

    async def days(self, account: Account, first: int, last: int) -> Spending:
        """Everything on these days together."""
        ...


async def reached(
    allowances: Iterable[Allowance], look: Look, of_run: Usage, now: int
) -> Reached | None:
    """Find the first bound that is used up."""
    for one in allowances:
        found = await _reached(one, look, of_run, now)
        if found is not None:
            return found
    return None


async def _reached(bound: Allowance, look: Look, of_run: Usage, now: int) -> Reached | None:
    match bound.window:
        case Window.RUN | Window.CHAIN:
            used, resets = _amount(bound, of_run), None
        case Window.HOUR:
            return await _in_an_hour(bound, look, now)
        case Window.DAY:
            today = now // DAY_NS
            used = _amount(bound, await look.days(bound.account, today, today))
            resets = (today + 1) * DAY_NS
        case Window.MONTH:
            first, following = month_of(now)
            used = _amount(bound, await look.days(bound.account, first, following - 1))
            resets = following * DAY_NS
    return Reached(allowance=bound, used=used, resets_at=resets) if _full(bound, used) else None


async def _in_an_hour(bound: Allowance, look: Look, now: int) -> Reached | None:
    """Add the last hour up; there is room once enough of it is older than an hour."""
    current = now // _MINUTE_NS
    rows = await look.minutes(bound.account, current - _MINUTES)
    # What lies further ahead was written by a clock that was wrong.
    known = (row for row in rows if row[0] <= current + _MINUTES)
    spent = [(minute, tokens if bound.tokens else cost) for minute, tokens, cost in known]
    used = left = sum(amount for _, amount in spent)
    resets = now
    for minute, amount in spent:
        if not _full(bound, left):
            break
        left -= amount
        resets = (minute + _MINUTES + 1) * _MINUTE_NS
    return Reached(allowance=bound, used=used, resets_at=resets) if _full(bound, used) else None


def _amount(bound: Allowance, spent: Usage | Spending) -> float:
    return spent.tokens if bound.tokens else spent.cost_usd


def _full(bound: Allowance, used: float) -> bool:
    return used >= (bound.tokens or bound.cost_usd) - _CENT_OF_A_MILLIONTH


def month_of(now: int) -> tuple[int, int]:
    """The first day of this month and of the next, counted from the epoch, in UTC."""
    first = datetime.fromtimestamp(now / _SECOND, UTC).date().replace(day=1)
    years, month = divmod(first.month, 12)
    following = first.replace(year=first.year + years, month=month + 1)
    return _day(first.toordinal()), _day(following.toordinal())


def _day(ordinal: int) -> int:
    return ordinal - _EPOCH


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).toordinal()
