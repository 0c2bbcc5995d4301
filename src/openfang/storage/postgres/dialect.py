"""The stores' SQL as Postgres reads it: `?` becomes `$1`, `$2` and so on. No I/O.

All else is written so that both databases understand it, with functions of one name on both sides.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK: Final = re.compile(r"'[^']*'|\?")
_TEXT: Final = re.compile(r"\bTEXT\b")
_SHAPING: Final = ("CREATE TABLE", "ALTER TABLE")


_OF_THE_INDEX: Final = "INSERT INTO memory_words"
"""SQLite has to be told what its table of words holds; here the index follows by itself."""


def is_needed(sql: str) -> bool:
    """Whether a statement does anything here."""
    return not sql.startswith(_OF_THE_INDEX)


@lru_cache(maxsize=2048)
def numbered(sql: str) -> str:
    """Number the marks of a statement; those inside of quotes are none."""
    numbers = count(1)
    return _MARK.sub(lambda found: found[0] if found[0] != "?" else f"${next(numbers)}", sql)


def bytewise(statement: str) -> str:
    """Have text compared by its bytes, as SQLite does, whatever the language of the server."""
    if not statement.startswith(_SHAPING):
        return statement
    return _TEXT.sub('TEXT COLLATE "C"', statement)


def storable(parameters: Sequence[Any]) -> Sequence[Any]:
    """Replace what Postgres keeps in no text: NUL, and halves of characters."""
    for value in parameters:
        if isinstance(value, str) and not (value.isascii() and "\0" not in value):
            return [clean(value) if isinstance(value, str) else value for value in parameters]
    return parameters


def clean(text: str) -> str:
    """Write a text with a mark for each sign that no database keeps."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    return text
