"""What one node tells behind its commits, and the others hear, on a real Postgres server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.postgres import run

from openfang.audit.chain import digest
from openfang.core.errors import Conflict
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import PostgresStorage
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.units import Line, Notice, Unit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C13.3")
_PROJECT = "INSERT INTO projects VALUES (?, 0)"
_LISTENS = (
    "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' "
    "OR datname = current_database() AND query = 'SELECT 1'"
)
_CUT = f"SELECT pg_terminate_backend(pid) {_LISTENS}"


class Heard(list[str]):
    """All that was heard under a topic, and somebody who waits for it."""

    def __init__(self, storage: PostgresStorage, topic: str = "tasks") -> None:
        super().__init__()
        self._news = asyncio.Event()
        storage.on(topic, self._hear)

    def _hear(self, subject: str) -> None:
        self.append(subject)
        self._news.set()

    async def until(self, subject: str, *, behind: int = 0) -> None:
        with anyio.fail_after(30):
            while subject not in self[behind:]:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def storage(url: str) -> AsyncGenerator[PostgresStorage]:
    opened = PostgresStorage(Address(url))
    try:
        yield opened
    finally:
        await opened.aclose()


@asynccontextmanager
async def writing(url: str, node: str = "n") -> AsyncGenerator[PostgresWriter]:
    writer = PostgresWriter(address=Address(url), node=node, digest=digest)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.drain()
        await writer.aclose()


def line() -> Line:
    return Line("policy_decision", "info", "call", "", "{}", "{}")


async def test_all_nodes_hear_what_one_tells_behind_its_commit(postgres: str) -> None:
    async with storage(postgres) as one, storage(postgres) as two, writing(postgres) as writer:
        heard = Heard(one), Heard(two)
        for node in heard:
            await node.until("")  # it listens
        seen = list[object]()
        two.on("tasks", seen.append)
        unit = Unit((line(),), ((_PROJECT, ("p",)),), (Notice("tasks", "t 1"), Notice("keys")))
        await writer.write(unit)
        for node in heard:
            await node.until("t 1")
            assert node == ["", "t 1"]
        assert (await one.read("SELECT count(*) FROM projects")) == [(1,)]
        assert seen == ["", "t 1"]  # who comes later is told to look, and hears the rest


async def test_a_group_tells_each_word_once_and_by_one_statement(postgres: str) -> None:
    async with storage(postgres) as one, writing(postgres) as writer:
        heard = Heard(one)
        await heard.until("")
        units = [Unit((line(),), notices=(Notice("tasks", f"{i % 3}"),)) for i in range(30)]
        await asyncio.gather(*map(writer.submit, units), writer.submit(Unit((line(),))))
        await heard.until("2")
        assert (heard, writer.statements) == (["", "0", "1", "2"], 2)


async def test_a_group_without_notices_sends_no_statement_more(postgres: str) -> None:
    async with writing(postgres) as writer:
        await writer.write(Unit((line(),)))
        assert writer.statements == 1


async def test_what_failed_is_not_told(postgres: str) -> None:
    async with storage(postgres) as one, writing(postgres) as writer:
        heard = Heard(one)
        await heard.until("")
        twice = Unit(statements=((_PROJECT, ("p",)),), notices=(Notice("tasks", "again"),))
        await writer.write(Unit(statements=((_PROJECT, ("p",)),)))
        with pytest.raises(Conflict):
            await writer.write(twice)
        await writer.write(Unit(notices=(Notice("tasks", "last"),)))
        await heard.until("last")
        assert heard == ["", "last"]


@pytest.mark.parametrize("subject", ["x" * 9_000, "a\0b", "a\nb"])
async def test_a_subject_that_no_word_can_carry_means_all_of_its_topic(
    postgres: str, subject: str
) -> None:
    async with storage(postgres) as one, writing(postgres) as writer:
        heard = Heard(one)
        await heard.until("")
        await writer.write(Unit(notices=(Notice("tasks", subject), Notice("tasks", "ok"))))
        await heard.until("ok")
        assert heard == ["", "", "ok"]


async def test_a_connection_that_breaks_is_opened_again_and_then_all_may_have_changed(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with storage(postgres) as one, writing(postgres) as writer:
        heard, keys = Heard(one), Heard(one, "keys")
        await heard.until("")
        (cut,) = await run(postgres, _CUT)
        assert len(cut) == 1
        await heard.until("", behind=1)
        await keys.until("", behind=1)
        await writer.write(Unit(notices=(Notice("tasks", "still"),)))
        await heard.until("still")
    (left,) = await run(postgres, f"SELECT count(*) {_LISTENS}")
    assert left[0][0] == 0  # one that is closed listens no more
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_one_who_cannot_take_a_word_up_keeps_nobody_from_hearing(postgres: str) -> None:
    async with storage(postgres) as one, writing(postgres) as writer:
        one.on("tasks", lambda subject: (_ for _ in ()).throw(ValueError(subject)).__next__())
        heard = Heard(one)
        await heard.until("")
        await writer.write(Unit(notices=(Notice("tasks", "t"),)))
        await heard.until("t")


async def test_what_could_not_be_told_is_kept_all_the_same(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with writing(postgres) as writer:
        writer.on_commit = lambda _: writer._connection.terminate()  # pyright: ignore[reportPrivateUsage]
        await writer.write(Unit((line(),), notices=(Notice("tasks", "t"),)))
        await writer.drain()
        writer.on_commit = None
        assert (await writer.write(Unit((line(),)))).numbers == range(2, 3)
    assert len(await run(postgres, "SELECT 1 FROM audit")) == 1
