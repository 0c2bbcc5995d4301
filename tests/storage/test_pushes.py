"""Who is told of tasks, as rows: sealed, each bound to its place, told in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storage.both import BOTH, kept

from openfang.core.errors import HomeError
from openfang.core.tasks import Push
from openfang.storage.database import Database, at_once
from openfang.storage.pushes import KIND, PushStore, Told, delete, notify, told
from openfang.storage.timers import NEVER, TimerStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.requirement("C5.3", "C18.3")
PUSH = Push(
    id="p",
    task="task_1",
    url="https://example.com/?key=hidden",
    token="t0ken",
    scheme="Bearer",
    credentials="cr3d",
    dialect="0.3",
)


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def write(database: Database, *statements: tuple[str, Sequence[Any]]) -> None:
    for sql, parameters in statements:
        database.connection.execute(sql, parameters)


def test_what_is_kept_comes_back_and_cannot_be_read_without_the_key(database: Database) -> None:
    store = PushStore(database, bytes(32))
    write(database, *store.put(PUSH, 1), *store.put(replace(PUSH, id="q"), 2))
    assert at_once(store.get("task_1", "p")) == PUSH
    assert at_once(store.of("task_1")) == [PUSH, replace(PUSH, id="q")]
    assert at_once(store.get("task_1", "r")) is at_once(store.get("task_2", "p")) is None
    stored = database.read_now("SELECT body FROM pushes")
    assert not any(word in body for (body,) in stored for word in (b"hidden", b"t0ken", b"cr3d"))
    with pytest.raises(HomeError):
        at_once(PushStore(database, bytes(31) + b"\x01").get("task_1", "p"))


@pytest.mark.parametrize(
    "change", ["id = 'q'", "task = 'task_2'", "body = x'00'", "body = body || x'00'"]
)
def test_a_row_that_was_changed_or_moved_is_not_believed(database: Database, change: str) -> None:
    store = PushStore(database, bytes(32))
    write(database, *store.put(PUSH, 1))
    write(database, (f"UPDATE pushes SET {change}", ()))  # noqa: S608 - a test
    ((task, name),) = database.read_now("SELECT task, id FROM pushes")
    with pytest.raises(HomeError):
        at_once(store.get(task, name))


def to(task: str, push: str) -> Told:
    return Told(task=task, push=push)


def test_a_place_is_a_host_that_nobody_reads(database: Database) -> None:
    store, other = PushStore(database, bytes(32)), PushStore(database, bytes(31) + b"\x01")
    place = store.place(PUSH)
    assert store.place(replace(PUSH, url="http://Example.com:81/elsewhere")) == place
    assert store.place(replace(PUSH, url="https://example.org/?key=hidden")) != place
    assert other.place(PUSH) != place


def due(database: Database) -> list[tuple[str, int]]:
    rows = at_once(TimerStore(database).soonest(KIND, 100))
    return [(row.body["push"], row.body["n"]) for row in rows if row.due != NEVER]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.text(max_size=3) | st.sampled_from(["a", "a/", "a/0000000001", "~"])))
def test_each_receiver_is_told_one_after_the_other(database: Database, names: set[str]) -> None:
    write(database, ("DELETE FROM timers", ()))
    for n in (2, 9, 10, 11):
        write(database, *(notify(to("task_1", name), n, n, {}) for name in names))
    write(database, notify(to("task_2", "a"), 1, 1, {}))
    for n in (2, 9, 10, 11):
        assert sorted(due(database)) == sorted([("a", 1), *((name, n) for name in names)])
        rows = [
            row
            for row in at_once(TimerStore(database).soonest(KIND, 100))
            if row.subject == "task_1"
        ]
        write(database, *(one for row in rows if row.body["n"] == n for one in told(row, 20)))
    assert due(database) == [("a", 1)]


def test_nothing_is_left_to_tell_to_who_was_deleted(database: Database) -> None:
    store = PushStore(database, bytes(32))
    write(database, *store.put(PUSH, 1), notify(to("task_1", "p"), 2, 1, {}))
    write(database, notify(to("task_1", "p"), 3, 1, {}), notify(to("task_1", "q"), 3, 1, {}))
    write(database, *delete("task_1", "p"))
    assert at_once(store.of("task_1")) == []
    assert [row.body for row in at_once(TimerStore(database).soonest(KIND, 9))] == [
        {"push": "q", "n": 3}
    ]
    write(database, *delete("task_1", "p"))
