"""Opening a database on a real Postgres server: its schema, and everything that may be wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.postgres import of, run

from openfang.core.errors import HomeError, Rejected
from openfang.core.log import QUERY_ROWS
from openfang.storage.database import migrations
from openfang.storage.postgres import migrate
from openfang.storage.postgres.address import Address, address
from openfang.storage.postgres.database import PostgresStorage, open_storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.requirement("C13.3")
_KNOWN = migrations("postgres")
_NUMBERS = "SELECT number FROM migrations ORDER BY number"
_RECORD = (
    "INSERT INTO audit VALUES ('n', {seq}, 1700000000000000000, 'policy_violation', 'warning', "
    "'call', '', '{{\"rule\":\"mode\"}}', '{{\"source_type\":\"mcp\"}}', '\\x00')"
)


async def opened(url: str) -> None:
    await (await open_storage(Address(url))).aclose()


async def test_nodes_that_start_at_once_migrate_once(empty_postgres: str) -> None:
    async with anyio.create_task_group() as nodes:
        for _ in range(3):
            nodes.start_soon(opened, empty_postgres)
    (numbers,) = await run(empty_postgres, _NUMBERS)
    assert [row[0] for row in numbers] == [number for number, _ in _KNOWN]


async def test_a_schema_of_the_future_is_refused(postgres: str) -> None:
    await run(postgres, "INSERT INTO migrations VALUES (999, 0)")
    with pytest.raises(HomeError) as caught:
        await opened(postgres)
    assert "newer version" in caught.value.message
    assert "upgrade" in caught.value.way_out


def _always(found: list[tuple[int, str]]) -> Callable[[str], list[tuple[int, str]]]:
    return lambda dialect: found if dialect == "postgres" else []


async def test_a_migration_that_fails_half_way_leaves_nothing_of_itself(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [_KNOWN[0], (2, "CREATE TABLE half (a TEXT);\nCREATE TABLE audit (a TEXT);")]
    monkeypatch.setattr(migrate, "migrations", _always(broken))
    with pytest.raises(HomeError):
        await opened(empty_postgres)
    monkeypatch.undo()
    numbers, half = await run(empty_postgres, _NUMBERS, "SELECT to_regclass('half')")
    assert ([row[0] for row in numbers], half[0][0]) == ([1], None)
    await opened(empty_postgres)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:geheim@127.0.0.1:1/x", "No Postgres server answers"),
        ("postgresql://u:geheim@/x?host=/nowhere", "No Postgres server answers"),
        ("postgresql://u:geheim@nowhere.invalid/x", "nobody knows this host"),
        ("postgresql://u:geheim@127.0.0.1:1/x?sslmode=perhaps", "sslmode"),
    ],
)
async def test_a_server_that_is_not_there_is_named_at_once_and_without_the_password(
    url: str, said: str
) -> None:
    began = time.monotonic()
    with pytest.raises(HomeError) as caught:
        await opened(url)
    assert said in caught.value.message
    assert caught.value.way_out
    assert "geheim" not in f"{caught.value} {caught.value.way_out} {Address(url)!r} {Address(url)}"
    assert time.monotonic() - began < 10


def test_what_is_to_be_written_down_has_a_word_in_the_place_of_the_password() -> None:
    url = "postgresql://u:ge:heim@h/x?host=/s&password=geheim&sslmode=require"
    written = "postgresql://u:PASSWORD@h/x?host=/s&password=PASSWORD&sslmode=require"
    assert Address(url).to_write == written


@pytest.mark.parametrize("url", ["postgresql://u@h:port/x", "mysql://h/x", "postgresql://[/x"])
def test_an_address_that_is_none_is_refused_before_anything_is_tried(url: str) -> None:
    with pytest.raises(HomeError, match="no address"):
        address(url)


async def test_a_wrong_password_and_a_missing_database_are_one_sentence_each(
    postgres_server: str, postgres: str
) -> None:
    with pytest.raises(HomeError, match="there is no such database"):
        await opened(of(postgres_server, "missing"))
    await run(postgres, "CREATE ROLE guest")
    try:
        with pytest.raises(HomeError) as caught:
            await opened(postgres.replace("postgres:@", "guest:geheim@"))
        assert "geheim" not in str(caught.value)
    finally:
        await run(postgres, "DROP ROLE guest")


@pytest.fixture
async def storage(postgres: str) -> AsyncIterator[PostgresStorage]:
    made = PostgresStorage(Address(postgres))
    yield made
    await made.aclose()


async def test_a_long_answer_ends_after_the_row_that_is_enough(storage: PostgresStorage) -> None:
    sql = "SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n"
    assert len(await storage.read(sql, most=15_000)) == 151
    assert len(await storage.read(sql, most=10**9)) == 1000
    assert len(await storage.read(f"{sql} WHERE n <= ?", (3,), most=10**9)) == 3


async def test_more_readers_than_connections_wait_for_each_other(storage: PostgresStorage) -> None:
    found: list[Any] = []

    async def read() -> None:
        found.extend(await storage.read("SELECT pg_sleep(0.01)::text, pg_backend_pid()"))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as readers:
            for _ in range(storage.pool.size * 4):
                readers.start_soon(read)
    assert len(found) == storage.pool.size * 4
    assert len({pid for _, pid in found}) <= storage.pool.size


async def test_one_who_goes_away_while_reading_leaves_the_pool_whole(
    storage: PostgresStorage,
) -> None:
    for _ in range(storage.pool.size * 2):
        with anyio.move_on_after(0.05):
            await storage.read("SELECT pg_sleep(5)")
    with anyio.fail_after(30):
        assert await storage.read("SELECT 1") == [(1,)]


async def test_what_is_looked_at_aside_is_of_one_moment(storage: PostgresStorage) -> None:
    async def look(reader: Any) -> list[int]:
        before = await reader.read("SELECT COUNT(*) FROM projects")
        await storage.read("INSERT INTO projects VALUES ('p', 0) RETURNING name")
        return [before[0][0], (await reader.read("SELECT COUNT(*) FROM projects"))[0][0]]

    assert await storage.aside(look) == [0, 0]
    assert await storage.read("SELECT COUNT(*) FROM projects") == [(1,)]


async def test_text_is_sorted_by_its_bytes_and_sums_are_numbers(storage: PostgresStorage) -> None:
    names = ["a", "B", "ä", "Z", "_"]
    await run(
        storage.address.url,
        *(f"INSERT INTO projects VALUES ('{name}', {2**60})" for name in names),  # noqa: S608 - above
    )
    found = await storage.read("SELECT name FROM projects ORDER BY name")
    assert [row[0] for row in found] == sorted(names)
    assert await storage.read("SELECT SUM(created_at) FROM projects") == [(5 * 2**60,)]


async def test_an_auditor_asks_the_two_questions_of_the_contract(storage: PostgresStorage) -> None:
    await run(storage.address.url, _RECORD.format(seq=1), _RECORD.format(seq=2))
    names, rows = (
        await storage.query(
            "SELECT * FROM task_audits WHERE event_type = 'policy_violation';", limit=QUERY_ROWS
        )
    )[0]
    assert names[:4] == ["audit_id", "task_id", "level", "event_type"]
    assert [row[0] for row in rows] == [1, 2]
    tables = await storage.query(
        "SELECT COUNT(*) FROM task_audits WHERE context->>'source_type' = 'mcp'; SELECT 1",
        limit=QUERY_ROWS,
    )
    assert [table[1] for table in tables] == [[(2,)], [(1,)]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM keys",
        "SELECT * FROM audit WHERE payload IN (SELECT body FROM keys)",
        "WITH x AS (SELECT * FROM memory) SELECT * FROM x",
        "DELETE FROM audit",
        "WITH gone AS (DELETE FROM audit RETURNING 1) SELECT * FROM gone",
        "SELECT pg_terminate_backend(1)",
        "SELECT query_to_xml('select * from keys', true, true, '')",
        "SELECT \"query_to_xml\"('select * from keys', true, true, '')",
        "SELECT pg_catalog.pg_read_file('/etc/passwd')",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT $$a$$",
        r"SELECT E'\'' || pg_read_file('/etc/passwd') || '",
        "SELECT * FROM pg_stat_activity",
        "COMMIT",
        "SET TRANSACTION READ WRITE",
        "EXPLAIN ANALYZE DELETE FROM audit",
        "COPY keys TO STDOUT",
        "SELECT repeat('x', 1000000) FROM generate_series(1, 100)",
        "",
    ],
)
async def test_an_auditor_asks_for_nothing_else(storage: PostgresStorage, sql: str) -> None:
    await run(storage.address.url, _RECORD.format(seq=1))
    with pytest.raises(Rejected):
        await storage.query(sql, limit=QUERY_ROWS)
    assert await storage.read("SELECT COUNT(*) FROM audit") == [(1,)]
