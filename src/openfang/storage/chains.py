"""The chains of the log, one for each node that writes it, and the part of each that is read.

A SQLite file has one node, and its numbers alone are the key: there all of it is one chain, under
no name. On a server the key is the node and the number, so that every look names both.
"""

from __future__ import annotations

from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from openfang.core.bookmarks import ALONE, Bookmark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.storage.ports import Dialect, Reader

Row = TypeVar("Row", bound="Sequence[Any]")
_ALONE: Final = "SELECT '' AS node, seq, at FROM audit ORDER BY seq DESC LIMIT 1"
_EACH: Final = """
    WITH RECURSIVE names AS (
        (SELECT node FROM audit ORDER BY node LIMIT 1)
        UNION ALL
        SELECT (SELECT audit.node FROM audit WHERE audit.node > names.node ORDER BY 1 LIMIT 1)
        FROM names WHERE names.node IS NOT NULL)
    SELECT names.node, newest.seq, newest.at FROM names CROSS JOIN LATERAL (
        SELECT seq, at FROM audit WHERE audit.node = names.node ORDER BY seq DESC LIMIT 1) AS newest
"""


_QUIET_NS: Final = 86_400_000_000_000
_ADRIFT_NS: Final = 3_600_000_000_000
"""More than the clocks of two nodes may differ."""


class Chain(NamedTuple):
    """A chain, and its last record: the number and the time."""

    node: str
    seq: int
    at: int


class Part(NamedTuple):
    """The records of a chain behind one number, up to another."""

    node: str
    after: int
    last: int


async def chains(reader: Reader) -> list[Chain]:
    """Find all chains, that with the newest record first."""
    found = await reader.read(_ALONE if reader.dialect == "sqlite" else _EACH)
    return sorted((Chain(*row) for row in found), key=itemgetter(2, 0), reverse=True)


async def heads(reader: Reader) -> Bookmark:
    """Say where the log ends now."""
    return heads_of(await chains(reader), reader)


async def read_so_far(reader: Reader, mark: Bookmark | None) -> tuple[Bookmark, Bookmark]:
    """Say what somebody with this bookmark has read, and up to where there is something to read.

    A chain that was read to its end and has been quiet for a day is in neither: else they would
    grow with every node that ever was. One that a bookmark does not name was such a one, or is new.
    """
    known = await chains(reader)
    ends = heads_of(known, reader)
    if mark is None:
        seen = ends
    elif mark.places and reader.dialect != "sqlite":
        since = await _latest(reader, mark.at(ends)) - _ADRIFT_NS
        seen = Bookmark({one.node: await _seen(reader, one, mark, since) for one in known})
    else:
        seen = mark.at(ends)
    quiet = {one.node for one in known if one.at < known[0].at - _QUIET_NS}
    left_out = {node for node in quiet if seen.of(node) == ends.of(node)}
    return seen.without(left_out), ends.without(left_out)


async def _latest(reader: Reader, mark: Bookmark) -> int:
    """When the newest of the records was written that a bookmark names."""
    where, parameters = within(Part(node, last - 1, last) for node, last in mark.places.items())
    found = await reader.read(f"SELECT MAX(at) FROM audit WHERE {where}", parameters)  # noqa: S608 - marks only
    return found[0][0] or 0


async def _seen(reader: Reader, chain: Chain, mark: Bookmark, since: int) -> int:
    if chain.node in mark.places:
        return min(mark.places[chain.node], chain.seq)
    if chain.at < since:
        return chain.seq
    return await first_since(reader, chain, since) - 1


def heads_of(found: Iterable[Chain], reader: Reader) -> Bookmark:
    """Say where these chains end."""
    places = {chain.node: chain.seq for chain in found}
    return Bookmark(places or ({ALONE: 0} if reader.dialect == "sqlite" else {}))


def own_chain(reader: Reader, node: str) -> str:
    """Name the chain of a node, as it is named where this reads."""
    return ALONE if reader.dialect == "sqlite" else node


def within(parts: Iterable[Part]) -> tuple[str, list[Any]]:
    """Write the condition that a record is in one of these parts, and what stands for its marks."""
    conditions, parameters = list[str](), list[Any]()
    for part in parts:
        where, values = of_chain(part.node)
        conditions.append(f"({where} AND seq > ? AND seq <= ?)")
        parameters += (*values, part.after, part.last)
    return f"({' OR '.join(conditions) or '1 = 0'})", parameters


def of_chain(node: str) -> tuple[str, tuple[str, ...]]:
    """Write the condition that a record is of this chain."""
    return ("1 = 1", ()) if node == ALONE else ("node = ?", (node,))


ORDER: Final = {"sqlite": "ORDER BY seq", "postgres": "ORDER BY node, seq"}
"""Each chain in its own order, as its key has it: nothing is sorted for that."""


def in_time(rows: Sequence[Row], dialect: Dialect) -> Sequence[Row]:
    """Put the rows of several chains between each other by their times, each in its own order."""
    if dialect == "sqlite":
        return rows
    each = [list(some) for _, some in groupby(rows, key=itemgetter(0))]
    return list(merge(*each, key=itemgetter(2)))


async def first_since(reader: Reader, chain: Chain, at: int) -> int:
    """Find the first record of a chain that is not older, by halving."""
    low, high = 1, chain.seq + 1
    where, names = of_chain(chain.node)
    sql = f"SELECT at FROM audit WHERE {where} AND seq >= ? ORDER BY seq LIMIT 1"  # noqa: S608 - constants
    while low < high:
        middle = (low + high) // 2
        found = await reader.read(sql, (*names, middle))
        if found and found[0][0] < at:
            low = middle + 1
        else:
            high = middle
    return low
