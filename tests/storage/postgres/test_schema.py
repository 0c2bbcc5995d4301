"""The Postgres migrations, on a real server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from anyio import to_thread

from openfang.core.labels import Labels
from openfang.storage.database import at_once, migrations, open_home, split_statements
from openfang.storage.memory import MemoryStore, Sought, remember
from openfang.storage.postgres.dialect import bytewise
from openfang.storage.postgres.migrate import migrate
from openfang.storage.words import words_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.3")

_WITH_WORDS = 6
_BY_WORDS = (
    "SELECT name FROM memory WHERE array_to_tsvector(string_to_array(words, ' ')) @@ $1::tsquery"
)
_THERE = f"{_BY_WORDS} AND space = 'key-admin'"
MEMORIES = {
    "colour": '"gr\u00fcn, wie die Größe"',
    "user.home_town": '{"name":"Lisboa","since":[1998,{"month":"May"}],"left":null}',
    "quotes": '"a \\"quoted\\" { brace } and C\'est la vie"',
    "number": "42.5",
    "empty": '""',
    "long": '"' + "word " * 20_000 + 'needle"',
}
QUERIES = (
    *("grun", "GRÖSSE größe", "home", "lisboa may", "since", "1998", "quoted", "vie brace"),
    *("42", "5", "empty", "word", "needle", "null", "nothing there"),
)


async def test_the_migrations_run_and_give_the_tables_that_sqlite_has(
    empty_postgres: str, tmp_path: Path
) -> None:
    here = await to_thread.run_sync(_sqlite_columns, tmp_path)
    connection = await cast("Any", asyncpg).connect(empty_postgres)
    try:
        await migrate(connection)
        await migrate(connection)
        found = await connection.fetch(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND table_name <> 'migrations' "
            "ORDER BY table_name, ordinal_position"
        )
        await connection.execute(
            "INSERT INTO audit VALUES ('n', 1, 1700000000000000000, 'policy_violation', 'warning', "
            "'call', '', '{\"rule\":\"\\u0000mode\"}', '{\"source_type\":\"mcp\"}', '\\x00')"
        )
        seen = await connection.fetch(
            "SELECT * FROM task_audits WHERE event_type = 'policy_violation' "
            "AND context->>'source_type' = 'mcp'"
        )
    finally:
        await connection.close()
    there = [(row["table_name"], row["column_name"]) for row in found]
    assert there == here, "but for the table of words, which is an index there"
    assert [(row["audit_id"], row["task_id"], row["level"]) for row in seen] == [
        (1, None, "warning")
    ]


@pytest.mark.requirement("C6.2")
async def test_memories_of_an_older_home_are_found_by_the_same_words_as_in_sqlite(
    empty_postgres: str, tmp_path: Path
) -> None:
    scripts = await to_thread.run_sync(migrations, "postgres")
    connection = await cast("Any", asyncpg).connect(empty_postgres)
    try:
        for number, script in scripts:
            if number == _WITH_WORDS:
                insert = "INSERT INTO memory VALUES ('key-admin', $1, $2, 0, 1)"
                await connection.executemany(insert, list(MEMORIES.items()))
            for statement in split_statements(script):
                await connection.execute(bytewise(statement))
        there = {query: await _found_there(connection, query) for query in QUERIES}
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetch(f"EXPLAIN {_BY_WORDS.replace('$1', chr(39) + 'a' + chr(39))}")
    finally:
        await connection.close()
    assert there == await to_thread.run_sync(_found_here, tmp_path)
    assert "memory_words" in str(plan)


async def _found_there(connection: Any, query: str) -> set[str]:
    rows = await connection.fetch(_THERE, " | ".join(words_of(query)))
    return {row["name"] for row in rows}


def _found_here(tmp_path: Path) -> dict[str, set[str]]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        for name, value in MEMORIES.items():
            for statement in remember("key-admin", name, value, Labels.NONE):
                database.connection.execute(*statement)
        store = MemoryStore(database)
        return {
            query: {
                one.key
                for one in at_once(store.search(Sought(space="key-admin", query=query, limit=50)))
            }
            for query in QUERIES
        }


def _sqlite_columns(tmp_path: Path) -> list[tuple[str, str]]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        tables = database.read_now(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name <> 'migrations' AND name NOT LIKE 'memory_words%' ORDER BY name"
        )
        return [
            (table, column[1])
            for (table,) in tables
            for column in database.read_now(f"PRAGMA table_info({table})")
        ]
