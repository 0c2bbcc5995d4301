"""What was used up: by whom it is paid, what a report of it shows, and since when."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from openfang.core.agents import Usage
from openfang.core.errors import Rejected
from openfang.core.values import dataclass, value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY_NS: Final = 86_400_000_000_000
GROUPS: Final = ("agent", "chain", "day", "key")
"""By what a report adds up."""
MOST_ROWS: Final = 1_000
"""So many lines has a report at most."""
DAYS: Final = r"^[0-9]{1,4}d$"
SINCE: Final = r"^([0-9]{1,4}d|[0-9]{4}-[0-9]{2}-[0-9]{2})$"
USUAL_SINCE: Final = "7d"


@value
class Spending:
    """Everything that is counted. `schema_bytes` are of the tools that the model was shown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0
    schema_bytes: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            tool_calls=self.tool_calls + other.tool_calls,
            schema_bytes=self.schema_bytes + other.schema_bytes,
        )

    @property
    def tokens(self) -> int:
        """Both ways together."""
        return self.input_tokens + self.output_tokens

    @property
    def usage(self) -> Usage:
        """What of it a model used."""
        return Usage(
            requests=self.requests,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
        )


NOTHING: Final = Spending()


def of_model(usage: Usage) -> Spending:
    """Count what a model says that it used."""
    return Spending(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
    )


@value
class Payer:
    """On whose account a run goes; `caller` began the chain.

    `purse` is the agent whose budget it takes from: one that was started by another has none.
    """

    run: str
    chain: str
    agent: str
    purse: str
    caller: str


@value
class Entry:
    """Something to be written into the ledger."""

    payer: Payer
    spending: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """What a report is asked for: adds up `by`, over whole days in UTC."""

    by: str = "agent"
    since: str = USUAL_SINCE
    agent: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Lines by name, what they add up to, and whether there are more of them than are shown."""

    by: str
    since: str
    rows: Sequence[tuple[str, Spending]]
    total: Spending
    more: bool = False


def first_day(since: str, now: int) -> int:
    """The day from which on a report adds up, counted from the epoch: `7d`, or a date."""
    today = now // DAY_NS
    try:
        if not re.match(SINCE, since):
            raise ValueError(since)  # noqa: TRY301 - as wrong as a date that is none
        if since.endswith("d"):
            return max(0, today - int(since[:-1]))
        return (date.fromisoformat(since) - date(1970, 1, 1)).days
    except ValueError:
        raise Rejected(
            f"{since!r} is no time since when to add up.",
            status=400,
            rule="query",
            way_out="a number of days, 7d, or a date, 2026-01-31",
        ) from None


def day_name(day: int) -> str:
    """A day as a date."""
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def report_body(report: Report) -> dict[str, Any]:
    """What was used up, line by line, and all together."""
    return {
        "by": report.by,
        "since": report.since,
        "usage": [{report.by: name, **_spending_body(spent)} for name, spent in report.rows],
        "total": _spending_body(report.total),
        "more": report.more,
    }


def _spending_body(spending: Spending) -> dict[str, Any]:
    return {
        "requests": spending.requests,
        "input_tokens": spending.input_tokens,
        "output_tokens": spending.output_tokens,
        "cost_usd": spending.cost_usd,
        "tool_calls": spending.tool_calls,
        "schema_bytes": spending.schema_bytes,
    }


def read_report(body: Mapping[str, Any]) -> Report:
    """Read what was used up."""
    by = body["by"]
    return Report(
        by=by,
        since=body["since"],
        rows=[(one[by], _read_spending(one)) for one in body["usage"]],
        total=_read_spending(body["total"]),
        more=body["more"],
    )


def _read_spending(body: Mapping[str, Any]) -> Spending:
    return Spending(**{name: body[name] for name in _spending_body(NOTHING)})
