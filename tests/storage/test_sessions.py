"""Sessions as rows: a thousand long ones open and list quickly, and nothing is left over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.storage.both import BOTH, kept

from openfang.core.agents import Ended, Ending, Message, Speaker, Usage, Wish
from openfang.core.labels import Labels
from openfang.core.sessions import SessionSummary
from openfang.storage import agent_runs, sessions
from openfang.storage.agent_runs import AgentRunStore, Beginning
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.sessions import SessionStore, title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

pytestmark = pytest.mark.requirement("C6.4")

SESSIONS = 1_000
MESSAGES = 200
CALLERS = 10
SPEAKERS = ("user", "agent", "tool", "agent")
BODIES = (
    '{"text":"Question NUMBER, and a few words more so that it looks like one"}',
    '{"text":"","wishes":[{"id":"w","tool":"file_read","arguments":{"path":"notes.txt"}}]}',
    '{"text":"what the file says","answers":"w"}',
    '{"text":"It says what the file says."}',
)


def summary(number: int, **more: Any) -> SessionSummary:
    known: dict[str, Any] = {
        "id": f"session_{number:032x}",
        "agent": f"agent{number % 2}",
        "caller": f"key:{number % CALLERS}",
        "name": f"name {number}",
        "title": "",
        "messages": 0,
        "labels": Labels.NONE,
        "created_at": number,
        "updated_at": number,
    }
    return SessionSummary(**{**known, **more})


def turns(session: str) -> Iterator[tuple[object, ...]]:
    for n in range(MESSAGES):
        body = BODIES[n % 4].replace("NUMBER", str(n // 4))
        yield session, n + 1, f"run_{n // 4}", n, SPEAKERS[n % 4], body


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A home with 1,000 sessions of 200 messages each, written the fast way."""
    with closing(open_home(tmp_path_factory.mktemp("many") / "openfang.db")) as database:
        connection = database.connection
        connection.execute("BEGIN")
        for number in range(SESSIONS):
            one = summary(number, title=f"Question 0 of {number}", messages=MESSAGES)
            connection.execute(*sessions.insert(one))
            connection.executemany("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", turns(one.id))
        connection.execute("COMMIT")
        yield database


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def write(database: Database, *statements: tuple[str, Sequence[Any]]) -> None:
    for sql, parameters in statements:
        database.connection.execute(sql, parameters)


def said(text: str, speaker: Speaker = Speaker.USER) -> Message:
    return Message(speaker=speaker, text=text)


def test_each_of_a_thousand_opens_with_its_last_turns(many: Database) -> None:
    store = SessionStore(many)
    for number in range(0, SESSIONS, 7):
        one = at_once(store.find(f"agent{number % 2}", f"key:{number % CALLERS}", f"name {number}"))
        assert one is not None
        assert (one.id, one.messages) == (summary(number).id, MESSAGES)
        found, whole = at_once(store.last(one.id, one.messages, 20))
        assert whole
        assert [message.speaker.value for message in found] == list(SPEAKERS) * 5
        assert found[0].text.startswith("Question 45,")
        assert found[1].wishes == (Wish(id="w", tool="file_read", arguments={"path": "notes.txt"}),)


def test_what_is_read_reaches_back_to_where_the_person_last_spoke(many: Database) -> None:
    store, session = SessionStore(many), summary(3).id
    assert len(at_once(store.last(session, MESSAGES, 2))[0]) == 4
    assert len(at_once(store.last(session, MESSAGES, 7))[0]) == 4
    assert len(at_once(store.last(session, MESSAGES, 8))[0]) == 8
    assert len(at_once(store.last(session, MESSAGES - 3, 2))[0]) == 1
    assert len(at_once(store.last(session, MESSAGES, 10**9))[0]) == MESSAGES
    short, whole = at_once(store.last(session, MESSAGES, 100, characters=500))
    assert (len(short) < 100, whole) == (True, False)
    assert at_once(store.last(session, MESSAGES, 100))[0][-len(short) :] == short
    assert at_once(store.last("session_nowhere", 0, 20)) == ([], True)


def test_a_thousand_are_listed_page_by_page_newest_first(many: Database) -> None:
    store, seen, after = SessionStore(many), list[SessionSummary](), ""
    while page := at_once(store.page(caller=None, after=after, limit=300)):
        seen += page
        after = page[-1].cursor
    assert [one.id for one in seen] == [summary(n).id for n in reversed(range(SESSIONS))]
    own = at_once(store.page(caller="key:7", limit=500))
    assert [one.id for one in own] == [summary(n).id for n in range(997, 0, -10)]
    assert own[0].title == "Question 0 of 997"
    assert [
        one.agent for one in at_once(store.page(caller="key:7", agent="agent0", limit=500))
    ] == []
    assert len(at_once(store.page(caller="key:7", agent="agent1", limit=500))) == 100
    assert len(at_once(store.page(caller=None, agent="agent1", limit=1000))) == 500


def test_no_look_reads_a_whole_table(many: Database) -> None:
    looks: list[str] = []
    many.connection.set_trace_callback(looks.append)
    try:
        store, session = SessionStore(many), summary(5).id
        at_once(store.get(session))
        at_once(store.find("agent1", "key:5", "name 5"))
        at_once(store.page(caller="key:5", after=summary(900).cursor, limit=20))
        at_once(store.page(caller=None, after=summary(900).cursor, limit=20))
        at_once(store.page(caller=None, agent="agent1", after=summary(900).cursor, limit=20))
        at_once(store.page(caller="key:5", agent="agent1", limit=20))
        at_once(store.last(session, MESSAGES, 20))
        at_once(store.turns(session, 100))
        at_once(store.turns_of(session, "run_3"))
        at_once(AgentRunStore(many).under_way_in(session))
    finally:
        many.connection.set_trace_callback(None)
    assert len(looks) == 11
    for sql in looks:
        for *_, detail in many.read_now(f"EXPLAIN QUERY PLAN {sql}"):
            assert "USING" in detail, (sql, detail)
            assert "SCAN" not in detail or "USING INDEX sessions_by" in detail, (sql, detail)
            assert "TEMP B-TREE" not in detail, (sql, detail)


def test_all_turns_are_read_in_order_some_at_a_time(many: Database) -> None:
    store, session, seen = SessionStore(many), summary(9).id, list[int]()
    while chunk := at_once(store.turns(session, seen[-1] if seen else 0)):
        seen += [turn.seq for turn in chunk]
    assert seen == list(range(1, MESSAGES + 1))
    assert [turn.seq for turn in at_once(store.turns_of(session, "run_2"))] == [9, 10, 11, 12]


def test_turns_are_numbered_and_the_first_gives_the_title(database: Database) -> None:
    store, one = SessionStore(database), summary(1)
    write(database, sessions.insert(one))
    for n, text in enumerate(("What time is it?", "And now?")):
        write(database, *sessions.ask(one.id, "run", said(text), 100 + n))
        write(database, *sessions.say(one.id, "run", said("Late.", Speaker.AGENT), 200))
    found = at_once(store.get(one.id))
    assert found
    assert (found.title, found.messages, found.updated_at) == ("What time is it?", 4, 101)
    assert [(turn.seq, turn.at, turn.message.text) for turn in at_once(store.turns(one.id))] == [
        (1, 100, "What time is it?"),
        (2, 200, "Late."),
        (3, 101, "And now?"),
        (4, 200, "Late."),
    ]
    write(database, sessions.carry(one.id, Labels.PII, 300))
    write(database, sessions.carry(one.id, Labels.SECRET, 301))
    found = at_once(store.get(one.id))
    assert found
    assert (found.labels, found.updated_at) == (Labels.PII | Labels.SECRET, 301)


def test_one_name_is_one_session(database: Database) -> None:
    first = summary(1)
    write(database, sessions.insert(first), sessions.insert(summary(2, agent="agent1")))
    twin = summary(3, agent=first.agent, caller=first.caller, name=first.name)
    write(database, sessions.insert(twin))
    found = at_once(SessionStore(database).find(first.agent, first.caller, first.name))
    assert found
    assert found.id == first.id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Read\n my\tnotes ", "Read my notes"),
        ("", ""),
        ("word " * 40, "word " * 15 + "word…"),
        ("x" * 200, "x" * 79 + "…"),
        ("half \ud800 a pair\0", "half ? a pair"),
    ],
)
def test_a_title_is_the_first_words(text: str, expected: str) -> None:
    assert title(text) == expected
    assert len(title(text)) <= 80


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
words = st.text(max_size=20)
wishes = st.builds(
    Wish, id=words, tool=words, arguments=st.dictionaries(words, json_values, max_size=3)
)
messages = st.builds(
    Message,
    speaker=st.sampled_from(Speaker),
    text=words,
    wishes=st.lists(wishes, max_size=3).map(tuple),
    answers=words,
    is_error=st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(messages, min_size=1, max_size=5))
def test_what_was_said_is_kept_as_it_was_said(spoken: list[Message]) -> None:
    rows = [(one.speaker.value, sessions.written(one)) for one in spoken]
    assert _read_back(rows) == spoken


def test_arguments_that_are_no_text_are_kept_as_that() -> None:
    wish = Wish(id="w", tool="t", arguments={"a": "\ud800"})
    said = Message(speaker=Speaker.AGENT, text="", wishes=(wish,))
    (kept,) = _read_back([(said.speaker.value, sessions.written(said))])
    assert list(kept.wishes[0].arguments) == ["unreadable"]


def _read_back(rows: Iterable[tuple[str, str]]) -> list[Message]:
    with closing(open_in_memory()) as database:
        for n, (speaker, body) in enumerate(rows, 1):
            row = ("s", n, "run", n, speaker, body)
            database.connection.execute("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", row)
        return [turn.message for turn in at_once(SessionStore(database).turns("s"))]


def open_in_memory() -> Database:
    database = Database(Path(":memory:"))
    database.connection.execute(
        "CREATE TABLE turns (session TEXT, seq INTEGER, run TEXT, created_at INTEGER, "
        "speaker TEXT, body TEXT)"
    )
    return database


def test_what_json_has_no_word_for_is_replaced_and_the_rest_is_kept() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"deeper": deep}
    odd = (
        Wish(id="\udfff", tool="t", arguments={"number": 2**80}),
        Wish(id="b", tool="t", arguments=deep),
        Wish(id="c", tool="t", arguments={"path": "kept"}),
    )
    message = Message(speaker=Speaker.AGENT, text="half \ud800", wishes=odd)
    (read,) = _read_back([("agent", sessions.written(message))])
    assert (read.text, read.wishes[0].id) == ("half ?", "?")
    assert [set(wish.arguments) for wish in read.wishes] == [
        {"unreadable"},
        {"unreadable"},
        {"path"},
    ]
    answer = Message(speaker=Speaker.TOOL, answers="\udfff")
    assert _read_back([("tool", sessions.written(answer))])[0].answers == read.wishes[0].id


def begun(database: Database, *, process: str = "p") -> SessionSummary:
    one = summary(1)
    beginning = Beginning(
        run="r", session=one.id, process=process, labels=Labels.PII, origin="{}", now=1
    )
    write(database, sessions.insert(one), *agent_runs.begin(beginning))
    write(database, *sessions.say(one.id, "r", said("go"), 1))
    write(database, agent_runs.call("r", Wish(id="w", tool="t")))
    return one


def test_a_run_is_under_way_until_it_ends(database: Database) -> None:
    one = begun(database)
    store = AgentRunStore(database)
    (run,) = at_once(store.under_way())
    assert (run.session, run.agent, run.caller) == (one.id, one.agent, one.caller)
    assert (run.labels, run.process, run.taken, run.origin) == (Labels.PII, "p", 0, "{}")
    assert at_once(store.begun("r")) == {"w"}
    ended = Ended(answer="there", ending=Ending.COST, usage=Usage(requests=2, cost_usd=0.5))
    write(database, *agent_runs.end("r", ended, 9))
    assert (at_once(store.under_way()), at_once(store.begun("r"))) == ([], frozenset())
    assert database.read_now("SELECT state, ending, usage, ended_at FROM agent_runs") == [
        (
            "ended",
            "cost",
            '{"requests":2,"input_tokens":0,"output_tokens":0,"cost_usd":0.5}',
            9,
        )
    ]


def test_two_runs_do_not_begin_in_one_session(database: Database) -> None:
    one = begun(database, process="here")
    again = Beginning(run="r2", session=one.id, process="there", labels=Labels.NONE, now=2)
    with pytest.raises(sqlite3.IntegrityError):
        write(database, *agent_runs.begin(again))
    write(database, *agent_runs.begin(again, ["here"]))
    assert [run.id for run in at_once(AgentRunStore(database).under_way())] == ["r", "r2"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_is_deleted_is_gone_from_every_table(database: Database) -> None:
    one = begun(database, process="dead")
    other = summary(2)
    write(database, sessions.insert(other), *sessions.say(other.id, "r2", said("stay"), 1))
    (step,) = sessions.delete(one, ["dead"])
    write(database, *step)
    left = database.read_now(
        "SELECT (SELECT COUNT(*) FROM sessions), (SELECT COUNT(*) FROM turns), "
        "(SELECT COUNT(*) FROM agent_runs), (SELECT COUNT(*) FROM begun)"
    )
    assert left == [(1, 1, 0, 0)]
    assert one.id not in "".join(database.connection.iterdump())


def test_a_long_one_is_deleted_in_steps_oldest_first(many: Database) -> None:
    store, number = SessionStore(many), 5_000
    long = summary(number, messages=1_234)
    write(many, sessions.insert(long))
    rows = ((long.id, n + 1, "run", n, "user", '{"text":"x"}') for n in range(1_234))
    many.connection.executemany("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", rows)
    left: list[int] = []
    for step in sessions.delete(long, ()):
        write(many, *step)
        left.append(many.read_now("SELECT COUNT(*) FROM turns WHERE session = ?", (long.id,))[0][0])
    assert left == [734, 234, 0]
    assert at_once(store.get(long.id)) is None
    assert len(at_once(store.page(caller=None, limit=2_000))) == SESSIONS
