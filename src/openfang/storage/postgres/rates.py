"""What all nodes used up of each rate, added up by the database and by its clock.

Nobody ever waits here for another node: who comes while one is adding is told so, and comes again.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from openfang.storage.postgres.dialect import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.postgres.database import PostgresStorage

_TURN: Final = 0x72617465  # "rate"
_LONGEST: Final = 200
_NOW: Final = "extract(epoch FROM now())::float8"
_MINE: Final = f"turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock({_TURN}) AS mine)"
_ADD: Final = f"""
WITH {_MINE},
kept AS (
    INSERT INTO rates AS before (subject, tat, used, most)
    SELECT subject, {_NOW} - age + seconds, seconds, most
    FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[])
        AS told (subject, seconds, age, most), turn
    WHERE mine
    ON CONFLICT (subject) DO UPDATE SET
        tat = LEAST(GREATEST(before.tat + excluded.used, excluded.tat), {_NOW} + excluded.most),
        used = excluded.used,
        most = excluded.most
    RETURNING subject, tat
)
SELECT subject, tat - {_NOW} FROM kept
"""  # noqa: S608 - constants
_DROP: Final = f"WITH {_MINE} DELETE FROM rates USING turn WHERE mine AND tat < {_NOW}"  # noqa: S608 - as above


class Told(NamedTuple):
    """What a node used: seconds of a rate since so many seconds, and how many may be owed."""

    subject: str
    seconds: float
    age: float
    most: float


async def add(storage: PostgresStorage, told: Sequence[Told]) -> dict[str, float] | None:
    """Add what was used here; say what is owed by all together. None: another node is at it."""
    by_name = {_name(one.subject): one for one in told}
    amounts = zip(*(one[1:] for one in by_name.values()), strict=True)
    storage.statements += 1
    async with storage.pool.connection() as connection:
        rows = await connection.fetch(_ADD, list(by_name), *map(list, amounts))
    return {by_name[name].subject: debt for name, debt in rows} or None


async def drop_paid(storage: PostgresStorage) -> None:
    """Forget what has come back: it is the same as nothing."""
    storage.statements += 1
    async with storage.pool.connection() as connection:
        await connection.execute(_DROP)


def _name(subject: str) -> str:
    """Name it as a key of a table can be: others choose how long they are called."""
    if len(subject) <= _LONGEST:
        return clean(subject)
    return clean(subject[:_LONGEST]) + blake2b(subject.encode(errors="replace")).hexdigest()
