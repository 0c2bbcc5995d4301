"""Grants of programs: a name, or a pattern of a command line that is held to it word by word.

`*` stays within its word, and stands for no option, no absolute path and no `..` that the pattern
does not have itself. Only a lone `*` at the end means any more words.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from openfang.policy.globs import matches, within

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY: Final = "*"
_ABSOLUTE: Final = re.compile(r"(^|[=:,])/")
_BETWEEN_PARTS: Final = re.compile(r"[/=:,]")


def command_granted(patterns: tuple[str, ...], argv: Sequence[str]) -> bool:
    """Whether any of the patterns allows this command."""
    return any(_allows(pattern, argv) for pattern in patterns)


def covers_command(patterns: tuple[str, ...], wanted: str) -> bool:
    """Whether all that a pattern allows is allowed by one of these; in doubt it is not."""
    return any(pattern == wanted or _contains(pattern, wanted) for pattern in patterns)


def _allows(pattern: str, argv: Sequence[str]) -> bool:
    words, more = _read(pattern)
    if len(argv) < len(words) or (len(argv) > len(words) and not more):
        return False
    return all(_fits(word, given) for word, given in zip(words, argv, strict=False))


def _fits(pattern: str, word: str) -> bool:
    return _marks(word) <= _marks(pattern) and matches((pattern,), word)


def _contains(pattern: str, wanted: str) -> bool:
    words, more = _read(pattern)
    theirs, theirs_more = _read(wanted)
    if not more and (theirs_more or len(theirs) != len(words)):
        return False
    if len(theirs) < len(words):
        return False
    pairs = zip(words, theirs, strict=False)
    return all(_marks(one) <= _marks(word) and within(one, word) for word, one in pairs)


@lru_cache(maxsize=4096)
def _read(pattern: str) -> tuple[tuple[str, ...], bool]:
    """Give the words of a pattern, and whether more may follow. A program alone takes any."""
    try:
        words = tuple(shlex.split(pattern))
    except ValueError:  # quotes that do not close
        words = tuple(pattern.split())
    if words[-1:] == (ANY,):
        return words[:-1], True
    return words, len(words) == 1


def _marks(word: str) -> frozenset[str]:
    """What of a word decides what a program does with it, rather than to which of its files."""
    option = word.startswith("-")
    found = {
        "option": option,
        "path in an option": option and "/" in word,
        "absolute": _ABSOLUTE.search(word) is not None,
        "parent": ".." in _BETWEEN_PARTS.split(word),
    }
    return frozenset(mark for mark, has in found.items() if has)
