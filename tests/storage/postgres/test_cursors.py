"""How far readers have got in the log goes with its node when a home comes to a server."""

from __future__ import annotations

from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from openfang.storage.database import migrations, split_statements
from openfang.storage.postgres.migrate import migrate

pytestmark = pytest.mark.requirement("C13.3")
KEPT = {"node": "n1", "ledger.folded": "7", "sink:stdout": "5", "anchor:ab": "3", "other": "x"}
THERE = {
    "node": "n1",
    "ledger.folded@n1": "7",
    "sink:stdout@n1": "5",
    "anchor:ab@n1": "3",
    "other": "x",
}


async def settings(url: str) -> dict[str, str]:
    connection = await cast("Any", asyncpg).connect(url)
    try:
        return dict(await connection.fetch("SELECT * FROM settings"))
    finally:
        await connection.close()


async def test_places_that_one_node_had_on_a_server_stay_its_own(empty_postgres: str) -> None:
    connection = await cast("Any", asyncpg).connect(empty_postgres)
    try:
        await migrate(connection)
        await connection.executemany("INSERT INTO settings VALUES ($1, $2)", list(KEPT.items()))
        for statement in split_statements(dict(migrations("postgres"))[19]):
            await connection.execute(statement)
    finally:
        await connection.close()
    assert await settings(empty_postgres) == THERE
