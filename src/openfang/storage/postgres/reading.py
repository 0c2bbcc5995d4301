"""One query on one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.storage.database import up_to
from openfang.storage.postgres.dialect import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 100


async def read_on(
    connection: Any,  # noqa: ANN401 - the driver has no types
    sql: str,
    parameters: Sequence[Any],
    most: int | None,
) -> list[tuple[Any, ...]]:
    """Run it. With `most` it ends after the row that brings so many characters."""
    text = numbered(sql)
    if most is None:
        return [tuple(row) for row in await connection.fetch(text, *parameters)]
    if connection.is_in_transaction():
        return await _some(connection, text, parameters, most)
    async with connection.transaction(readonly=True):
        return await _some(connection, text, parameters, most)


async def _some(
    connection: Any,  # noqa: ANN401 - as above
    text: str,
    parameters: Sequence[Any],
    most: int,
) -> list[tuple[Any, ...]]:
    """Fetch some rows at a time, until they are enough."""
    cursor, found, size = await connection.cursor(text, *parameters), list[tuple[Any, ...]](), 0
    while size <= most:
        rows = [tuple(row) for row in await cursor.fetch(_AT_ONCE)]
        kept = list(up_to(rows, most - size))
        found += kept
        size += sum(len(value) for row in kept for value in row if isinstance(value, str | bytes))
        if len(kept) < _AT_ONCE:
            break
    return found
