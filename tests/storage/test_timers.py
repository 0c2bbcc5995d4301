"""Timers as rows: the soonest first, each taken by one alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread

from openfang.audit.chain import digest
from openfang.core.errors import Conflict
from openfang.storage import timers
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.timers import NEVER, Besides, Timer, TimerStore
from openfang.storage.units import Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from openfang.storage.timers import Statement

pytestmark = pytest.mark.requirement("C5.3", "C5.6")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        made = Writer(path=database.path, node="n", digest=digest)
        with closing(made):
            yield made


@pytest.fixture
def store(writer: Writer) -> Iterator[TimerStore]:
    with closing(Database(writer.path)) as database:
        yield TimerStore(database)


def timer(name: str, due: int, kind: str = "a", subject: str = "s") -> Timer:
    return Timer(id=name, kind=kind, subject=subject, due=due, body={"name": name})


def write(writer: Writer, *statements: Statement) -> None:
    writer.write_blocking(Unit(statements=statements))


def names(found: Sequence[Timer]) -> list[str]:
    return [one.id for one in found]


def test_the_soonest_of_the_known_kinds_come_first(writer: Writer, store: TimerStore) -> None:
    planned = (timer("late", 9), timer("soon", 3), timer("other", 1, "b"), timer("never", NEVER))
    write(writer, *(timers.add(one) for one in planned))
    assert at_once(store.soonest("a", 2)) == [planned[1], planned[0]]
    assert names(at_once(store.soonest("a", 9))) == ["soon", "late", "never"]
    assert names(at_once(store.soonest("b", 9))) == ["other"]
    assert names(at_once(store.soonest("a", 9, Besides(ids=["late"])))) == ["soon", "never"]
    assert at_once(store.soonest("c", 9)) == []


def test_what_is_for_a_party_or_at_a_place_can_be_left_out(
    writer: Writer, store: TimerStore
) -> None:
    planned = [replace(timer(f"{p}{q}", 1), party=p, place=q) for p in "ab" for q in "xy"]
    write(writer, *(timers.add(one) for one in planned))
    assert at_once(store.soonest("a", 9)) == planned
    assert names(at_once(store.soonest("a", 9, Besides(parties=["a"])))) == ["bx", "by"]
    assert names(at_once(store.soonest("a", 9, Besides(places=["x"])))) == ["ay", "by"]
    assert names(at_once(store.soonest("a", 9, Besides(parties=["a"], places=["x"])))) == ["by"]


def test_a_second_one_of_the_same_id_is_refused_or_takes_its_place(
    writer: Writer, store: TimerStore
) -> None:
    write(writer, timers.add(timer("one", 1)))
    with pytest.raises(Conflict):
        write(writer, timers.add(timer("one", 2)))
    write(writer, timers.replace(timer("one", 3, "b", "t")))
    assert at_once(store.soonest("a", 9)) == []
    assert at_once(store.soonest("b", 9)) == [timer("one", 3, "b", "t")]


def test_a_timer_is_taken_by_one_alone(writer: Writer, store: TimerStore) -> None:
    seen = timer("one", 1)
    write(writer, timers.add(seen))
    write(writer, *timers.take(seen, 60, "p"))
    with pytest.raises(Conflict):
        write(writer, *timers.take(seen, 61, "p"))
    (taken,) = at_once(store.soonest("a", 9))
    assert (taken.due, taken.tries) == (60, 0)
    write(writer, timers.done(taken))
    with pytest.raises(Conflict):
        write(writer, *timers.take(taken, 62, "p"))
    assert at_once(store.soonest("a", 9)) == []


def test_who_took_it_changes_nothing_that_was_planned_since(
    writer: Writer, store: TimerStore
) -> None:
    seen = timer("one", 1)
    write(writer, timers.add(seen), timers.replace(timer("one", 5)))
    write(writer, timers.done(seen), timers.again(seen, 99, 1))
    (kept,) = at_once(store.soonest("a", 9))
    assert (kept.due, kept.tries) == (5, 0)
    write(writer, timers.again(kept, 7, 1))
    (again,) = at_once(store.soonest("a", 9))
    assert (again.due, again.tries) == (7, 1)


def test_what_a_process_that_is_gone_had_taken_is_due_at_once_and_nothing_else_is(
    writer: Writer, store: TimerStore
) -> None:
    names = ("taken", "put off", "planned anew", "of another", "free")
    for name in names:
        write(writer, timers.add(timer(name, 1)))
    for name in names[:4]:
        write(writer, *timers.take(timer(name, 1), 60, "other" if name == "of another" else "gone"))
    write(writer, timers.again(timer("put off", 60), 70, 1), timers.replace(timer(names[2], 80)))
    write(writer, timers.release("gone", 5))
    found = {one.id: one.due for one in at_once(store.soonest("a", 9))}
    assert found == {"free": 1, "taken": 5, "of another": 60, "put off": 70, "planned anew": 80}
    write(writer, timers.done(timer("taken", 60)))  # it was only slow
    assert len(at_once(store.soonest("a", 9))) == len(names)


async def test_of_many_that_take_it_side_by_side_one_gets_it(
    tmp_path: Path, writer: Writer, store: TimerStore
) -> None:
    seen = timer("one", 1)
    write(writer, timers.add(seen))
    other = await to_thread.run_sync(
        lambda: Writer(path=tmp_path / "openfang.db", node="m", digest=digest)
    )
    futures = [
        one.submit(Unit(statements=timers.take(seen, 60 + number, "p")))
        for number, one in enumerate((writer, other) * 10)
    ]
    await writer.drain()
    await other.drain()
    errors = [future.exception() for future in futures]
    await to_thread.run_sync(other.close)
    assert [isinstance(error, Conflict) for error in errors].count(False) == 1
    assert len(await store.soonest("a", 9)) == 1
