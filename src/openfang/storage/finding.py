"""How memories are found by their words: a table of words on SQLite, an index on Postgres. No I/O.

Both look in one space alone, so that what others remember changes neither what is found nor its
order: those that hold rare words come first, of those alike the newest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.ports import Dialect

COLUMNS: Final = (
    "memory.id, memory.space, memory.name, memory.value, memory.labels, memory.stored_at, "
    "memory.stored_by, memory.asked_by, memory.trace, memory.call_id"
)
MOST_RANKED: Final = 1000
Query = tuple[str, "Sequence[Any]"]


class Term(NamedTuple):
    """A word that `held` memories hold; or, as a `stem`, words that begin with it."""

    held: int
    word: str
    stem: bool


class Scope(NamedTuple):
    """Where is looked: in a space, among the keys that these globs cover."""

    space: str
    granted: tuple[str, ...]


class Finder(Protocol):
    """Writes the queries by which memories are found."""

    def count(self, space: str, word: str, *, stem: bool) -> Query:
        """Count who holds a word, up to one more than can be ranked."""
        ...

    def ranked(self, scope: Scope, terms: Sequence[Term], but: Sequence[Term], limit: int) -> Query:
        """Rank the newest that hold any of the terms, and none of the others."""
        ...

    def covered(self, granted: tuple[str, ...]) -> Query:
        """Write which keys are granted. A pattern that is read otherwise finds less."""
        ...


def _any(condition: str, count: int) -> str:
    return f"({' OR '.join([condition] * count) or '1 = 0'})"


class WordTable:
    """SQLite: a table of words (fts5), each behind the name of its space."""

    def count(self, space: str, word: str, *, stem: bool) -> Query:
        """Count who holds a word."""
        sql = (
            "SELECT COUNT(*) FROM "
            "(SELECT 1 FROM memory_words WHERE memory_words MATCH ? LIMIT ?) AS held"
        )
        return sql, (_match(space, word, stem=stem), MOST_RANKED + 1)

    def ranked(self, scope: Scope, terms: Sequence[Term], but: Sequence[Term], limit: int) -> Query:
        """Rank by how rare the words are, and how short the memory is."""
        join, covered, globs = "", "1 = 1", list[Any]()
        if (
            "*" not in scope.granted
        ):  # the words alone tell the space: keys are read only if need be
            join = "JOIN memory ON memory.id = memory_words.rowid"
            covered, globs = self.covered(scope.granted)
        sql = (
            f"SELECT {COLUMNS} FROM (SELECT memory_words.rowid AS id, "  # noqa: S608 - constants
            f"bm25(memory_words) AS rank FROM memory_words {join} "
            f"WHERE memory_words MATCH ? AND {covered} "
            "ORDER BY memory_words.rowid DESC LIMIT ?) AS ranked "
            "JOIN memory ON memory.id = ranked.id ORDER BY ranked.rank, ranked.id DESC LIMIT ?"
        )
        return sql, (self._expression(scope, terms, but), *globs, MOST_RANKED, limit)

    def _expression(self, scope: Scope, terms: Sequence[Term], but: Sequence[Term]) -> str:
        wanted, left = (
            " OR ".join(_match(scope.space, one.word, stem=one.stem) for one in some)
            for some in (terms, but)
        )
        return f"({wanted}) NOT ({left})" if left else f"({wanted})"

    def covered(self, granted: tuple[str, ...]) -> Query:
        """Write which keys are granted."""
        if "*" in granted:
            return "1 = 1", ()
        patterns = [glob.replace("[!", "[^") for glob in granted]
        return _any("memory.name GLOB ?", len(patterns)), patterns


def _match(space: str, word: str, *, stem: bool) -> str:
    return f'"{space.encode().hex()}_{word}"{"*" if stem else ""}'


_WORDS: Final = "array_to_tsvector(string_to_array(words, ' '))"
_HOLDS: Final = f"{_WORDS} @@ CAST(? AS tsquery)"
_LENGTH: Final = "cardinality(string_to_array(ranked.words, ' '))"
_WEIGHT: Final = (
    f"CASE WHEN {_HOLDS.replace('words', 'ranked.words')} "
    "THEN CAST(? AS DOUBLE PRECISION) ELSE 0 END"
)


class WordIndex:
    """Postgres: an index over the words of each memory."""

    def count(self, space: str, word: str, *, stem: bool) -> Query:
        """Count who holds a word."""
        sql = (
            f"SELECT COUNT(*) FROM (SELECT 1 FROM memory WHERE space = ? AND {_HOLDS} LIMIT ?) "  # noqa: S608 - constants
            "AS held"
        )
        return sql, (space, _lexeme(word, stem=stem), MOST_RANKED + 1)

    def ranked(self, scope: Scope, terms: Sequence[Term], but: Sequence[Term], limit: int) -> Query:
        """Rank by how rare the words are, and how short the memory is."""
        covered, globs = self.covered(scope.granted)
        wanted, left = (
            " | ".join(_lexeme(one.word, stem=one.stem) for one in some) for some in (terms, but)
        )
        weight = " + ".join([_WEIGHT] * len(terms))
        lexemes = ((_lexeme(one.word, stem=one.stem), 1 / one.held) for one in terms)
        sql = (
            f"SELECT {COLUMNS} FROM (SELECT id, words FROM memory WHERE space = ? AND {_HOLDS} "  # noqa: S608 - constants
            f"AND {covered} ORDER BY id DESC LIMIT ?) AS ranked "
            "JOIN memory ON memory.id = ranked.id "
            f"ORDER BY {weight} DESC, {_LENGTH}, ranked.id DESC LIMIT ?"
        )
        weighed = [value for pair in lexemes for value in pair]
        query = f"({wanted}) & !({left})" if left else wanted
        return sql, (scope.space, query, *globs, MOST_RANKED, *weighed, limit)

    def covered(self, granted: tuple[str, ...]) -> Query:
        """Write which keys are granted."""
        if "*" in granted:
            return "1 = 1", ()
        return _any("memory.name ~ ?", len(granted)), [_regular(glob) for glob in granted]


def _lexeme(word: str, *, stem: bool) -> str:
    """A word as a query has it; words are letters and digits alone."""
    return f"'{word}'{':*' if stem else ''}"


def _regular(glob: str) -> str:
    """A glob as a regular expression that Postgres reads as Python does."""
    return "^" + "".join(_part(part) for part in re.findall(r"\[[^\]]+\]|.", glob, re.DOTALL)) + "$"


def _part(part: str) -> str:
    if part in {"*", "?"}:
        return ".*" if part == "*" else "."
    if len(part) > 1:
        inner = part[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner[:1] in {"!", "^"} else f"[{inner}]"
    return re.escape(part)


FINDERS: Final[Mapping[Dialect, Finder]] = {"sqlite": WordTable(), "postgres": WordIndex()}
