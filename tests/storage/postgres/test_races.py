"""Two nodes want what only one can have at the same moment: one gets it, and soon."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.stores import _NAMES  # pyright: ignore[reportPrivateUsage]
from openfang.audit.chain import digest
from openfang.core.calls import Role
from openfang.core.errors import Conflict
from openfang.core.keys import Key
from openfang.core.labels import Labels
from openfang.core.tasks import Push
from openfang.storage import agent_runs, board, keys, timers
from openfang.storage.agent_runs import Beginning
from openfang.storage.board import Change, Posting, Viewer
from openfang.storage.keys import KeyStore
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import PostgresStorage
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.pushes import MOST_PUSHES, PushStore
from openfang.storage.timers import Timer, TimerStore
from openfang.storage.units import Line, Unit, Written

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    Statements = tuple[tuple[str, Sequence[Any]], ...]

pytestmark = pytest.mark.requirement("C13.3")
_SESSION = (
    "INSERT INTO sessions "
    "(id, agent, caller, name, title, messages, labels, created_at, updated_at) "
    "VALUES (?, 'a', 'c', ?, '', 0, 0, 0, 0)"
)
ROUNDS = 15
MOST_TRIES = 6
"""A unit of a race is at most so often sent, with all its statements."""


class Two:
    """The writers of two nodes, and what is read of what they write."""

    def __init__(self, writers: list[PostgresWriter], storage: PostgresStorage) -> None:
        self.writers, self.storage = writers, storage

    async def write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        await self.writers[0].write(Unit(statements=statements))

    async def race(self, *sides: Statements) -> list[bool]:
        """Write both at once, each with a record; tell who succeeded. Nobody tries for long."""
        line = Line("task_changed", "info", "", "", "{}", "{}")
        before = [writer.statements for writer in self.writers]
        outcomes = await asyncio.gather(
            *(
                writer.write(Unit((line,), side))
                for writer, side in zip(self.writers, sides, strict=True)
            ),
            return_exceptions=True,
        )
        for writer, side, count in zip(self.writers, sides, before, strict=True):
            assert writer.statements - count <= MOST_TRIES * (len(side) + 5)
        for one in outcomes:
            assert isinstance(one, Written | Conflict), one
        return [not isinstance(one, Conflict) for one in outcomes]


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[Two]:
    storage = PostgresStorage(Address(url))
    writers = [PostgresWriter(address=Address(url), node=node, digest=digest) for node in "ab"]
    for writer in writers:
        await writer.open()
    try:
        yield Two(writers, storage)
    finally:
        for writer in writers:
            await writer.drain()
            await writer.aclose()
        await storage.aclose()


@pytest.fixture
async def two(postgres: str) -> AsyncIterator[Two]:
    async with _opened(postgres) as opened:
        yield opened


async def test_a_timer_is_taken_by_one_node(two: Two) -> None:
    for number in range(ROUNDS):
        timer = Timer(id=f"t{number}", kind="k", subject="", due=1)
        await two.write(timers.add(timer))
        won = await two.race(timers.take(timer, 1000, "a"), timers.take(timer, 2000, "b"))
        (kept,) = await TimerStore(two.storage).soonest("k", 1)
        assert sorted(won) == [False, True]
        assert kept.due == (1000 if won[0] else 2000)
        await two.write(timers.done(kept))


async def test_a_task_of_the_board_is_claimed_by_one_node(two: Two) -> None:
    for number in range(ROUNDS):
        for which in range(2):
            posting = Posting(
                id=f"{number}-{which}",
                space="s",
                title="t",
                description="",
                posted_by="p",
                assigned_to="",
                posted_at=which,
            )
            await two.write(board.post(posting))
        sides = [
            (
                board.claim_next(
                    Change(viewer=Viewer(id=who, space="s"), call=f"{who}{number}", now=1), 9
                ),
            )
            for who in ("a", "b")
        ]
        assert await two.race(*sides) == [True, True]
        rows = await two.storage.read("SELECT owner FROM board WHERE id LIKE ?", (f"{number}-%",))
        assert sorted(rows) == [("a",), ("b",)]  # each has one, and none has both


async def test_of_two_last_administrators_one_stays(two: Two) -> None:
    store = KeyStore(two.storage, bytes(32), lambda: 1)  # pyright: ignore[reportArgumentType]
    for number in range(ROUNDS):
        names = [f"{who}{number}" for who in "ab"]
        for name in names:
            await two.write(store.insert_key(Key(id=name, name=name, role=Role.ADMIN), name))
        won = await two.race(*((keys.revoke(name, 5),) for name in names))
        assert sorted(won) == [False, True]
        await two.write(("DELETE FROM keys", ()))


async def test_a_conversation_has_one_run_at_a_time(two: Two) -> None:
    for number in range(ROUNDS):
        session = f"s{number}"
        await two.write((_SESSION, (session, session)))
        sides = [agent_runs.begin(_beginning(f"{who}{number}", session, who)) for who in ("a", "b")]
        assert sorted(await two.race(*sides)) == [False, True]
        rows = await two.storage.read("SELECT id FROM agent_runs WHERE session = ?", (session,))
        assert len(rows) == 1


def _beginning(run: str, session: str, process: str) -> Beginning:
    return Beginning(run=run, session=session, labels=Labels.NONE, now=1, process=process)


async def test_no_more_are_told_of_a_task_than_may_be(two: Two) -> None:
    store = PushStore(two.storage, bytes(32))
    for number in range(ROUNDS):
        task = f"t{number}"
        for other in range(MOST_PUSHES - 1):
            await two.write(*store.put(_push(task, str(other)), 1))
        won = await two.race(*(store.put(_push(task, who), 1) for who in ("a", "b")))
        assert sorted(won) == [False, True]
        assert len(await store.of(task)) == MOST_PUSHES


def _push(task: str, name: str) -> Push:
    return Push(id=name, task=task, url="https://a.test/")


async def test_names_that_two_nodes_want_go_to_one_of_them(two: Two) -> None:
    for number in range(ROUNDS):
        name = f"n{number}"
        sides = [((_NAMES, (f"{who}{number}", name, name, f"{who}{number}", "")),) for who in "ab"]
        assert await two.race(*sides) == [True, True]  # who lost finds it out by looking
        rows = await two.storage.read("SELECT tool FROM names WHERE wire_name = ?", (name,))
        assert len(rows) == 1
