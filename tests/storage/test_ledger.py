"""The ledger: written with what it is about, added up by anything, and no call pays for it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import orjson
import pytest
from tests.storage.both import BOTH, kept

from openfang.core.budgets import Account, Whose
from openfang.core.errors import Rejected
from openfang.core.usage import DAY_NS, MOST_ROWS, NOTHING, Entry, Payer, Spending, UsageQuery
from openfang.storage import ledger
from openfang.storage.database import Database, at_once
from openfang.storage.ledger import MINUTE_NS, LedgerStore, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

pytestmark = pytest.mark.requirement("C6.4")

ONE = Spending(
    requests=1,
    input_tokens=100,
    output_tokens=10,
    cost_usd=0.5,
    tool_calls=2,
    schema_bytes=300,
)
TODAY = 20_000
NOON = TODAY * DAY_NS + DAY_NS // 2
NODE = Account(whose=Whose.NODE)


def payer(run: str = "r1", agent: str = "coder", caller: str = "key:ann", **more: str) -> Payer:
    names = {"chain": f"chain of {run}", "purse": agent, **more}
    return Payer(run=run, agent=agent, caller=caller, **names)


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def write(database: Database, *statements: tuple[str, Sequence[Any]]) -> None:
    with database.connection:
        for sql, parameters in statements:
            database.connection.execute(sql, parameters)


def spend(database: Database, whose: Payer, at: int = NOON, spending: Spending = ONE) -> None:
    write(database, *ledger.add(Entry(payer=whose, spending=spending), at))


def lines(database: Database, by: str, caller: str | None = None, **more: str) -> dict[str, int]:
    """How often `ONE` is in each line of a report."""
    found = at_once(LedgerStore(database).report(UsageQuery(by=by, **more), caller, NOON))
    assert found.total.requests == sum(spent.requests for _, spent in found.rows)
    return {name: spent.requests for name, spent in found.rows}


def called(
    database: Database, caller: str, tool: str = "builtin:system_time", *, at: int = NOON
) -> None:
    context = orjson.dumps({"caller": caller, "tool": tool}).decode()
    sql = (
        "INSERT INTO audit VALUES ('n', (SELECT COALESCE(MAX(seq), 0) + 1 FROM audit), ?, "
        "'tool_invocation_start', 'info', 'c', '', '{}', ?, x'')"
    )
    write(database, (sql, (at, context)))


def counted(database: Database, **more: str) -> dict[str, int]:
    """The calls of each key; they are the same once they are folded."""
    wanted = UsageQuery(by="key", **more)
    found = at_once(LedgerStore(database).report(wanted, None, NOON))
    unfolded = at_once(LedgerStore(database).unfolded())
    write(database, *(fold(unfolded) if unfolded else ()))
    assert at_once(LedgerStore(database).report(wanted, None, NOON)) == found
    return {name: spent.tool_calls for name, spent in found.rows}


def test_a_run_has_a_line_for_each_minute_and_adds_up_to_all_of_them(database: Database) -> None:
    for at in (NOON, NOON + 1, NOON + MINUTE_NS):
        spend(database, payer(), at)
    spend(database, payer("r2"))
    store = LedgerStore(database)
    assert at_once(store.of_run("r1")) == ONE + ONE + ONE
    assert at_once(store.of_run("nobody's")) == NOTHING
    minute = NOON // MINUTE_NS
    assert at_once(store.minutes(NODE, minute)) == [(minute, 330, 1.5), (minute + 1, 110, 0.5)]
    assert at_once(store.minutes(NODE, minute + 1)) == [(minute + 1, 110, 0.5)]


def test_nothing_is_not_written() -> None:
    assert ledger.add(None, NOON) == ()
    assert ledger.add(Entry(payer=payer(), spending=NOTHING), NOON) == ()


def test_days_are_added_up_for_a_purse_a_caller_and_everybody(database: Database) -> None:
    spend(database, payer("r1", "coder", "key:ann"))
    spend(database, payer("r2", "helper~1", "key:bob", purse="coder"), NOON + DAY_NS)
    spend(database, payer("r3", "clerk", "key:ann"), NOON + 2 * DAY_NS)
    store = LedgerStore(database)
    accounts = {
        "coder and what it started": Account(whose=Whose.PURSE, name="coder"),
        "ann": Account(whose=Whose.CALLER, name="key:ann"),
        "all": NODE,
    }
    counts = {
        name: [at_once(store.days(one, TODAY, TODAY + days)).requests for days in range(3)]
        for name, one in accounts.items()
    }
    assert counts == {
        "coder and what it started": [1, 2, 2],
        "ann": [1, 1, 2],
        "all": [1, 2, 3],
    }


def test_a_report_adds_up_by_what_is_wanted(database: Database) -> None:
    spend(database, payer("r1", chain="c1"), NOON - DAY_NS)
    spend(database, payer("r2", chain="c2"))
    spend(database, payer("r3", "helper~1", chain="c2"), NOON + MINUTE_NS)
    spend(database, payer("r4", "clerk", "key:bob", chain="c3"), NOON - MINUTE_NS)
    assert lines(database, "agent") == {"coder": 2, "clerk": 1, "helper~1": 1}
    assert lines(database, "key") == {"key:ann": 3, "key:bob": 1}
    assert lines(database, "day") == {"2024-10-03": 1, "2024-10-04": 3}
    assert list(lines(database, "chain").items()) == [("c2", 2), ("c3", 1), ("c1", 1)]
    assert lines(database, "key", agent="helper") == {"key:ann": 1}
    assert lines(database, "agent", key="bob") == lines(database, "agent", "key:bob")
    assert lines(database, "agent", key="bob") == {"clerk": 1}
    assert lines(database, "agent", "key:ann", key="bob") == {}


def test_a_report_begins_with_a_whole_day(database: Database) -> None:
    for days in range(4):
        spend(database, payer(), NOON - days * DAY_NS)
    found = at_once(LedgerStore(database).report(UsageQuery(by="day", since="2d"), None, NOON))
    assert (found.since, len(found.rows)) == ("2024-10-02", 3)
    assert lines(database, "day", since="2024-10-04") == {"2024-10-04": 1}
    assert lines(database, "chain", since="0d") == {"chain of r1": 1}


@pytest.mark.parametrize("since", ["", "7", "d", "-1d", "2024-13-01", "2024-02-30", "7d\n", "yes"])
def test_a_time_that_is_none_is_refused(database: Database, since: str) -> None:
    with pytest.raises(Rejected, match="no time since when"):
        at_once(LedgerStore(database).report(UsageQuery(since=since), None, NOON))


def test_a_long_report_says_that_there_is_more_and_adds_up_all(database: Database) -> None:
    for number in range(MOST_ROWS + 1):
        spend(database, payer(f"r{number}"))
    found = at_once(LedgerStore(database).report(UsageQuery(by="chain"), None, NOON))
    assert (len(found.rows), found.more) == (MOST_ROWS, True)
    assert found.total.requests == MOST_ROWS + 1


def test_calls_without_an_agent_are_counted_once_from_the_log(database: Database) -> None:
    for caller in ("key:ann", "key:ann", "key:bob"):
        called(database, caller)
    called(database, "agent:coder")  # its run has counted that
    called(database, "key:ann", "agent:coder")  # a message is no tool call
    assert counted(database) == {"key:ann": 2, "key:bob": 1}
    assert counted(database) == {"key:ann": 2, "key:bob": 1}
    called(database, "key:bob")
    assert counted(database) == {"key:ann": 2, "key:bob": 2}


def test_of_two_that_count_at_once_one_is_too_late(database: Database) -> None:
    called(database, "key:ann")
    found = at_once(LedgerStore(database).unfolded())
    assert found is not None
    write(database, *fold(found))
    called(database, "key:ann")
    with pytest.raises(sqlite3.IntegrityError):
        write(database, *fold(found))
    assert counted(database) == {"key:ann": 2}


def test_a_record_that_somebody_made_unreadable_is_nobodys_call(database: Database) -> None:
    called(database, "key:ann")
    write(database, ("UPDATE audit SET context = '{'", ()))
    called(database, "key:ann")
    assert counted(database) == {"key:ann": 1}
