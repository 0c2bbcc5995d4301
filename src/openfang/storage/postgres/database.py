"""The state of a home on a Postgres server: what is read from it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from openfang.core.log import QUERY_ROWS
from openfang.core.values import dataclass
from openfang.storage.postgres.dialect import storable
from openfang.storage.postgres.migrate import migrate
from openfang.storage.postgres.notices import Ear, Voice
from openfang.storage.postgres.pool import Pool
from openfang.storage.postgres.queries import query
from openfang.storage.postgres.reading import read_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio import CapacityLimiter

    from openfang.core.log import Table
    from openfang.storage.ports import Dialect, Hear, Look
    from openfang.storage.postgres.address import Address

T = TypeVar("T")
_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(slots=True)
class PostgresStorage:
    """Answers queries by a pool of connections."""

    address: Address
    dialect: Dialect = field(init=False, default="postgres")
    pool: Pool = field(init=False)
    _ear: Ear = field(init=False)
    _voice: Voice = field(init=False)
    statements: int = field(init=False, default=0)
    """How many were sent to read, for whoever counts."""

    def __post_init__(self) -> None:
        self.pool, self._ear = Pool(self.address), Ear(self.address)
        self._voice = Voice(self.pool)

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query. With `most` it ends after the row that brings so many characters."""
        self.statements += 1
        given = storable(parameters)
        return await self.pool.read(lambda one: read_on(one, sql, given, most))

    async def aside(self, look: Look[T], turns: CapacityLimiter | None = None) -> T:
        """Look at much, as it was at one moment."""
        if turns is None:
            return await self.pool.read(lambda one: _look(one, look))
        async with turns:
            return await self.pool.read(lambda one: _look(one, look))

    async def query(self, sql: str, *, limit: int = QUERY_ROWS) -> list[Table]:
        """Run queries of the operator's own: on the log alone, read-only, bounded."""
        async with self.pool.connection() as connection:
            return await query(connection, sql, limit)

    def on(self, topic: str, hear: Hear) -> bool:
        """Hear what any node tells: on one connection for all, from the first on."""
        self._ear.on(topic, hear)
        return True

    def tell(self, topic: str, subject: str) -> None:
        """Tell all nodes something, in the background."""
        self._voice.tell(topic, subject)

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._voice.aclose()
        await self._ear.aclose()
        await self.pool.aclose()


@dataclass(frozen=True, slots=True)
class _One:
    """Reads on one connection."""

    connection: Any
    dialect: Dialect = "postgres"

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        return await read_on(self.connection, sql, storable(parameters), most)


async def _look(connection: Any, look: Look[T]) -> T:  # noqa: ANN401 - the driver has no types
    await connection.execute(_ONE_MOMENT)
    try:
        return await look(_One(connection))
    finally:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")


async def open_storage(address: Address) -> PostgresStorage:
    """Reach a server, and bring its schema up to date."""
    storage = PostgresStorage(address)
    try:
        async with storage.pool.connection() as connection:
            await migrate(connection)
    except BaseException:
        await storage.aclose()
        raise
    return storage
