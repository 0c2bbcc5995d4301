"""The writer on a real Postgres server: the same meaning as on SQLite, over a wire that breaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.postgres import run

from openfang.audit.broker import Broker
from openfang.audit.chain import Row, Verifier, digest
from openfang.core.errors import AuditUnavailable, Conflict, HomeError
from openfang.storage.jobs import Job
from openfang.storage.ports import Unsure
from openfang.storage.postgres import writer as module
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.attempt import Attempt
from openfang.storage.postgres.database import PostgresStorage
from openfang.storage.postgres.doubts import doubt
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.fence import introduce
from openfang.storage.postgres.group import FEW, Group
from openfang.storage.postgres.roll import Beats
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.processes import Process
from openfang.storage.state import put_setting
from openfang.storage.units import Fate, Line, Unit, Written

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.storage.postgres.doubts import Doubt

pytestmark = [pytest.mark.requirement("C13.1"), pytest.mark.requirement("C13.3")]
_LOG = "SELECT node, seq, at, event, level, call_id, task_id, payload, context, hash FROM audit"
_PROJECT = "INSERT INTO projects VALUES (?, 0)"
_BACKENDS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def line(text: str, call: str = "call") -> Line:
    return Line("policy_decision", "info", call, "", f'{{"text":"{text}"}}', "{}")


@asynccontextmanager
async def writing(url: str, node: str = "n") -> AsyncGenerator[PostgresWriter]:
    writer = PostgresWriter(address=Address(url), node=node, digest=digest)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.drain()
        await writer.aclose()


async def stored(url: str, node: str = "n") -> list[str]:
    """What is in the log of a node, whose chain has to be whole."""
    (rows,) = await run(url, f"{_LOG} WHERE node = '{node}' ORDER BY seq")
    verifier = Verifier(())
    for row in rows:
        verifier.read(Row(row[0], row[1], row[2], tuple(row)[3:9], row[9]))
    assert not verifier.finish()
    return [row[7][9:-2] for row in rows]


async def test_units_are_numbered_and_chained_and_a_lone_one_is_one_statement(
    postgres: str,
) -> None:
    async with writing(postgres) as writer:
        assert await writer.write(Unit((line("a"), line("b")))) == (range(1, 3), writer.head.hash)
        assert writer.statements == 1
        assert (await writer.write(Unit((line("c"),)))).numbers == range(3, 4)
    assert await stored(postgres) == ["a", "b", "c"]


async def test_those_who_come_side_by_side_share_one_statement_and_keep_their_order(
    postgres: str,
) -> None:
    commits: list[int] = []
    async with writing(postgres) as writer:
        writer.on_commit = lambda head: commits.append(head.seq)
        for count in (FEW, 200):
            await asyncio.gather(*(writer.submit(Unit((line(str(i)),))) for i in range(count)))
        assert (commits, writer.statements) == ([FEW, FEW + 200], 2)
    assert len(await stored(postgres)) == FEW + 200


async def test_a_unit_that_cannot_be_applied_fails_alone(postgres: str) -> None:
    units = [
        Unit((line("first"),), ((_PROJECT, ("a",)), put_setting("a", "1"))),
        Unit((line("again"),), ((_PROJECT, ("a",)),)),
        Unit((line("null"),), (("INSERT INTO settings (name, value) VALUES ('x', NULL)", ()),)),
        Unit((line("wrong"),), (("INSERT INTO nowhere VALUES (1)", ()),)),
        Unit((line("last"),), (put_setting("b", "2"),)),
    ]
    async with writing(postgres) as writer:
        outcomes = await asyncio.gather(*map(writer.submit, units), return_exceptions=True)
        assert [type(one) for one in outcomes] == [Written, Conflict, Conflict, HomeError, Written]
    assert await stored(postgres) == ["first", "last"]
    (settings,) = await run(postgres, "SELECT name, value FROM settings ORDER BY name")
    assert [(row[0], row[1]) for row in settings] == [("a", "1"), ("b", "2")]


async def test_what_another_process_of_the_node_wrote_is_continued_not_forked(
    postgres: str,
) -> None:
    async with writing(postgres) as first, writing(postgres) as second:
        for turn in range(3):
            await first.write(Unit((line(f"first {turn}"),)))
            await second.write(Unit((line(f"second {turn}"),), (put_setting("x", str(turn)),)))
        await asyncio.gather(
            *(writer.write(Unit((line("both"),))) for writer in (first, second) for _ in range(20))
        )
    assert len(await stored(postgres)) == 46


async def test_nodes_have_chains_of_their_own_and_none_waits_for_another(postgres: str) -> None:
    async with writing(postgres, "a") as one, writing(postgres, "b") as other:
        connection = one._connection
        await connection.execute("BEGIN")
        await connection.execute("INSERT INTO audit VALUES ('a', 1, 0, '', '', '', '', '', '', '')")
        with anyio.fail_after(30):
            assert (await other.write(Unit((line("b"),)))).numbers == range(1, 2)
        await connection.execute("ROLLBACK")
        await one.write(Unit((line("a"),)))
    assert (await stored(postgres, "a"), await stored(postgres, "b")) == (["a"], ["b"])


async def test_two_that_guard_by_what_they_read_do_not_both_pass(postgres: str) -> None:
    guarded = (
        "INSERT INTO projects SELECT ?, (SELECT COUNT(*) FROM projects) "
        "WHERE NOT EXISTS (SELECT 1 FROM projects WHERE name LIKE 'p%')"
    )
    async with writing(postgres, "a") as one, writing(postgres, "b") as other:
        for turn in range(5):
            units = [Unit((line("x"),), ((guarded, (f"p{turn}{name}",)),)) for name in "ab"]
            await asyncio.gather(one.write(units[0]), other.write(units[1]))
            (found,) = await run(postgres, "DELETE FROM projects RETURNING name")
            assert len(found) == 1


async def test_a_connection_that_was_ended_costs_nobody_anything(postgres: str) -> None:
    storage = PostgresStorage(Address(postgres))
    async with writing(postgres) as writer:
        await writer.write(Unit((line("before"),), (put_setting("a", "1"),)))
        assert await storage.read("SELECT value FROM settings WHERE name = ?", ("a",)) == [("1",)]
        await run(postgres, f"SELECT pg_terminate_backend(pid) {_BACKENDS}")
        with anyio.fail_after(30):
            assert await storage.read("SELECT value FROM settings") == [("1",)]
            await writer.write(Unit((line("after"),)))
    await storage.aclose()
    assert await stored(postgres) == ["before", "after"]


class Wire:
    """Stands between a writer and its server, and breaks when it is told to."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.cut = b""
        self.deliver = True
        self._tasks: set[asyncio.Task[None]] = set()

    async def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self.server)
        answers = asyncio.create_task(self._answer(there, writer))
        asked = asyncio.create_task(self._ask(reader, back, answers))
        self._tasks |= {answers, asked}
        await asyncio.wait({asked})
        await asyncio.wait({answers}, timeout=1)
        back.close()
        writer.close()

    async def _ask(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, answers: asyncio.Task[None]
    ) -> None:
        while data := await reader.read(65_536):
            if self.cut and self.cut in data:
                self.cut = b""
                answers.cancel()
                if self.deliver:
                    back.write(data)
                    await back.drain()
                return
            back.write(data)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def wired(url: str, folder: Path) -> AsyncGenerator[tuple[Wire, str]]:
    start, _, place = url.partition("?host=")
    wire = Wire(f"{place}/.s.PGSQL.5432")
    server = await asyncio.start_unix_server(wire.came, str(folder / ".s.PGSQL.5432"))
    try:
        yield wire, f"{start}?host={folder}"
    finally:
        server.close()
        await wire.end()


@pytest.mark.parametrize("delivered", [True, False])
@pytest.mark.parametrize("changes", [(), (("INSERT INTO projects VALUES (?, 0)", ("p",)),)])
async def test_what_broke_in_the_commit_is_written_once(
    postgres: str, tmp_path: Path, *, delivered: bool, changes: Any
) -> None:
    async with wired(postgres, tmp_path) as (wire, url), writing(url) as writer:
        await writer.write(Unit((line("first"),), (put_setting("a", "1"),)))
        wire.cut, wire.deliver = (b"COMMIT" if changes else b"second"), delivered
        with anyio.fail_after(30):
            written = await writer.write(Unit((line("second"),), changes))
        assert written.numbers == range(2, 3)
        assert wire.cut == b"", "it broke there"
        await writer.write(Unit((line("third"),)))
    assert await stored(postgres) == ["first", "second", "third"]
    (projects,) = await run(postgres, "SELECT name FROM projects")
    assert len(projects) == len(changes)


@pytest.mark.parametrize("delivered", [True, False])
async def test_what_would_be_written_again_is_so_only_if_it_was_lost(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, delivered: bool
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    lost, kept = list[Unit](), list[Unit]()
    async with wired(postgres, tmp_path) as (wire, url), writing(url) as writer:
        await writer.write(Unit((line("first"),)))
        wire.cut, wire.deliver = b"second", delivered
        with pytest.raises(Unsure) as caught, anyio.fail_after(30):
            await writer.submit(Unit((line("second"),)), Fate(lost.append, kept.append))
        assert "not known" in caught.value.message
        assert lost == kept == []  # nobody knows yet
        with anyio.fail_after(30):
            while writer._doubts:
                await writer.write(Unit(statements=(put_setting("a", "1"),)))
        assert (len(lost), len(kept)) == ((0, 1) if delivered else (1, 0))
        for unit in lost:
            await writer.write(unit)
        await writer.write(Unit((line("third"),)))
    assert await stored(postgres) == ["first", "second", "third"]


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_call_whose_beginning_was_in_doubt_is_ended_if_it_is_there(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, delivered: bool
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    async with wired(postgres, tmp_path) as (wire, url), writing(url) as writer:
        broker = Broker(writer=writer, process=Process(tmp_path / "p", "n"), redact=str)
        await broker.started("a", [line("first", "a")])
        await broker.finished("a", line("ends", "a"))
        wire.cut, wire.deliver = b"second", delivered
        with pytest.raises(AuditUnavailable, match="not known"), anyio.fail_after(30):
            await broker.started("b", [line("second", "b")])
        assert (broker.unfinished, broker.low_water) == (True, 3)
        with anyio.fail_after(30):  # nobody else writes: it is found out all the same
            while broker.unfinished:  # noqa: ASYNC110 - it is looked at now and then
                await anyio.sleep(0.01)
        broker.process.release()
    (rows,) = await run(postgres, "SELECT event, payload FROM audit WHERE call_id = 'b'")
    assert [row[0] for row in rows] == [
        *(["policy_decision", "tool_invocation_end"] if delivered else [])
    ]
    assert all("not made" in row[1] for row in rows[1:])


async def test_a_call_whose_caller_was_gone_before_its_beginning_was_in_doubt_is_ended_once(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    async with wired(postgres, tmp_path) as (wire, url), writing(url) as writer:
        broker = Broker(writer=writer, process=Process(tmp_path / "p", "n"), redact=str)
        await broker.started("a", [line("first", "a")])
        await broker.finished("a", line("ends", "a"))
        wire.cut, wire.deliver = b"second", True
        with anyio.fail_after(30):
            async with anyio.create_task_group() as caller:
                caller.start_soon(broker.started, "b", [line("second", "b")])
                await checkpoint()
                caller.cancel_scope.cancel()
            assert broker.open == {"b"}
            await broker.finished("b", line("cancelled", "b"))
            await writer.drain()
        assert (broker.unfinished, writer._doubts) == (False, [])
        broker.process.release()
    assert await stored(postgres) == ["first", "ends", "second", "cancelled"]


async def test_who_may_still_commit_is_ended_before_it_is_said_to_be_lost(postgres: str) -> None:
    lost, kept = list[Unit](), list[Unit]()
    unit = Unit((line("late"),))
    before, now = [await connect(Address(postgres)) for _ in range(2)]
    for connection in (before, now):
        await introduce(connection, "we")
    await before.execute("BEGIN")
    await before.execute("INSERT INTO projects VALUES ('p', 0)")
    found = _in_doubt(before, unit, Fate(lost.append, kept.append))
    with anyio.fail_after(30):
        while not await found.is_over(now):  # noqa: ASYNC110 - it is looked at now and then
            await anyio.sleep(0.01)
    assert (lost, kept) == ([unit], [])
    with pytest.raises(Exception, match=r"(?i)terminat|closed"):
        await before.execute("COMMIT")
    before.terminate()
    await now.close()
    (rows,) = await run(postgres, "SELECT * FROM projects")
    assert "p" not in {row[0] for row in rows}


async def test_another_nodes_connection_is_not_ended_though_it_has_the_number_of_one_of_ours(
    postgres: str,
) -> None:
    lost, unit = list[Unit](), Unit((line("late"),))
    other, now = [await connect(Address(postgres)) for _ in range(2)]
    await introduce(other, "they")
    await introduce(now, "we")
    with anyio.fail_after(30):
        assert await _in_doubt(other, unit, Fate(lost.append, lost.append)).is_over(now)
    assert lost == [unit]
    assert await other.fetchval("SELECT 1") == 1
    for connection in (other, now):
        await connection.close()


def _in_doubt(connection: Any, unit: Unit, fate: Fate) -> Doubt:
    """A unit that a connection was told to commit, and that is not there."""
    job = Job(unit, fate=fate)
    group = Group([job], "n", digest, lambda: 1)
    attempt = Attempt(group, process=connection.get_server_pid(), unsure=True)
    attempt._lines = True
    found = doubt([attempt], [job])
    assert found
    return found


async def _connections(url: str, process: Process) -> int:
    """Count those that bear the name of a process."""
    (rows,) = await run(url, f"SELECT application_name {_BACKENDS}")
    return sum(process.writer in row[0] for row in rows)


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_who_takes_over_lets_nothing_through_that_was_on_its_way(
    postgres: str, tmp_path: Path, times: int
) -> None:
    """However often it has come back as another process: it has one connection."""
    process = Process(tmp_path / "p", "n")
    async with writing(postgres) as writer, writing(postgres, "m") as other:
        writer.process = process
        names = [process.id]
        await writer.write(Unit((line("first"),), (process.begin(0),)))
        for _ in range(times):
            process.renew()
            names.append(process.id)
            await writer.write(Unit(statements=(process.begin(0),)))
        storage = PostgresStorage(Address(postgres))
        try:
            for name in names:
                assert await _connections(postgres, process) == 1
                await Beats(storage, Process(tmp_path / "p", "m")).fence(name)
                assert await _connections(postgres, process) == 0
                # It lives, and goes on by another connection.
                await writer.write(Unit((line("again"),)))
        finally:
            await storage.aclose()
        assert await other.write(Unit((line("theirs"),)))
    process.release()
    assert await stored(postgres) == ["first", *["again"] * len(names)]


async def test_of_a_change_without_a_record_that_broke_in_the_commit_nobody_claims_to_know(
    postgres: str, tmp_path: Path
) -> None:
    async with wired(postgres, tmp_path) as (wire, url), writing(url) as writer:
        await writer.write(Unit(statements=(put_setting("a", "1"),)))
        wire.cut = b"COMMIT"
        with pytest.raises(HomeError) as caught, anyio.fail_after(30):
            await writer.write(Unit(statements=(put_setting("a", "2"),)))
        assert "not known" in caught.value.message
        assert caught.value.way_out
        await writer.write(Unit(statements=(put_setting("a", "3"),)))
    (settings,) = await run(postgres, "SELECT value FROM settings")
    assert [row[0] for row in settings] == ["3"]


async def test_text_that_no_server_keeps_is_marked_and_found_again(postgres: str) -> None:
    storage = PostgresStorage(Address(postgres))
    async with writing(postgres) as writer:
        await writer.write(Unit(statements=(put_setting("a\0b\ud800", "c\0ä"),)))
    found = await storage.read("SELECT name, value FROM settings WHERE name = ?", ("a\0b\ud800",))
    await storage.aclose()
    assert found == [("a\ufffdb\ufffd", "c\ufffdä")]
