"""What callers remember, each space by itself, and the words by which it is found.

The index holds each word behind the name of its space. So a search reads nothing of other spaces,
and what others remember changes neither what is found nor its order.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.labels import Labels
from openfang.core.memory import UNKNOWN, Memory, Origin
from openfang.core.values import dataclass
from openfang.storage.finding import COLUMNS, FINDERS, MOST_RANKED, Finder, Scope, Term
from openfang.storage.words import indexed, snippet, text_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
_MOST_WORDS: Final = 32
_MOST_GROUPS: Final = 4
_SHORTEST_STEM: Final = 3
_LONGEST_WHOLE: Final = 1000
_WHENCE: Final = ("stored_by", "asked_by", "trace", "call")
_SCOPED: Final = "replace(' ' || words, ' ', ' ' || hex(space) || '_')"
_INSIDE: Final = "space = ? OR substr(space, 1, ?) = ?"
_ONE: Final = "space = ? AND name = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is looked for in a space, among the keys that these globs cover."""

    space: str
    query: str
    limit: int
    granted: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """Reads memories; the statements below change them."""

    database: Reader

    async def recall(self, space: str, name: str) -> tuple[str, Labels] | None:
        """Read a value as JSON text."""
        sql = "SELECT value, labels FROM memory WHERE space = ? AND name = ?"
        rows = await self.database.read(sql, (space, name))
        return (rows[0][0], Labels(rows[0][1])) if rows else None

    async def get(self, space: str, name: str) -> Memory | None:
        """Read one, whole."""
        sql = f"SELECT {COLUMNS} FROM memory WHERE {_ONE}"  # noqa: S608 - constants
        rows = await self.database.read(sql, (space, name))
        return _memory(rows[0]) if rows else None

    async def page(
        self, space: str, granted: tuple[str, ...], *, before: int, limit: int
    ) -> list[Memory]:
        """List the newest of a space that are older than a number, long ones by a piece."""
        covered, globs = self._finder.covered(granted)
        sql = (
            f"SELECT {COLUMNS} FROM memory WHERE space = ? AND id < ? AND {covered} "  # noqa: S608 - constants
            "ORDER BY id DESC LIMIT ?"
        )
        rows = await self.database.read(sql, (space, before, *globs, limit))
        return [_memory(row, frozenset()) for row in rows]

    async def search(self, sought: Sought) -> list[Memory]:
        """Find those that hold any of the words: those that hold rare ones first."""
        words = tuple(dict.fromkeys(words_of(sought.query)))[:_MOST_WORDS]
        scope = Scope(sought.space, sought.granted)
        found, before = list[tuple[Any, ...]](), list[Term]()
        for terms in await self._groups(sought.space, words):
            missing = sought.limit - len(found)
            if missing:
                found += await self.database.read(
                    *self._finder.ranked(scope, terms, before, missing)
                )
                before += terms
        return [_memory(row, frozenset(words)) for row in found]

    @property
    def _finder(self) -> Finder:
        return FINDERS[self.database.dialect]

    async def _groups(self, space: str, words: Iterable[str]) -> list[list[Term]]:
        """Put words together, the rarest first, as long as all who hold them can be ranked."""
        known = [await self._term(space, word) for word in words]
        groups, room = list[list[Term]](), 0
        for term in sorted(one for one in known if one.held):
            if term.held > room:
                groups.append([])
                room = MOST_RANKED
            groups[-1].append(term)
            room -= term.held
        return groups[:_MOST_GROUPS]

    async def _term(self, space: str, word: str) -> Term:
        """Count who holds a word; one that nobody holds stands for those that begin with it."""
        count = await self._count(space, word, stem=False)
        if count or len(word) < _SHORTEST_STEM:
            return Term(count, word, stem=False)
        return Term(await self._count(space, word, stem=True), word, stem=True)

    async def _count(self, space: str, word: str, *, stem: bool) -> int:
        return (await self.database.read(*self._finder.count(space, word, stem=stem)))[0][0]


def remember(
    space: str, name: str, value: str, labels: Labels, origin: Origin = UNKNOWN
) -> tuple[Statement, ...]:
    """Keep a value under its name, in the place of what was there."""
    row = (space, name, int(labels), time.time_ns())
    whence = (origin.stored_by, origin.asked_by, origin.trace, origin.call)
    insert = (
        "INSERT INTO memory (space, name, labels, stored_at, stored_by, asked_by, trace, call_id, "
        "value, words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    index = f"INSERT INTO memory_words (rowid, words) SELECT id, {_SCOPED} FROM memory WHERE {_ONE}"  # noqa: S608 - constants
    return (
        *_dropped(_ONE, (space, name)),
        (insert, (*row, *whence, value, indexed(name, value))),
        (index, (space, name)),
    )


def forget(space: str) -> tuple[Statement, ...]:
    """Forget everything in a space, and in those inside it."""
    inner = f"{space}/"
    return _dropped(_INSIDE, (space, len(inner), inner))


def forget_one(space: str, name: str) -> tuple[Statement, ...]:
    """Forget what is kept under a name."""
    return _dropped(_ONE, (space, name))


def _dropped(where: str, parameters: Sequence[Any]) -> tuple[Statement, ...]:
    """Take memories out of the index, which has to be told what it held, and then away."""
    unindex = (
        "INSERT INTO memory_words (memory_words, rowid, words) "  # noqa: S608 - constants
        f"SELECT 'delete', id, {_SCOPED} FROM memory WHERE {where}"
    )
    return (unindex, parameters), (f"DELETE FROM memory WHERE {where}", parameters)  # noqa: S608 - constants


def _memory(row: tuple[Any, ...], words: frozenset[str] | None = None) -> Memory:
    """Read one; with words, of a long one what stands around them."""
    number, space, name, text, labels, stored_at, *whence = row
    shortened = words is not None and len(text) > _LONGEST_WHOLE
    value = orjson.loads(text)
    return Memory(
        id=number,
        space=space,
        key=name,
        value=snippet(text_of(value), words or frozenset()) if shortened else value,
        labels=Labels(labels),
        stored_at=stored_at,
        origin=Origin(**dict(zip(_WHENCE, whence, strict=True))),
        shortened=shortened,
    )
