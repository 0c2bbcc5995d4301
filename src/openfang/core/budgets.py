"""Budgets: what may be spent by whom in which time, and what is said when it is used up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from openfang.core.agents import Ending
from openfang.core.values import dataclass, value

_SECOND: Final = 1_000_000_000


class Window(Enum):
    """For how long something counts. An hour slides; days and months are the calendar's, in UTC."""

    RUN = "run"
    CHAIN = "chain"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class Whose(Enum):
    """Whose spending counts: an agent's with all that it started, a caller's, everybody's."""

    PURSE = "purse"
    CALLER = "caller"
    NODE = "node"


@value
class Account:
    """Whose spending counts, by name."""

    whose: Whose
    name: str = ""


@value
class Allowance:
    """One bound: `tokens` or `cost_usd`. `said` names its owner, `setting` what raises it."""

    account: Account
    window: Window
    said: str
    setting: str
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def amount(self) -> str:
        """The bound in words."""
        much = f"{self.tokens} tokens" if self.tokens else dollars(self.cost_usd)
        return f"{much} {'an' if self.window is Window.HOUR else 'a'} {self.window.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A bound that is used up: how much was used, and when there is room again, if ever."""

    allowance: Allowance
    used: float
    resets_at: int | None = None

    @property
    def ending(self) -> Ending:
        """How a run ends by it."""
        return Ending.TOKENS if self.allowance.tokens else Ending.COST

    def as_json(self) -> dict[str, Any]:
        """The bound for programs."""
        bound, resets = self.allowance, self.resets_at
        return {
            "of": bound.said,
            "setting": bound.setting,
            "window": bound.window.value,
            "unit": "tokens" if bound.tokens else "usd",
            "limit": bound.tokens or bound.cost_usd,
            "used": self.used,
            "resets_at": None if resets is None else _iso(resets),
        }

    def sentence(self, now: int) -> str:
        """Say it to who waits for an answer."""
        bound = self.allowance
        used = f"{self.used:.0f}" if bound.tokens else dollars(self.used)
        words = f"the budget of {bound.said} is used up: {used} of {bound.amount}"
        if self.resets_at is None:
            return f"{words}. It is raised by {bound.setting}."
        return f"{words}. It resets at {clock_time(self.resets_at, now)}."


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / _SECOND, UTC).isoformat(timespec="seconds")


def dollars(amount: float) -> str:
    """An amount of money: to the cent, and what is less than that as small as it is."""
    return f"${amount:.2f}" if amount == round(amount, 2) else f"${amount:.6f}".rstrip("0")


def clock_time(at: int, now: int) -> str:
    """A time of today, or of another day, in UTC; never earlier than it is."""
    moment = datetime.fromtimestamp(-(-at // _SECOND), UTC)
    moment += timedelta(seconds=-moment.second % 60)
    today = datetime.fromtimestamp(now / _SECOND, UTC).date()
    words = f"{moment:%H:%M} UTC"
    return words if moment.date() == today else f"{words} on {moment:%Y-%m-%d}"
