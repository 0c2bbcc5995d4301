"""The loop for what is to be done later, with a clock that a test moves."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.app.timers import (
    AT_ONCE,
    AT_ONE_PLACE,
    OF_ONE_PARTY,
    Again,
    Timers,
    wait_before,
)
from openfang.audit.chain import digest
from openfang.core.errors import SourceFailed
from openfang.storage import timers
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.timers import Timer, TimerStore
from openfang.storage.units import Unit
from openfang.storage.writer import Writer
from openfang.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5.3", "C5.6")
SECOND = 1_000_000_000


@dataclass
class Heard:
    """Does what a test says, and tells what was run and how often."""

    answers: list[Again | Exception | None] = field(
        default_factory=list["Again | Exception | None"]
    )
    seen: list[Timer] = field(default_factory=list[Timer])
    _more: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, timer: Timer) -> Again | None:
        self.seen.append(timer)
        self._more.set()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def times(self, count: int) -> None:
        with anyio.fail_after(30):
            while len(self.seen) < count:
                self._more = anyio.Event()
                await self._more.wait()


@dataclass(frozen=True)
class House:
    """A loop on a real database."""

    clock: ManualClock
    writer: Writer
    store: TimerStore

    def loop(self, seconds: float = 30) -> Timers:
        return Timers(
            store=self.store,
            writer=self.writer,
            clock=self.clock,
            chance=random.Random(1),  # noqa: S311 - a test
            seconds=seconds,
        )

    def timer(self, name: str = "one", wait: float = 0, kind: str = "a") -> Timer:
        due = self.clock.time_ns() + round(wait * SECOND)
        return Timer(id=name, kind=kind, subject=f"of {name}", due=due)

    def rows(self) -> list[Timer]:
        return [row for kind in "ab" for row in at_once(self.store.soonest(kind, 100))]

    async def empty(self) -> None:
        with anyio.fail_after(30):
            while self.rows():
                await anyio.lowlevel.checkpoint()

    async def planned(self, tries: int) -> Timer:
        """Wait until one row alone is left, tried so often."""
        with anyio.fail_after(30):
            while [row.tries for row in self.rows()] != [tries]:
                await anyio.lowlevel.checkpoint()
        return self.rows()[0]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        clock = ManualClock()
        writer = Writer(path=database.path, node="n", digest=digest, now=clock.time_ns)
        with closing(writer):
            yield House(clock, writer, TimerStore(database))


@asynccontextmanager
async def running(*loops: Timers) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        for loop in loops:
            group.start_soon(loop.run)
        yield
        group.cancel_scope.cancel()


async def test_what_is_due_is_done_once_and_what_is_not_waits(house: House) -> None:
    loop, heard = house.loop(), Heard()
    loop.register("a", heard)
    async with running(loop):
        await loop.plan(house.timer("later", 3600))
        await loop.plan(house.timer("now"))
        await heard.times(1)
        await house.planned(0)
        house.clock.advance(3599)
        loop.wake()
        await loop.plan(house.timer("between"))
        await heard.times(2)
        house.clock.advance(1)
        loop.wake()
        await heard.times(3)
        await house.empty()
    assert [timer.id for timer in heard.seen] == ["now", "between", "later"]


async def test_it_sleeps_until_the_next_is_due(house: House) -> None:
    loop, heard = house.loop(), Heard()
    loop.register("a", heard)
    await loop.plan(house.timer(wait=0.05))
    async with running(loop):
        await anyio.wait_all_tasks_blocked()
        house.clock.advance(0.05)
        await heard.times(1)


async def test_who_wants_to_be_asked_again_is_asked_at_that_time(house: House) -> None:
    loop, heard = house.loop(), Heard([Again(120), OSError("no"), Again(120)])
    loop.register("a", heard)
    begun, asked = house.clock.time_ns(), list[int]()
    async with running(loop):
        await loop.plan(house.timer())
        for times in (1, 2, 3):
            await heard.times(times)
            await anyio.wait_all_tasks_blocked()
            row = await house.planned(int(times == 2))
            asked.append(row.due - begun)
            house.clock.advance((row.due - house.clock.time_ns()) / SECOND)
            loop.wake()
        await heard.times(4)
        await house.empty()
    assert [timer.tries for timer in heard.seen] == [0, 0, 1, 0]
    first, failed, again = asked
    assert first == 120 * SECOND
    # What went well before does not count: a first failure is tried again within a second.
    assert first + SECOND / 2 <= failed <= first + SECOND
    assert again == failed + 120 * SECOND


async def test_one_that_raises_is_tried_again_and_later_each_time(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Again | Exception | None] = [SourceFailed("no"), ValueError("no"), OSError("no")]
    loop, heard, waits = house.loop(), Heard(errors), list[float]()
    loop.register("a", heard)
    async with running(loop):
        await loop.plan(house.timer())
        for tries in (1, 2, 3):
            row = await house.planned(tries)
            waits.append((row.due - house.clock.time_ns()) / SECOND)
            house.clock.advance(waits[-1])
            loop.wake()
        await house.empty()
    assert len(heard.seen) == 4
    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits)), waits
    assert caplog.text.count("a of of one failed; it is tried again") == 3


async def test_one_that_hangs_counts_as_failed_and_holds_up_nobody(house: House) -> None:
    loop, heard = house.loop(seconds=0.01), Heard()

    async def hang(_: Timer) -> Again | None:
        return await anyio.sleep_forever()

    loop.register("a", hang)
    loop.register("b", heard)
    async with running(loop):
        await loop.plan(house.timer("hangs"))
        await loop.plan(house.timer("other", kind="b"))
        await heard.times(1)
        await house.planned(1)


async def test_no_more_than_so_many_run_side_by_side_and_all_have_their_turn(house: House) -> None:
    loop, at_once, most, done = house.loop(), 0, 0, 0
    go = anyio.Event()

    async def work(_: Timer) -> Again | None:
        nonlocal at_once, most, done
        at_once += 1
        most = max(most, at_once)
        if at_once == AT_ONCE:
            go.set()
        await go.wait()
        at_once -= 1
        done += 1

    loop.register("a", work)
    count = 3 * AT_ONCE
    planned = tuple(timers.add(house.timer(f"{n}")) for n in range(count))
    await house.writer.write(Unit(statements=planned))
    async with running(loop):
        await house.empty()
    assert (most, done) == (AT_ONCE, count)


@pytest.mark.parametrize(
    ("crowd", "most"), [({"party": "p"}, OF_ONE_PARTY), ({"place": "p"}, AT_ONE_PLACE)]
)
async def test_a_slow_party_or_place_holds_up_nobody_else(
    house: House, crowd: dict[str, str], most: int
) -> None:
    loop, running_now, go = house.loop(), set[str](), anyio.Event()
    others = Heard()

    async def work(timer: Timer) -> Again | None:
        if not timer.id.startswith("slow"):
            return await others(timer)
        running_now.add(timer.id)
        await go.wait()
        running_now.remove(timer.id)
        return None

    loop.register("a", work)
    slow = [replace(house.timer(f"slow{n:03}"), **crowd) for n in range(3 * AT_ONCE)]
    house.clock.advance(1)
    late = [replace(house.timer(f"{n}"), party=f"{n}", place=f"{n}") for n in range(AT_ONCE)]
    planned = tuple(timers.add(one) for one in (*slow, *late))
    await house.writer.write(Unit(statements=planned))
    async with running(loop):
        await others.times(len(late))
        assert len(running_now) == most
        go.set()
        await house.empty()


async def test_a_kind_that_takes_all_its_turns_holds_up_no_other_kind(house: House) -> None:
    loop, heard = house.loop(), Heard()

    async def hang(_: Timer) -> Again | None:
        return await anyio.sleep_forever()

    loop.register("a", hang)
    loop.register("b", heard)
    planned = tuple(timers.add(house.timer(f"{n}")) for n in range(2 * AT_ONCE))
    await house.writer.write(Unit(statements=planned))
    async with running(loop):
        await loop.plan(house.timer("other", kind="b"))
        await heard.times(1)


async def test_what_nobody_knows_how_to_do_waits_for_who_does(house: House) -> None:
    loop, heard = house.loop(), Heard()
    loop.register("b", Heard())
    async with running(loop):
        await loop.plan(house.timer("unknown"))
        await loop.plan(house.timer("known", kind="b"))
        await house.planned(0)
        loop.register("a", heard)
        await house.empty()
    assert [timer.id for timer in heard.seen] == ["unknown"]


async def test_rows_survive_a_restart_also_in_the_middle(house: House) -> None:
    first, begun = house.loop(), anyio.Event()

    async def hang(_: Timer) -> Again | None:
        begun.set()
        return await anyio.sleep_forever()

    first.register("a", hang)
    await first.plan(house.timer())
    async with running(first):
        with anyio.fail_after(30):
            await begun.wait()
    second, heard = house.loop(), Heard()
    second.register("a", heard)
    async with running(second):
        second.wake()
        house.clock.advance(59)
        second.wake()
        await anyio.wait_all_tasks_blocked()
        assert heard.seen == []
        house.clock.advance(1)
        second.wake()
        await heard.times(1)
        await house.empty()


async def test_two_loops_on_one_home_never_do_the_same_at_once(house: House) -> None:
    loops, seen = [house.loop() for _ in range(3)], list[str]()

    async def note(timer: Timer) -> Again | None:
        await anyio.lowlevel.checkpoint()
        seen.append(timer.id)

    for loop in loops:
        loop.register("a", note)
    planned = tuple(timers.add(house.timer(f"{n:03}")) for n in range(100))
    await house.writer.write(Unit(statements=planned))
    async with running(*loops):
        await house.empty()
    assert sorted(seen) == [f"{n:03}" for n in range(100)]


async def test_one_that_runs_is_not_begun_again_when_the_clock_jumps(house: House) -> None:
    loop, go, runs = house.loop(), anyio.Event(), 0

    async def slow(_: Timer) -> Again | None:
        nonlocal runs
        runs += 1
        await go.wait()

    loop.register("a", slow)
    async with running(loop):
        await loop.plan(house.timer())
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            house.clock.advance(3600)
            loop.wake()
        await anyio.wait_all_tasks_blocked()
        go.set()
        await house.empty()
    assert runs == 1


async def test_a_database_that_cannot_be_written_is_tried_again(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    loop, heard = house.loop(), Heard()
    loop.register("a", heard)
    connection = cast("Database", house.store.database).connection
    connection.execute("ALTER TABLE timers RENAME TO away")
    async with running(loop):
        with anyio.fail_after(30):
            while "What is due waits" not in caplog.text:
                await anyio.lowlevel.checkpoint()
        connection.execute("ALTER TABLE away RENAME TO timers")
        await loop.plan(house.timer())
        await heard.times(1)


@given(st.integers(0, 10**6), st.integers())
def test_waits_double_from_a_second_to_ten_minutes(tries: int, seed: int) -> None:
    longest = min(600.0, 2.0**tries if tries < 20 else 600.0)
    assert longest / 2 <= wait_before(tries, random.Random(seed)) <= longest  # noqa: S311 - a test
