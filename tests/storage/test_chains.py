"""One log of several nodes: each record is read once, in the order of its node, wherever from.

On SQLite there is one node; everything else is the same on both.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storage.both import BOTH, kept

from openfang.app.web.figures import Tallies
from openfang.app.web.folding import fold as fold_calls
from openfang.core.bookmarks import LAST, START, Bookmark, bookmark, read_bookmark
from openfang.core.errors import Rejected
from openfang.core.log import Search
from openfang.core.usage import DAY_NS, UsageQuery
from openfang.core.watching import CallFilter
from openfang.storage.calls import call_records, chain_records, records_of
from openfang.storage.chains import chains, heads, read_so_far
from openfang.storage.database import at_once
from openfang.storage.ledger import LedgerStore, fold
from openfang.storage.log import batches, head_of, places, record, search
from openfang.storage.recent import recent
from openfang.storage.units import GENESIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.storage.database import Database

pytestmark = pytest.mark.requirement("C13.1", "C13.3")
NODES = ("a", "b", "node-0c")
TODAY = 20_000
NOON = TODAY * DAY_NS + DAY_NS // 2
SECOND = 1_000_000_000
INSERT = "INSERT INTO audit VALUES (?, ?, ?, ?, 'info', ?, '', ?, ?, x'%s')"
Written = tuple[str, int]
few = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# Which node writes next, and how much later; a clock may be set back.
written = st.lists(st.tuples(st.sampled_from(NODES), st.integers(-3, 20)), min_size=1, max_size=60)


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


class Log:
    """A log that is written to, record by record."""

    def __init__(self, database: Database) -> None:
        self.database, self.at = database, NOON
        self.ends: dict[str, int] = {}
        self.records: list[Written] = []
        for table in ("audit", "settings", "ledger_days"):
            self.do(f"DELETE FROM {table}")  # noqa: S608 - names of our own

    def do(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        with self.database.connection:
            self.database.connection.execute(sql, parameters)

    def put(
        self,
        node: str,
        later: int = 1,
        *,
        event: str = "tool_invocation_start",
        call: str = "",
        caller: str = "key:ann",
        payload: str = "{}",
        trace: str = "",
    ) -> Written:
        """Write one; a file has one node."""
        node = "a" if self.database.dialect == "sqlite" else node
        self.at += later * SECOND
        seq = self.ends[node] = self.ends.get(node, 0) + 1
        told = f'{{"caller":"{caller}","tool":"mcp:x:y","trace":"{trace}"}}'
        digest = f"{len(self.records):064x}"
        line = (node, seq, self.at, event, call, payload, told)
        self.do(INSERT % digest, line)
        self.records.append((node, seq))
        return node, seq

    def of(self, node: str) -> list[Written]:
        return [one for one in self.records if one[0] == node]


def named(records: Sequence[Any]) -> list[Written]:
    return [(one["node"], one["audit_id"]) for one in records]


def once_and_in_order(found: Sequence[Written], log: Log) -> None:
    """Each once, and those of each node in its own order."""
    for node in log.ends:
        assert [one for one in found if one[0] == node] == log.of(node)
    assert len(found) == len(log.records)


@few
@given(written, st.data())
def test_who_follows_sees_each_record_once_from_whichever_node(
    database: Database, steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    log, seen, found = Log(database), START, list[Written]()
    for node, later in steps:
        log.put(node, later)
        if data.draw(st.booleans()):
            # What a client has is a text; another node reads it.
            again = read_bookmark(str(seen))
            assert again is not None
            part = at_once(recent(database, again, data.draw(st.integers(1, 9))))
            found += named(part.records)
            seen = part.end
    while seen.misses(at_once(heads(database))):
        part = at_once(recent(database, seen, 3))
        found += named(part.records)
        seen = part.end
    once_and_in_order(found, log)
    assert at_once(recent(database, seen, 3)).records == ()


@few
@given(written)
def test_what_is_left_out_for_its_length_comes_with_the_next_look(
    database: Database, steps: list[tuple[str, int]]
) -> None:
    log, seen, found = Log(database), START, list[Written]()
    for node, later in steps[:12]:
        log.put(node, later, payload=f'{{"reason":"{"x" * 300_000}"}}')
    for _ in steps[:12]:
        part = at_once(recent(database, seen, 100))
        found += named(part.records)
        seen = part.end
    once_and_in_order(found, log)


@few
@given(written, st.integers(1, 4))
def test_the_log_can_be_read_on_from_any_bookmark(
    database: Database, steps: list[tuple[str, int]], after: int
) -> None:
    log = Log(database)
    for node, later in steps:
        log.put(node, later)

    async def read(since: int | Bookmark) -> list[Written]:
        return [(row[0], row[1]) async for some in batches(database, after=since) for row in some]

    once_and_in_order(at_once(read(0)), log)
    assert sorted(at_once(read(after))) == sorted(one for one in log.records if one[1] > after)
    assert at_once(read(at_once(heads(database)))) == []
    here = {node: min(after, end) for node, end in log.ends.items()}
    told = {node: head.seq for node, head in at_once(places(database, after)).items()}
    assert told == here
    for node, end in log.ends.items():
        assert at_once(head_of(database, node)).seq == end
    assert at_once(head_of(database, "nobody")) == GENESIS


@few
@given(written, st.integers(1, 30))
def test_a_search_finds_the_newest_of_all_nodes(
    database: Database, steps: list[tuple[str, int]], limit: int
) -> None:
    log = Log(database)
    for node, later in steps:
        log.put(node, abs(later) + 1)
    found = at_once(search(database, Search(limit=limit)))
    assert [(row[0], row[1]) for row in found] == log.records[-limit:]
    for node in log.ends:
        found = at_once(search(database, Search(limit=limit, node=node)))
        assert [(row[0], row[1]) for row in found] == log.of(node)[-limit:]
    assert at_once(search(database, Search(after=at_once(heads(database))))) == []


def test_a_number_that_several_nodes_have_is_no_name_of_a_record(database: Database) -> None:
    log = Log(database)
    for node in "aabc":
        log.put(node)
    (last,) = at_once(search(database, Search(record="a:2")))
    assert last[:2] == ("a", 2)
    assert at_once(search(database, Search(record="2"))) == [last]
    assert at_once(search(database, Search(record="z:1"))) == []
    assert at_once(record(database, 2, last[9])) == last
    assert at_once(record(database, 1, last[9])) is None
    for odd in ("x", "a:", ":2", "a:1,b:1", "-1", "1.0"):
        with pytest.raises(Rejected):
            at_once(search(database, Search(record=odd)))
    if database.dialect == "postgres":
        with pytest.raises(Rejected, match="The nodes a, b, c have a record 1 each") as refused:
            at_once(search(database, Search(record="1")))
        assert refused.value.way_out == "name the node with it: a:1"


@few
@given(written, st.integers(1, 7))
def test_pages_of_calls_have_each_call_once_the_newest_first(
    database: Database, steps: list[tuple[str, int]], limit: int
) -> None:
    log, ends = Log(database), dict[str, int]()
    for number, (node, later) in enumerate(steps):
        # Some calls have their records on two nodes, as those that wait for a person.
        call = f"c{number - number % 3 if later % 2 else number}"
        log.put(node, abs(later) + 1, call=call)
        ends[call] = log.at
    wanted, found = CallFilter(limit=limit), list[str]()
    for _ in range(len(steps) + 2):
        records, older = at_once(call_records(database, wanted, None))
        last = wanted.before
        calls = [
            one for one in fold_calls(records) if last is None or one.audit < last.of(one.keeper)
        ]
        assert len(calls) <= limit
        found += [one.id for one in calls]
        if older is None:
            break
        wanted = CallFilter(limit=limit, before=read_bookmark(str(older)))
    assert found == sorted(ends, key=lambda call: ends[call], reverse=True)


def test_a_call_and_its_chain_are_told_from_all_nodes(database: Database) -> None:
    log = Log(database)
    call = f"call_{log.at // 1_000_000:012x}"
    for node in ("b", "a", "b"):
        log.put(node)
    first = log.put("a", call=call, event="approval_requested", trace="t1")
    other = log.put("node-0c", call="other", trace="t1")
    last = log.put("b", call=call, event="approval_answered", trace="t1")
    rows = at_once(records_of(database, call))
    assert [row[:2] for row in rows] == [first, last]
    assert [row[:2] for row in at_once(chain_records(database, "t1", rows))] == [first, other, last]
    assert at_once(records_of(database, "call_ffffffffffff")) == []


@few
@given(written, st.data())
def test_calls_are_counted_once_whoever_counts_them(
    database: Database, steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    log, store = Log(database), LedgerStore(database)
    late = None
    for node, later in steps:
        log.put(node, later)
        if data.draw(st.booleans()):
            found = at_once(store.unfolded())
            assert found is not None
            late = late or found
            log.do("SAVEPOINT unit") if False else None
            for sql, parameters in fold(found):
                log.do(sql, parameters)
        report = at_once(store.report(UsageQuery(by="key"), None, log.at))
        assert report.total.tool_calls == len(log.records)
    if late is not None:
        with pytest.raises(sqlite3.IntegrityError):
            log.do(*fold(late)[0])


def test_figures_are_those_of_all_nodes(database: Database) -> None:
    log, tallies = Log(database), Tallies()
    for round_ in range(4):
        for node in NODES:
            log.put(node, event="tool_invocation_end", call="c", payload='{"outcome":"ok"}')
        at_once(tallies.read_on(database))
        figures = tallies.figures(None, 60, log.at)
        assert figures.calls == 3 * (round_ + 1)
        assert figures.since == 0


def test_a_chain_that_is_new_is_read_from_its_first_record(database: Database) -> None:
    log = Log(database)
    log.put("a")
    seen = at_once(heads(database))
    log.put("b")
    assert named(at_once(recent(database, seen, 10)).records) == log.records[-1:]
    assert [chain.seq for chain in at_once(chains(database))][-1] >= 1


places_of_nodes = st.dictionaries(st.text(min_size=1), st.integers(0, LAST), max_size=5)


@given(places_of_nodes, st.integers(0, LAST))
def test_a_bookmark_is_read_as_it_was_written(of: dict[str, int], rest: int) -> None:
    for mark in (Bookmark(of), Bookmark(rest=rest), Bookmark(of, rest)):
        again = read_bookmark(str(mark))
        assert again is not None
        assert (again.places, again.rest) == (mark.places, mark.rest)
    alone = Bookmark({"": rest})
    assert str(alone) == str(bookmark(rest)) == str(rest)


@given(st.text())
def test_whatever_else_it_is_it_is_no_bookmark(text: str) -> None:
    found = read_bookmark(text)
    assert found is None or read_bookmark(str(found)) == found


def test_a_bookmark_does_not_grow_with_every_node_that_ever_was(database: Database) -> None:
    log, day = Log(database), 86_400
    for number in range(20):
        log.put(f"old-{number:02}")
    log.put("a", 3 * day)
    seen, newest = at_once(read_so_far(database, None))
    assert seen == newest
    assert len(seen.places) == 1
    # One of the old ones comes back, a new one joins: only what they write now is news.
    log.put("b", day // 24)
    log.put("old-07")
    later = read_bookmark(str(seen))
    assert later is not None
    found = at_once(recent(database, later, 10))
    assert named(found.records) == log.records[-2:]
    # Who had read but a part of an old one reads the rest of it.
    if database.dialect == "postgres":
        behind = Bookmark({**seen.places, "old-03": 0})
        assert named(at_once(recent(database, behind, 10)).records)[0] == ("old-03", 1)
