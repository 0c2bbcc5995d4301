"""Tasks as rows: what is written is read again, changes take each other's place, lists go on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.storage.both import BOTH, kept

from openfang.core.errors import Rejected
from openfang.core.labels import Labels
from openfang.core.results import text_part
from openfang.core.tasks import (
    Moved,
    Role,
    Task,
    TaskArtifact,
    TaskFilter,
    TaskMessage,
    TaskState,
)
from openfang.storage import agent_runs, tasks
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.tasks import TaskStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.requirement("C5.6")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with closing(open_home(tmp_path_factory.mktemp("tasks") / "openfang.db")) as database:
        yield database


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def task_id(number: int) -> str:
    return f"task_{number:032x}"


def task(number: int = 1, **more: Any) -> Task:
    known: dict[str, Any] = {
        "id": task_id(number),
        "agent": "echo",
        "caller": "key:me",
        "context": "talk",
        "session": "session_1",
        "state": TaskState.WORKING,
        "created_at": number,
        "changed_at": number,
    }
    return Task(**{**known, **more})


def message(text: str, **more: Any) -> TaskMessage:
    return TaskMessage(id="m", role=Role.USER, parts=(text_part(text),), **more)


def write(database: Database, *statements: tuple[str, Sequence[Any]]) -> None:
    """Write a unit, as the writer does: all of it or nothing."""
    connection = database.connection
    connection.execute("SAVEPOINT unit")
    try:
        for sql, parameters in statements:
            connection.execute(sql, parameters)
    except BaseException:
        connection.execute("ROLLBACK TO unit")
        raise
    finally:
        connection.execute("RELEASE unit")


def keep(database: Database, *kept: Task) -> None:
    for one in kept:
        write(
            database,
            tasks.insert(one, "", "p1"),
            tasks.event(one.id, one.version, one.changed_at, one.state),
        )


TEXT = st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=2)
PARTS = st.lists(st.dictionaries(TEXT, JSON, min_size=1, max_size=3), max_size=2).map(tuple)
MESSAGE = st.builds(
    TaskMessage,
    id=TEXT,
    role=st.sampled_from(Role),
    parts=PARTS,
    metadata=OBJECT,
    extensions=st.lists(TEXT, max_size=2).map(tuple),
    references=st.lists(TEXT, max_size=2).map(tuple),
)
ARTIFACT = st.builds(
    TaskArtifact, id=TEXT, name=TEXT, parts=PARTS, description=TEXT, metadata=OBJECT
)
TASK = st.builds(
    Task,
    id=st.integers(0, 2**64).map(task_id),
    agent=TEXT,
    caller=TEXT,
    context=TEXT,
    session=TEXT,
    state=st.sampled_from(TaskState),
    status=st.none() | MESSAGE,
    history=st.lists(MESSAGE, max_size=2).map(tuple),
    artifacts=st.lists(ARTIFACT, max_size=2).map(tuple),
    metadata=OBJECT,
    labels=st.integers(0, 127).map(Labels),
    version=st.integers(1, 100),
    created_at=st.integers(0, 2**62),
    changed_at=st.integers(0, 2**62),
)


@given(one=TASK)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_again(opened: Database, one: Task) -> None:
    opened.connection.execute("DELETE FROM tasks")
    write(opened, tasks.insert(one, "m1", "p1"))
    assert at_once(TaskStore(opened).get(one.id)) == one
    assert at_once(TaskStore(opened).of_message(one.caller, one.agent, "m1")) == one
    assert at_once(TaskStore(opened).process(one.id)) == "p1"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("half \ud83d", "half ?"),
        (2**70, str(2**70)),
        ({3: (1, 2)}, {"3": [1, 2]}),
        (float("nan"), None),
        (b"bytes", "b'bytes'"),
    ],
)
def test_what_json_has_no_word_for_is_replaced(
    database: Database, value: object, kept: object
) -> None:
    odd = task(history=(message("x", metadata={"value": value}),), context="c\udc00")
    write(database, tasks.insert(odd, "m\udc00", "p1"))
    found = at_once(TaskStore(database).of_message("key:me", "echo", "m\udc00"))
    assert found
    assert found.history[0].metadata == {"value": kept}
    page = at_once(TaskStore(database).page(None, TaskFilter(context="c\udc00")))
    assert [one.id for one in page.tasks] == [odd.id]


def test_what_lies_too_deep_is_replaced_too(database: Database) -> None:
    deep: object = "end"
    for _ in range(500):
        deep = [deep]
    keep(database, task(metadata={"deep": deep}))
    found = at_once(TaskStore(database).get(task_id(1)))
    assert found
    assert "nested too deeply" in str(found.metadata)


def test_a_change_of_a_task_that_is_another_by_now_fails_as_a_whole(database: Database) -> None:
    one = task()
    keep(database, one)
    store, ended = TaskStore(database), Moved(state=TaskState.COMPLETED)
    waiting = one.moved(Moved(state=TaskState.INPUT_REQUIRED, status=message("which?")), 5)
    write(database, *tasks.move(one, waiting))
    mark = ("INSERT INTO timers VALUES ('t', 'push', 'x', 0, 0, '', '', '', '')", ())
    with pytest.raises(sqlite3.IntegrityError):
        write(database, mark, *tasks.move(one, one.moved(ended, 6)))
    assert at_once(store.get(one.id)) == waiting
    assert database.read_now("SELECT * FROM timers") == []
    done = waiting.moved(ended, 7)
    write(database, *tasks.move(waiting, done))
    with pytest.raises(sqlite3.IntegrityError):
        write(database, *tasks.move(done, done.moved(Moved(state=TaskState.WORKING), 8)))
    assert at_once(store.get(one.id)) == done
    assert at_once(store.states(one.id)) == [
        (1, 1, TaskState.WORKING),
        (2, 5, TaskState.INPUT_REQUIRED),
        (3, 7, TaskState.COMPLETED),
    ]
    nobody = task(9)
    with pytest.raises(sqlite3.IntegrityError):
        write(database, *tasks.move(nobody, nobody.moved(ended, 9)))


def test_a_message_begins_one_task_of_its_caller_with_that_agent(database: Database) -> None:
    write(database, tasks.insert(task(1), "m1", "p1"))
    with pytest.raises(sqlite3.IntegrityError):
        write(database, tasks.insert(task(2), "m1", "p1"))
    write(database, tasks.insert(task(3, caller="key:other"), "m1", "p1"))
    write(database, tasks.insert(task(4, agent="other"), "m1", "p1"))
    for number in (5, 6):
        write(database, tasks.insert(task(number), "", "p1"))
    store = TaskStore(database)
    assert at_once(store.of_message("key:me", "echo", "m1")) == task(1)
    assert at_once(store.of_message("key:me", "echo", "")) is None


def test_a_task_is_taken_over_once_and_only_from_who_has_it(database: Database) -> None:
    keep(database, task(1), task(2, state=TaskState.FAILED))
    write(database, tasks.take_over(task_id(1), "p1", "p2"))
    assert at_once(TaskStore(database).unfinished()) == [(task_id(1), "p2")]
    for number in (1, 2):
        with pytest.raises(sqlite3.IntegrityError):
            write(database, tasks.take_over(task_id(number), "p1", "p3"))


def test_the_oldest_that_has_ended_is_deleted_first_with_all_that_belongs_to_it(
    database: Database,
) -> None:
    for number in range(1, 7):
        state = TaskState.WORKING if number in {1, 4} else TaskState.COMPLETED
        keep(database, task(number, state=state, changed_at=100 - number))
        write(
            database,
            ("INSERT INTO pushes VALUES (?, 'a', x'00', 0)", (task_id(number),)),
        )
    write(database, *tasks.evict(3))
    left = [task_id(number) for number in (1, 4, 6)]
    for sql in (
        "SELECT id FROM tasks",
        "SELECT task FROM task_events",
        "SELECT task FROM pushes",
    ):
        assert sorted(row[0] for row in database.read_now(sql)) == left
    assert at_once(TaskStore(database).counts()) == (3, 1)
    write(database, *tasks.evict(9))
    assert at_once(TaskStore(database).counts()) == (2, 0)


RUN = (
    "INSERT INTO agent_runs (id, session, agent, caller, state, labels, started_at, process, "
    "taken, task) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def conversation(database: Database, name: str, for_task: str) -> None:
    """Keep one with a turn, and a run in it for a task or for nobody."""
    run = ("a", "key:me", "ended", 0, 0, "p1", 0)
    write(
        database,
        ("INSERT INTO sessions VALUES (?, 'a', 'key:me', ?, '', 1, 0, 0, 0)", (name, name)),
        ("INSERT INTO turns VALUES (?, 1, 'r', 0, 'user', '{}')", (name,)),
        (RUN, (name, name, *run, for_task)),
    )


def test_a_conversation_that_was_made_for_a_task_goes_with_it(database: Database) -> None:
    for number, (context, task_of_run) in enumerate(
        {
            "session_alone": "task",
            "session_shared": "task",
            "session_talk": "",  # somebody has gone on with it beside
            "named": "task",
        }.items()
    ):
        conversation(database, context, task_of_run)
        kept = "talk" if context == "named" else context
        keep(database, task(number, state=TaskState.FAILED, context=kept, session=context))
    keep(database, task(9, context="session_shared", session="session_shared"))
    write(database, *tasks.evict(4))
    left = ["named", "session_shared", "session_talk"]
    for sql in ("SELECT id FROM sessions", "SELECT session FROM turns"):
        assert sorted(row[0] for row in database.read_now(sql)) == left
    write(database, agent_runs.drop_left(1))
    assert sorted(row[0] for row in database.read_now("SELECT session FROM agent_runs")) == left


def test_one_of_which_somebody_is_still_to_be_told_is_deleted_last(database: Database) -> None:
    keep(database, *(task(number, state=TaskState.COMPLETED) for number in range(1, 5)))
    owed = "INSERT INTO timers VALUES (?, 'push', ?, 0, 0, '', '', '', '')"
    write(database, *((owed, (f"t{number}", task_id(number))) for number in (1, 2)))
    write(database, *tasks.evict(3))
    assert database.read_now("SELECT id FROM tasks") == [(task_id(2),)]
    assert len(database.read_now("SELECT 1 FROM timers")) == 2


def test_lists_go_on_where_they_stopped_the_last_changed_first(database: Database) -> None:
    keep(database, *(task(number, changed_at=number // 2) for number in range(1, 8)))
    store, seen, after = TaskStore(database), list[str](), ""
    while True:
        page = at_once(store.page("key:me", TaskFilter(limit=3, after=after)))
        assert page.total == 7
        seen += [one.id for one in page.tasks]
        if not (after := page.after):
            break
    assert seen == [task_id(number) for number in (7, 6, 5, 4, 3, 2, 1)]
    assert at_once(store.page("key:other", TaskFilter())).total == 0


def test_lists_show_what_is_wanted(database: Database) -> None:
    keep(
        database,
        task(1, caller="key:other"),
        task(2, agent="other"),
        task(3, context="elsewhere"),
        task(4, state=TaskState.FAILED),
        task(5),
    )
    store = TaskStore(database)

    def found(caller: str | None, **wanted: Any) -> list[int]:
        page = at_once(store.page(caller, TaskFilter(**wanted)))
        assert page.total == len(page.tasks)
        return [one.created_at for one in page.tasks]

    assert found(None) == [5, 4, 3, 2, 1]
    assert found("key:me") == [5, 4, 3, 2]
    assert found("key:me", agent="other") == [2]
    assert found("key:me", context="elsewhere") == [3]
    assert found("key:me", state=TaskState.FAILED) == [4]
    assert found("key:me", since=4) == [5, 4]


@pytest.mark.parametrize(
    "cursor", ["x", "-", f"{3:016x}-task_1", f"{3:016x}-{task_id(1)} ", "9" * 16 + "-" + task_id(1)]
)
def test_a_cursor_that_is_none_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(Rejected) as refused:
        at_once(TaskStore(database).page(None, TaskFilter(after=cursor)))
    assert (refused.value.status, refused.value.rule) == (400, "query")


def test_a_page_of_long_ones_is_shorter(database: Database) -> None:
    long = message("x" * 600_000)
    keep(database, *(task(number, history=(long,)) for number in range(1, 6)))
    store, seen, after = TaskStore(database), list[int](), ""
    while True:
        page = at_once(store.page(None, TaskFilter(limit=4, after=after)))
        seen.append(len(page.tasks))
        if not (after := page.after):
            break
    assert seen == [2, 2, 1]


def test_what_is_stuck_is_known_by_its_last_change(database: Database) -> None:
    store = TaskStore(database)
    assert at_once(store.longest_unchanged()) is None
    keep(database, task(5), task(3), task(1, state=TaskState.FAILED), task(9))
    assert at_once(store.longest_unchanged()) == 3
    assert at_once(store.stuck(5)) == [task_id(5), task_id(3)]
    assert at_once(store.process(task_id(77))) == ""


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_thousand_tasks_cost_a_list_and_a_count_no_more_than_a_moment(database: Database) -> None:
    one = task(history=(message("hello"),))
    for number in range(1000):
        keep(database, replace(one, id=task_id(number), changed_at=number, created_at=number))
    page = at_once(TaskStore(database).page("key:me", TaskFilter(limit=100)))
    assert (len(page.tasks), page.total, page.tasks[0].changed_at) == (100, 1000, 999)
    plan = database.read_now(
        "EXPLAIN QUERY PLAN SELECT id FROM tasks WHERE final = 1 ORDER BY seq LIMIT 1"
    )
    assert "tasks_by_end" in plan[0][3]
