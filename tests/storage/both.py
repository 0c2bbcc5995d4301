"""One database for the tests of a store, whichever it is: a SQLite file, or one on a real server.

On the server statements run one after the other on a loop in a thread, so that the tests of both
are the same: what is awaited never waits here.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, cast

from openfang.storage.database import Database, open_home
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import _One  # pyright: ignore[reportPrivateUsage]
from openfang.storage.postgres.dialect import is_needed, numbered, storable
from openfang.storage.postgres.driver import connect

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator, Sequence

    import pytest

BOTH = ("sqlite", "postgres")
_TABLES = (
    "SELECT string_agg(tablename, ', ') FROM pg_tables "
    "WHERE schemaname = 'public' AND tablename <> 'migrations'"
)


_BYTES = re.compile(r"\bx'([0-9a-f]*)'")
_OUTSIDE = {
    "SAVEPOINT unit": "BEGIN",
    "ROLLBACK TO unit": "ROLLBACK AND CHAIN",
    "RELEASE unit": "COMMIT",
}


def kept(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database for one test, as `request.param` says."""
    if request.param == "postgres":
        with closing(OnServer(request.getfixturevalue("postgres_of_module"))) as server:
            yield cast("Database", server)
            return
    with closing(open_home(request.getfixturevalue("tmp_path") / "openfang.db")) as opened:
        yield opened


class OnServer:
    """What the tests use of a `Database`, on a server; it begins with nothing in its tables."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: Any = self.do(connect(Address(url)))
        self.connection = self
        tables = self.do(self._server.fetchval(_TABLES))
        self.do(self._server.execute(f"TRUNCATE {tables} RESTART IDENTITY"))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
        except Exception as error:
            if str(getattr(error, "sqlstate", "")).startswith("23"):
                raise sqlite3.IntegrityError(str(error)) from error
            raise

    async def read(self, sql: str, parameters: Sequence[Any] = (), **more: Any) -> Any:
        return self.do(_One(self._server).read(sql, parameters, **more))

    def read_now(self, sql: str, parameters: Sequence[Any] = (), **more: Any) -> Any:
        return self.do(_One(self._server).read(sql, parameters, **more))

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> OnServer:
        """Run one. A savepoint outside of a transaction is one, as on SQLite."""
        sql = _BYTES.sub(r"'\\x\1'::bytea", _OUTSIDE.get(sql, sql))
        if is_needed(sql):
            self.do(self._server.execute(numbered(sql), *storable(parameters)))
        return self

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.do(self._server.executemany(numbered(sql), [tuple(row) for row in rows]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        self.do(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
