"""A request in pieces: words, marks, quotes, and what has a type by its looks alone.

Each piece is looked at by itself and is short, so the work grows with the length of the request.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from openfang.agents.planner.words import ARTICLES, straight
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Kind(Enum):
    """Of what type a field is; all but FREE are filled by what has that type, or not at all."""

    URL = auto()
    EMAIL = auto()
    PATH = auto()
    ZONE = auto()
    SQL = auto()
    NUMBER = auto()
    CHOICE = auto()
    PATTERN = auto()
    COMMAND = auto()
    LIST = auto()
    FREE = auto()
    OTHER = auto()


class Sort(Enum):
    """What a piece is: a mark joins or ends, the rest has to be accounted for."""

    WORD = auto()
    MARK = auto()
    QUOTE = auto()
    CODE = auto()
    THING = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A piece and where it stands; of a quote the text is what is inside."""

    text: str
    start: int
    end: int
    sort: Sort
    kinds: frozenset[Kind] = frozenset()

    @property
    def word(self) -> str:
        """The word in small letters; nothing for what is no word."""
        return self.text.lower() if self.sort is Sort.WORD else ""


_PIECE = re.compile(r"`([^`]+)`|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)|([^\s`\"]+|[`\"])")
_OPENING: Final = "([{<'"
_CLOSING: Final = ".,;:!?)]}>'"
_ENDS: Final = ".,;:!? \t\n"
_DASHES: Final = frozenset("-\u2013\u2014")
_LONGEST: Final = 300
_WORD = re.compile(r"[^\W\d][\w'-]*")
_URL = re.compile(r"https?://[^\s<>]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ZONE = re.compile(r"[A-Z]\w+(?:/[A-Z][\w-]+)+|UTC")
_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_PATH = re.compile(r"[\w./~@+-]+")
_EXTENSION = re.compile(r"[\w@~+-][\w.@~+-]*\.(?=\w*[a-zA-Z])\w{1,8}")


def _is_path(text: str) -> bool:
    if not _PATH.fullmatch(text) or _EMAIL.fullmatch(text):
        return False
    slashed = "/" in text and not text.replace("/", "").isdigit()
    return slashed or text == ".." or _EXTENSION.fullmatch(text) is not None


_LOOKS: Final[dict[Kind, Callable[[str], object]]] = {
    Kind.URL: _URL.fullmatch,
    Kind.EMAIL: _EMAIL.fullmatch,
    Kind.ZONE: _ZONE.fullmatch,
    Kind.NUMBER: _NUMBER.fullmatch,
    Kind.PATH: _is_path,
}


def tokens_of(request: str) -> tuple[Token, ...]:
    """Take a request apart."""
    text = straight(request)
    pieces = [token for match in _PIECE.finditer(text) for token in _tokens(match)]
    return tuple(_with_sql(text, pieces))


def _tokens(match: re.Match[str]) -> Iterator[Token]:
    code, double, single, chunk = match.groups()
    if code:
        yield Token(code, match.start(), match.end(), Sort.CODE, _quoted(code))
    elif double or single:
        inside = double or single
        yield Token(inside, match.start(), match.end(), Sort.QUOTE, _quoted(inside))
    else:
        yield from _apart(chunk, match.start())


def _quoted(inside: str) -> frozenset[Kind]:
    """Of what type a quote is; in quotes a path may have spaces."""
    return _kinds(inside) | (_kinds(inside.replace(" ", "_")) & {Kind.PATH})


def _kinds(text: str) -> frozenset[Kind]:
    if len(text) > _LONGEST:
        return frozenset()
    return frozenset(kind for kind, looks in _LOOKS.items() if looks(text))


def _apart(chunk: str, start: int) -> Iterator[Token]:
    """Part the marks around a piece from what is between them."""
    if chunk == "..":
        yield _core(chunk, start)
        return
    core = chunk.lstrip(_OPENING)
    before = len(chunk) - len(core)
    core = core.rstrip(_CLOSING)
    yield from _marks(chunk[:before], start)
    if core:
        yield _core(core, start + before)
    yield from _marks(chunk[before + len(core) :], start + before + len(core))


def _marks(text: str, start: int) -> Iterator[Token]:
    for offset, mark in enumerate(text, start):
        yield Token(mark, offset, offset + 1, Sort.MARK)


def _core(text: str, start: int) -> Token:
    end = start + len(text)
    if text in _DASHES:
        return Token(text, start, end, Sort.MARK)
    kinds = _kinds(text)
    plain = _WORD.fullmatch(text) and not kinds and len(text) <= _LONGEST
    return Token(text, start, end, Sort.WORD if plain else Sort.THING, kinds)


def _with_sql(text: str, pieces: list[Token]) -> list[Token]:
    """Take a statement of SQL as one piece, from its first word to the end."""
    words = [token.word for token in pieces]
    first = next((at for at in range(len(words)) if _begins_sql(words, at)), len(words))
    if not _goes_on_as_sql(words[first + 1 :]):
        return pieces
    start = pieces[first].start
    statement = text[start:].rstrip(_ENDS)
    end = start + len(statement)
    return [*pieces[:first], Token(statement, start, end, Sort.THING, frozenset({Kind.SQL}))]


def _begins_sql(words: list[str], at: int) -> bool:
    return words[at] == "select" or (words[at] == "with" and words[at + 2 : at + 3] == ["as"])


def _goes_on_as_sql(words: list[str]) -> bool:
    """Whether it is no sentence: `select a file from the list`."""
    at = words.index("from") if "from" in words else 0
    if not 0 < at < len(words) - 1 or words[at + 1] in ARTICLES:
        return False
    return words[0] not in ARTICLES or words[1] in {"", "from"}
