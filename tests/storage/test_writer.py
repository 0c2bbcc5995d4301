from __future__ import annotations

import asyncio
import json
import multiprocessing
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread

from openfang.audit.chain import Row, Verifier, digest
from openfang.core.errors import Conflict, HomeError
from openfang.core.labels import Labels
from openfang.storage.database import at_once, open_home
from openfang.storage.log import all_rows
from openfang.storage.state import Settings, put_blob, put_setting
from openfang.storage.units import Written
from openfang.storage.writer import (
    BYTES_PER_CHECKPOINT,
    INLINE_BYTES,
    INLINE_UNITS,
    Line,
    Unit,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "openfang.db"
    open_home(file).close()
    return file


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    made = Writer(path=path, node="n", digest=digest)
    yield made
    made.close()


def line(text: str) -> Line:
    return Line("policy_decision", "info", "call", "", f'{{"text":"{text}"}}', "{}")


async def stored(path: Path) -> list[str]:
    return [row[7] for row in await to_thread.run_sync(all_rows, path)]


def check_chain(path: Path) -> bool:
    verifier = Verifier(())
    for row in all_rows(path):
        verifier.read(Row(row[0], row[1], row[2], row[3:9], row[9]))
    return not verifier.finish()


async def intact(path: Path) -> bool:
    return await to_thread.run_sync(check_chain, path)


async def test_a_lone_caller_is_committed_at_once_and_numbered(writer: Writer, path: Path) -> None:
    written = writer.commit(Unit((line("a"), line("b"))))
    assert written == (range(1, 3), writer.head.hash)
    assert list((await writer.write(Unit((line("c"),)))).numbers) == [3]
    assert await stored(path) == ['{"text":"a"}', '{"text":"b"}', '{"text":"c"}']
    assert await intact(path)


async def test_callers_side_by_side_share_one_commit_and_keep_their_order(
    writer: Writer, path: Path
) -> None:
    commits: list[int] = []
    writer.on_commit = lambda head: commits.append(head.seq)
    futures = [writer.submit(Unit((line(str(i)),))) for i in range(20)]
    numbers = [list((await future).numbers) for future in futures]
    assert numbers == [[i] for i in range(1, 21)]
    assert commits == [20]
    assert await intact(path)


async def test_a_large_group_goes_through_the_thread(writer: Writer, path: Path) -> None:
    count = INLINE_UNITS * 3
    futures = [writer.submit(Unit((line(str(i)),))) for i in range(count)]
    assert not writer.idle
    with anyio.fail_after(20):
        for future in futures:
            await future
    assert len(await stored(path)) == count
    assert await intact(path)


async def test_a_unit_that_breaks_a_rule_fails_alone(writer: Writer, path: Path) -> None:
    insert = "INSERT INTO projects VALUES (?, 0)"
    good = writer.submit(Unit((line("good"),), ((insert, ("a",)),)))
    bad = writer.submit(Unit((line("bad"),), ((insert, ("a",)),)))
    also = writer.submit(Unit((line("also"),), ((insert, ("b",)),)))
    assert list((await good).numbers) == [1]
    with pytest.raises(Conflict):
        await bad
    assert list((await also).numbers) == [2]
    assert await stored(path) == ['{"text":"good"}', '{"text":"also"}']
    assert await intact(path)


async def test_a_statement_that_is_wrong_fails_alone(writer: Writer, path: Path) -> None:
    bad = writer.submit(Unit((line("bad"),), (("INSERT INTO nowhere VALUES (1)", ()),)))
    good = writer.submit(Unit((line("good"),)))
    with pytest.raises(HomeError):
        await bad
    assert list((await good).numbers) == [1]
    assert await stored(path) == ['{"text":"good"}']


async def test_a_unit_is_written_although_its_caller_went_away(writer: Writer, path: Path) -> None:
    with anyio.CancelScope() as scope:
        future = writer.submit(Unit((line("kept"),)))
        scope.cancel()
        await future
    await writer.drain()
    assert await stored(path) == ['{"text":"kept"}']


async def test_while_another_process_holds_the_lock_the_loop_stays_free(
    writer: Writer, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert writer.commit(Unit((line("x"),))) is None
        future = writer.submit(Unit((line("x"),)))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert not future.done()
        other.execute("COMMIT")
        with anyio.fail_after(20):
            assert list((await future).numbers) == [1]
    assert await intact(path)


async def test_what_another_process_wrote_is_continued_not_forked(path: Path) -> None:
    first = Writer(path=path, node="n", digest=digest)
    second = Writer(path=path, node="n", digest=digest)
    try:
        for turn in range(5):
            await first.write(Unit((line(f"first {turn}"),)))
            await second.write(Unit((line(f"second {turn}"),)))
    finally:
        first.close()
        second.close()
    assert len(await stored(path)) == 10
    assert await intact(path)


def _write_many(path: Path, count: int) -> None:
    async def write() -> None:
        writer = Writer(path=path, node="n", digest=digest)
        try:
            for number in range(count):
                await writer.write(Unit((line(str(number)),)))
            await writer.drain()
        finally:
            writer.close()

    anyio.run(write)


def test_ten_processes_extend_one_chain(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_many, args=(path, 50)) for _ in range(10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 10
    assert [row[1] for row in all_rows(path)] == list(range(1, 501))
    assert check_chain(path)


async def test_a_durable_writer_commits_in_the_thread(path: Path) -> None:
    writer = Writer(path=path, node="n", digest=digest, durable=True)
    try:
        assert not writer.idle
        with anyio.fail_after(20):
            assert list((await writer.write(Unit((line("a"),)))).numbers) == [1]
        slow = writer._slow
        assert slow is not None
        assert slow.read_now("PRAGMA synchronous") == [(2,)]
    finally:
        writer.close()


async def test_a_setting_is_kept(writer: Writer) -> None:
    await writer.write(Unit(statements=(put_setting("node", "x"),)))
    database = writer._database
    assert at_once(Settings(database).get("node")) == "x"
    assert at_once(Settings(database).get("other")) is None


async def test_a_unit_that_stores_much_goes_through_the_thread(writer: Writer, path: Path) -> None:
    heavy = put_blob("result_1", "me", bytes(INLINE_BYTES + 1), Labels.NONE, 1)
    light = put_blob("result_2", "me", bytes(INLINE_BYTES // 2), Labels.NONE, 1)
    assert writer.commit(Unit((line("heavy"),), (heavy,))) is None
    with anyio.fail_after(20):
        first = writer.submit(Unit((line("heavy"),), (heavy,)))
        await anyio.lowlevel.checkpoint()
        assert not writer.idle
        assert (await first).numbers == range(1, 2)
        await writer.drain()
    assert writer.commit(Unit((line("light"),), (light,))) == (range(2, 3), writer.head.hash)
    assert await intact(path)


async def test_what_waits_beside_the_database_does_not_grow_with_large_units(
    writer: Writer, path: Path
) -> None:
    large = bytes(BYTES_PER_CHECKPOINT // 4)
    for number in range(12):
        await writer.write(Unit(statements=(put_blob(f"r{number}", "me", large, Labels.NONE, 1),)))
    await writer.drain()
    beside = path.with_name(f"{path.name}-wal")
    assert beside.stat().st_size < 2 * BYTES_PER_CHECKPOINT


async def test_a_unit_that_fails_takes_nothing_of_its_neighbours_along(
    writer: Writer, path: Path
) -> None:
    broken = ("INSERT INTO settings (name, value) VALUES ('x', NULL)", ())
    units = [
        Unit((line("first"),), (put_setting("a", "1"),)),
        Unit((line("broken"),), (broken,)),
        Unit((line("last"),), (put_setting("b", "2"),)),
    ]
    outcomes = await asyncio.gather(*map(writer.submit, units), return_exceptions=True)
    assert [type(one) for one in outcomes] == [Written, Conflict, Written]
    assert [await Settings(writer._database).get(name) for name in "ab"] == ["1", "2"]
    assert [json.loads(text)["text"] for text in await stored(path)] == ["first", "last"]
    assert await intact(path)
