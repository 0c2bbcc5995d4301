"""`openfang policy check|explain|test|replay`."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfang.app.rules.cases import Tried, run_tests
from openfang.app.rules.drafts import file_of, read, rules_of
from openfang.app.rules.looking import Asked, Seen, see
from openfang.app.rules.replay import Change, Replay
from openfang.cli.errors import ERROR, PARKED, REFUSED, Usage
from openfang.cli.options import NO_ARGUMENTS, Arguments, Json, seconds
from openfang.cli.output import clean, note, print_json, say, table
from openfang.cli.session import on_home
from openfang.config.rules import NO_RULES, EdgeName, LabelName, ModeName, RoleName, Rules
from openfang.core.bookmarks import LAST, Bookmark

if TYPE_CHECKING:
    from openfang.core.session import Session
    from openfang.core.tools import Tool

File = Annotated[str | None, Parameter(help="The policy file; else the one that is in force.")]
Draft = Annotated[
    str | None, Parameter(name="--file", help="A draft; else the file that is in force.")
]
_CODES = {"allow": 0, "none": 0, "ask": PARKED, "deny": REFUSED, "hide": REFUSED}
_WORDS = {
    "allow": "say yes in a person's place",
    "none": "say nothing: the gates decide alone",
    "ask": "ask a person",
    "deny": "refuse it",
    "hide": "hide the tool",
}
_SECOND = 1_000_000_000
_DATE = re.compile(r"\A\d{4}-\d{2}-\d{2}\Z")


def check_policy(file: File = None, /, *, as_json: Json = False) -> int:
    """Find all that is wrong with a policy file; exits with 1 if there is anything."""
    path = file_of(file, os.environ)
    found = NO_RULES if file is None and not path.exists() else read(path, os.environ)
    problems = found if isinstance(found, list) else []
    if as_json:
        print_json([one.as_json() for one in problems])
        return ERROR if problems else 0
    for one in problems:
        say(clean(str(one)))
    if isinstance(found, Rules):
        count = f"{len(found.compiled)} rules, {len(found.file.tests)} tests"
        note(f"{path}: no problems ({count})")
    return ERROR if problems else 0


def explain(
    tool: str,
    /,
    *,
    caller: Annotated[str, Parameter(help="Who calls, such as key:ci.")],
    arguments: Arguments = NO_ARGUMENTS,
    role: Annotated[RoleName, Parameter(help="The role of who calls.")] = "user",
    edge: Annotated[EdgeName, Parameter(help="Where the call comes in.")] = "api",
    mode: Annotated[ModeName, Parameter(help="In which mode.")] = "execution",
    label: Annotated[
        tuple[LabelName, ...], Parameter(help="What it carries; can be repeated.")
    ] = (),
    file: Draft = None,
    as_json: Json = False,
) -> int:
    """Show how each rule is found for a call that is not made, and what all say together.

    For example `openfang policy explain shell_exec --caller agent:helper --label external_network`.

    Exits with 0 when the rules let it be, 3 when they refuse it, 5 when they ask a person.

    Args:
        tool: Its name or its id.
    """
    rules = rules_of(file, os.environ)

    async def work(session: Session) -> Tool:
        return (await session.tool(tool))[0]

    asked = Asked(
        tool=on_home(work),
        caller=caller,
        role=role,
        edge=edge,
        mode=mode,
        arguments=arguments.read(),
        labels=label,
        now=time.time_ns(),
    )
    seen = see(rules.compiled, asked)
    if as_json:
        print_json({"tool": asked.tool.id, "caller": caller, **seen.as_json()})
    else:
        _show(asked, seen)
    return _CODES[seen.says]


def _show(asked: Asked, seen: Seen) -> None:
    rows = [
        (one.rule.name, one.rule.says, "yes" if one.rule.shadow else "", one.found, one.why)
        for one in seen.looked
    ]
    if rows:
        table(("rule", "effect", "shadow", "found", "why"), rows)
    say(f"Of a call of {asked.tool.id} by {asked.caller} the rules {_WORDS[seen.says]}.")
    if seen.reason:
        say(clean(seen.reason))


def try_policy(file: File = None, /, *, as_json: Json = False) -> int:
    """Run the tests that stand in a policy file; exits with 1 if one fails.

    A tool that the node has is taken as it is; another as the test says.
    """
    rules = rules_of(file, os.environ)
    tried = run_tests(rules, on_home(_tools) if rules.file.tests else {}, time.time_ns())
    failed = [one for one in tried if not one.passed]
    if as_json:
        body = [one.as_json() for one in tried]
        print_json({"passed": len(tried) - len(failed), "failed": len(failed), "tests": body})
    else:
        _show_failed(failed)
        note(f"{len(tried) - len(failed)} of {len(tried)} tests passed.")
    return ERROR if failed else 0


async def _tools(session: Session) -> dict[str, Tool]:
    return {tool.id: tool for tool in await session.tools(disabled=True)}


def _show_failed(failed: list[Tried]) -> None:
    if failed:
        rows = [
            (one.number, one.entry.caller, one.entry.tool, _expected(one), _found(one))
            for one in failed
        ]
        table(("test", "caller", "tool", "expected", "but"), rows)


def _expected(one: Tried) -> str:
    return one.entry.expect + (f" by {one.entry.rule}" if one.entry.rule else "")


def _found(one: Tried) -> str:
    return one.seen.says + (f" by {', '.join(one.seen.rules)}" if one.seen.rules else "")


def replay(
    file: File = None,
    /,
    *,
    since: Annotated[
        str, Parameter(help="Since when: 24h, 7d, or a date, 2026-01-31. Else 24h.")
    ] = "24h",
    limit: Annotated[int, Parameter(help="Show at most so many decisions; else 100.")] = 100,
    as_json: Json = False,
) -> None:
    """Hold the calls of the audit log against a draft, and show what would be decided otherwise.

    A decision that needs what the log does not have, as a redacted argument, is undecidable.
    """
    rules, begin = rules_of(file, os.environ), _begin(since)

    async def work(session: Session) -> Replay:
        found = Replay(rules.compiled, await _tools(session), limit)
        sql = f"SELECT node, MIN(seq) - 1 FROM audit WHERE at >= {begin} GROUP BY node"  # noqa: S608 - a number
        firsts = {str(node): int(last) for node, last in (await session.sql(sql))[0][1]}
        if firsts:
            async for event in session.after(Bookmark(firsts, rest=LAST)):
                found.read(event)
        found.end()
        return found

    found = on_home(work)
    if as_json:
        print_json(found.as_json())
    else:
        _show_replay(found)


def _begin(since: str) -> int:
    if not _DATE.match(since):
        return time.time_ns() - int((seconds(since) or 0) * _SECOND)
    try:
        day = datetime.strptime(since, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise Usage(f"--since is {since!r}.", way_out="24h, 7d, or a date, 2026-01-31") from None
    return int(day.timestamp()) * _SECOND


def _show_replay(found: Replay) -> None:
    if found.changes:
        table(
            ("number", "time", "caller", "tool", "before", "after", "rules", "why"),
            (_row(one) for one in found.changes),
        )
    say(f"{found.calls} calls, {found.same} decided as before.")
    for change, count in sorted(found.counts.items()):
        say(f"{count} {change}")


def _row(one: Change) -> tuple[object, ...]:
    by = ", ".join(one.rules)
    return one.seq, one.at, one.caller, one.tool, one.before, one.after, by, one.why
