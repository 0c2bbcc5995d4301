"""Bringing the schema of a Postgres database up to date: one node at a time, each step whole."""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

from anyio import to_thread

from openfang.core.errors import HomeError
from openfang.storage.database import migrations, split_statements
from openfang.storage.postgres.dialect import bytewise

LOCK: Final = 0x6F70656E66616E67
"""The number by which nodes know that one of them is at it: the signs of our name."""
_SECONDS: Final = 300
OLDEST: Final = 15
"""The oldest schema whose nodes can work on the newest: what came since only adds to it.

Who writes a migration that an older node cannot live with writes its number here.
"""
_SAYS_OLDEST: Final = (
    "ALTER TABLE migrations ADD COLUMN IF NOT EXISTS oldest BIGINT NOT NULL DEFAULT 0"
)
_OLDEST: Final = "SELECT oldest FROM migrations ORDER BY number DESC LIMIT 1"
Known: TypeAlias = list[tuple[int, str]]
_VERSION: Final = "SELECT COALESCE(MAX(number), 0) FROM migrations"
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)"
)


async def migrate(connection: Any, known: Known | None = None) -> None:  # noqa: ANN401 - the driver has no types
    """Apply what is missing. Who comes while another one does waits for it.

    A later version's schema is used as it is, if that says that this version can.
    """
    known = known or await to_thread.run_sync(migrations, "postgres")
    if await version(connection) == known[-1][0]:
        return
    await connection.execute(f"SET statement_timeout = '{_SECONDS}s'")
    await connection.execute("SELECT pg_advisory_lock($1)", LOCK)
    try:
        await _apply(connection, known)
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", LOCK)
            await connection.execute("RESET statement_timeout")


async def version(connection: Any) -> int:  # noqa: ANN401 - as above
    """The number of the last migration that was applied; one that is not ours is refused."""
    if not await connection.fetchval("SELECT to_regclass('migrations')::text"):
        return 0
    return await connection.fetchval(_VERSION)


async def _apply(connection: Any, known: list[tuple[int, str]]) -> None:  # noqa: ANN401 - as above
    reached, last = await version(connection), known[-1][0]
    if reached > last:
        refuse_newer(reached, last, await connection.fetchval(_OLDEST))
        return
    for number, script in known:
        if number > reached:
            async with connection.transaction():
                await connection.execute(_TABLE)
                await connection.execute(_SAYS_OLDEST)
                for statement in split_statements(script):
                    await connection.execute(bytewise(statement))
                applied = "INSERT INTO migrations VALUES ($1, $2, $3)"
                await connection.execute(applied, number, time.time_ns(), OLDEST)


def refuse_newer(reached: int, known: int, oldest: int) -> None:
    """Refuse what only a later version can read; 0 means that it does not say who else can."""
    if reached > known and not 0 < oldest <= known:
        raise HomeError(
            f"The home was written by a newer version (schema {reached}, this one knows {known}).",
            way_out="upgrade openfang, or use another OPENFANG_HOME",
        )
