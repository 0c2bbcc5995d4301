"""What only one node has at a time, as rows, by the clock of the database and no other.

Each statement is a transaction of its own. `now()` is when that began: never later than it really
is, so that a lease is held no longer, and taken no sooner, than it says.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.core.values import dataclass
from openfang.storage.postgres.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.storage.postgres.address import Address

LASTS_MS: Final = 10_000
_NOW: Final = "(extract(epoch FROM now()) * 1000)::bigint"
_OURS: Final = "(name, term) IN (SELECT * FROM unnest($2::text[], $3::bigint[])) AND node = $1"
_LOOK: Final = f"SELECT name, node, term, until > {_NOW} FROM leases"  # noqa: S608 - constants
_RENEW: Final = (
    f"UPDATE leases SET until = {_NOW} + {LASTS_MS} "  # noqa: S608 - constants
    f"WHERE {_OURS} AND until > {_NOW} RETURNING name"
)
_TAKE: Final = (
    f"INSERT INTO leases VALUES ($2, $1, 1, {_NOW} + {LASTS_MS}) "  # noqa: S608 - constants
    "ON CONFLICT (name) DO UPDATE SET node = $1, term = leases.term + 1, "
    f"until = {_NOW} + {LASTS_MS} WHERE leases.until <= {_NOW} RETURNING term"
)
_GIVE: Final = f"UPDATE leases SET until = 0 WHERE {_OURS} RETURNING name"  # noqa: S608 - constants
_TELL: Final = "SELECT pg_notify('openfang', 'leases ' || $1)"


class Lease(NamedTuple):
    """Who has it, or had it last; `held` says whether that one still has it."""

    node: str
    term: int
    held: bool


@dataclass(slots=True)
class LeaseTable:
    """Reads and changes leases in the name of a node, on a connection of its own.

    Nobody's long query keeps a lease from being renewed.
    """

    address: Address
    node: str
    _pool: Pool = field(init=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.address, size=1)

    async def look(self) -> dict[str, Lease]:
        """Say who has what."""
        return {row[0]: Lease(row[1], row[2], row[3]) for row in await self._rows(_LOOK)}

    async def renew(self, terms: Mapping[str, int]) -> set[str]:
        """Have these for as long again as one lasts; name those that were still ours."""
        return {row[0] for row in await self._rows(_RENEW, *self._ours(terms))}

    async def take(self, name: str) -> int | None:
        """Take one that nobody has, and say under which term; somebody may have been faster."""
        rows = await self._rows(_TAKE, self.node, name)
        if not rows:
            return None
        await self._rows(_TELL, name)
        return rows[0][0]

    async def give(self, terms: Mapping[str, int]) -> None:
        """Let these go, as far as they are ours: whatever they stand for has ended here."""
        for row in await self._rows(_GIVE, *self._ours(terms)):
            await self._rows(_TELL, row[0])

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._pool.aclose()

    def _ours(self, terms: Mapping[str, int]) -> tuple[Any, ...]:
        return self.node, [*terms], [*terms.values()]

    async def _rows(self, sql: str, *parameters: Any) -> list[Any]:  # noqa: ANN401 - as a row has it
        async with self._pool.connection() as connection:
            return await connection.fetch(sql, *parameters)
