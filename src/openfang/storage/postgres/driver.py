"""The one place that imports asyncpg: only who uses Postgres needs it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openfang.core.errors import HomeError
from openfang.storage.postgres.address import CONNECT_SECONDS, STATEMENT_SECONDS
from openfang.storage.postgres.errors import explain

if TYPE_CHECKING:
    from openfang.storage.postgres.address import Address

_CACHED = 512


def asyncpg() -> Any:  # noqa: ANN401 - it has no types
    """Import it, or say what to install."""
    try:
        return import_module("asyncpg")
    except ImportError as error:
        raise HomeError(
            "storage.url names a Postgres server, and asyncpg is not installed.",
            way_out="pip install 'openfang[postgres]'",
        ) from error


async def connect(address: Address, *, seconds: float = CONNECT_SECONDS) -> Any:  # noqa: ANN401 - as above
    """Open one connection, within its time."""
    driver = asyncpg()
    try:
        connection = await driver.connect(
            address.url,
            timeout=seconds,
            command_timeout=STATEMENT_SECONDS + CONNECT_SECONDS,
            statement_cache_size=_CACHED,
            server_settings=dict(address.settings),
        )
        await connection.set_type_codec(
            "numeric", schema="pg_catalog", encoder=str, decoder=_number, format="text"
        )
    except (OSError, ValueError, driver.PostgresError, driver.InterfaceError) as error:
        raise explain(address, error) from error
    return connection


def _number(text: str) -> int | float:
    """Read a sum: Postgres adds up in a type of its own."""
    return float(text) if "." in text or "N" in text else int(text)
