"""The words of a memory as they are kept and looked for: folded, without marks, nothing else.

Both dialects index what this makes, so they find the same. No I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from unicodedata import combining, normalize

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

WORD: Final = re.compile(r"[^\W_]+")
LONGEST_INDEXED: Final = 50_000
"""So many characters of a memory are found by their words; the rest is kept all the same."""
_LONGEST_WORD: Final = 64
_SHOWN: Final = 240
_BEFORE: Final = 60


def fold(text: str) -> str:
    """Write a text so that case, accents and forms of one letter make no difference."""
    if text.isascii():
        return text.lower()
    plain = normalize("NFKD", normalize("NFKD", text).casefold())
    return "".join(sign for sign in plain if not combining(sign))


def words_of(text: str) -> list[str]:
    """Read the words of a text, in order."""
    return [word[:_LONGEST_WORD] for word in WORD.findall(fold(text))]


def text_of(value: object) -> str:
    """Write what of a JSON value can be read: strings, keys and numbers, without its marks."""
    return " ".join(_texts(value))


def _texts(value: object) -> Iterator[str]:
    """Walk through a value without recursion: somebody may have nested it deeply."""
    waiting: list[Any] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case bool() | None:
                pass
            case int() | float() as number:
                yield str(number)
            case list() as items:  # pyright: ignore[reportUnknownVariableType] - any JSON
                waiting.extend(reversed(items))  # pyright: ignore[reportUnknownArgumentType]
            case dict() as members:  # pyright: ignore[reportUnknownVariableType] - any JSON
                waiting.extend(_members(members))  # pyright: ignore[reportUnknownArgumentType]
            case _:
                pass


def _members(members: dict[str, Any]) -> Iterator[Any]:
    for name in reversed(members):
        yield members[name]
        yield name


def indexed(name: str, value: str) -> str:
    """Write the words by which a memory is found: those of its key and of its JSON value."""
    try:
        text = text_of(orjson.loads(value))
    except orjson.JSONDecodeError:  # a home with one such row must open all the same
        text = ""
    return " ".join(words_of(f"{name} {text}"[:LONGEST_INDEXED]))


def snippet(text: str, words: frozenset[str]) -> str:
    """Show a long text around the first of these words; shorter ones whole."""
    if len(text) <= _SHOWN:
        return text
    found = (one.start() for one in WORD.finditer(text, 0, LONGEST_INDEXED) if _is(one[0], words))
    start = max(0, next(found, 0) - _BEFORE)
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _is(word: str, words: frozenset[str]) -> bool:
    return fold(word) in words
