"""`openfang usage`: tokens, money, calls and schema bytes, added up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import note, print_json, table
from openfang.cli.session import on_home
from openfang.core.usage import MOST_ROWS, SINCE, USUAL_SINCE, UsageQuery, report_body

if TYPE_CHECKING:
    from openfang.core.usage import Report, Spending

_HEADERS = ("requests", "tokens in", "tokens out", "cost", "tool calls", "schema bytes")


def usage(
    *,
    by: Annotated[
        Literal["agent", "key", "day", "chain"],
        Parameter(help="Add up by agent, key, day (UTC), or chain of calls. Else by agent."),
    ] = "agent",
    since: Annotated[
        str, Parameter(help="Since when: 30d, or a date, 2026-01-31. Else 7d.")
    ] = USUAL_SINCE,
    agent: Annotated[str, Parameter(help="Only what this agent used.")] = "",
    key: Annotated[str, Parameter(help="Only what was used for this key.")] = "",
    as_json: Json = False,
) -> None:
    """Show what was used up, for everybody if the key may see that, else for this key."""
    if not re.match(SINCE, since):
        raise Usage(f"--since is {since!r}.", way_out="a number of days, 7d, or a date, 2026-01-31")
    wanted = UsageQuery(by=by, since=since, agent=agent, key=key)
    report = on_home(lambda session: session.usage(wanted))
    if as_json:
        print_json(report_body(report))
    else:
        _show(report)


def _show(report: Report) -> None:
    if not report.rows:
        note(f"Nothing was used since {report.since}.")
        return
    lines = [*report.rows, ("total", report.total)]
    table((report.by, *_HEADERS), ((name, *_amounts(spent)) for name, spent in lines))
    if report.more:
        note(f"The first {MOST_ROWS} are shown; the total is of all.")


def _amounts(spent: Spending) -> tuple[object, ...]:
    return (
        spent.requests,
        spent.input_tokens,
        spent.output_tokens,
        f"${spent.cost_usd:.4f}",
        spent.tool_calls,
        spent.schema_bytes,
    )
