"""RE2 with types: patterns over bytes, in linear time, whoever wrote them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import re2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MEMORY = 64 * 1024 * 1024
_SHARED = 256

ESCAPE = r"\\(?:[bfnrt]|u[0-9A-Fa-f]{4})"
# In JSON text, the letter that ends an escape stands before the word, and is no part of it.
WORD_START = rf"(?:\b|{ESCAPE})"


class Match(Protocol):
    """One place where a pattern matched."""

    def span(self, group: int = 0) -> tuple[int, int]:
        """Return start and end of a group, in bytes."""
        ...


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes) -> Match | None:
        """Find the first match."""
        ...

    def finditer(self, text: bytes) -> Iterator[Match]:
        """Find all matches that do not overlap."""
        ...


class _Re2(Protocol):
    """The part of the library that is used here; it comes without types."""

    Options: Any
    compile: Callable[[bytes, object], Pattern]


_RE2 = cast("_Re2", re2)


def compile_pattern(pattern: str, *, groups: bool = True) -> Pattern:
    """Compile a pattern of Latin-1 characters; it sees bytes, so no text can be ill-formed."""
    options = _RE2.Options()
    options.encoding = _RE2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = not groups
    return _RE2.compile(pattern.encode("latin-1"), options)


@lru_cache(maxsize=_SHARED)
def shared_pattern(pattern: str, *, groups: bool = True) -> Pattern:
    """Compile once what is the same for everybody; nothing secret may stand in it."""
    return compile_pattern(pattern, groups=groups)


def compile_words(pattern: str) -> Pattern:
    """Compile a pattern over well-formed UTF-8: what it counts are characters."""
    options = _RE2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    return _RE2.compile(pattern.encode(), options)


def contained(pattern: Pattern, text: bytes) -> bool:
    """Whether the pattern matches anywhere."""
    return pattern.search(text) is not None


def escape(literal: bytes) -> str:
    """Write bytes so that they match only themselves."""
    return "".join(f"\\x{byte:02x}" for byte in literal)
