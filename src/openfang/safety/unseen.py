"""What a text holds that nobody sees: found, told from what some scripts need, and shown. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

# One run of characters that are not seen, whatever kind each is of.
_RUN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]+"
)
_KINDS: Final[tuple[tuple[str, int, int], ...]] = (
    ("control", 0x00, 0x1F),
    ("control", 0x7F, 0x9F),
    ("direction mark", 0x61C, 0x61C),
    ("direction mark", 0x200E, 0x200F),
    ("direction", 0x202A, 0x202E),
    ("direction", 0x2066, 0x2069),
    ("variation selector", 0x180B, 0x180F),
    ("variation selector", 0xFE00, 0xFE0F),
    ("tag", 0xE0000, 0xE007F),
    ("variation selector", 0xE0100, 0xE01EF),
)
_ASCII_TAGS: Final = range(0xE0020, 0xE007F)
_TAG: Final = 0xE0000
_END_OF_TAGS: Final = "\U000e007f"
_BLACK_FLAG: Final = "\U0001f3f4"
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_FEW: Final = 2
# Whose words are written with joiners, and who writes from right to left.
_JOINED_SCRIPTS: Final = re.compile("[\u0590-\u08ff\u0900-\u0dff\u0e80-\u0fff\u1000-\u18af]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A run of unseen characters. What is `usual` there is written so by honest people too."""

    start: int
    end: int
    kinds: tuple[str, ...]
    usual: bool


def unseen(text: str) -> Iterator[Unseen]:
    """Find every run, in order."""
    if text.isascii() and text.isprintable():
        return
    for found in _RUN.finditer(text):
        start, end = found.span()
        kinds = tuple(dict.fromkeys(map(_kind, found[0])))
        yield Unseen(start=start, end=end, kinds=kinds, usual=_usual(text, start, end))


def without_unseen(text: str) -> str:
    """Take away what is not seen."""
    return text if text.isascii() and text.isprintable() else _RUN.sub("", text)


def revealed(text: str) -> str:
    """Read what letters of tags and selectors spell; nothing, if they spell nothing."""
    letters = (_letter(ord(character)) for character in text)
    return "".join(letter for letter in letters if letter.isprintable())


def shown(text: str) -> str:
    """Write a text so that all of it is seen, in one line."""
    return "".join(
        one if one.isprintable() and not _RUN.match(one) else _escaped(one) for one in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _kind(character: str) -> str:
    code = ord(character)
    return next((kind for kind, first, last in _KINDS if first <= code <= last), "empty mark")


def _letter(code: int) -> str:
    if code in _ASCII_TAGS:
        return chr(code - _TAG)
    plain, more = _SELECTORS
    if code in more:  # a byte: those from 16 on are written with the second range
        return _ascii(code - more.start + len(plain))
    return ""


def _ascii(code: int) -> str:
    return chr(code) if code < 1 << 7 else ""


def _usual(text: str, start: int, end: int) -> bool:
    run, before, after = text[start:end], text[start - 1 : start], text[end : end + 1]
    if run[-1] == _END_OF_TAGS and before == _BLACK_FLAG:  # England, Scotland, Wales
        return len(run) in range(4, 8)
    if any(_kind(one) in {"control", "tag", "direction"} for one in run):
        return False
    if len(run) > _FEW:
        return False
    if all(_kind(one) == "variation selector" or one == "\u200d" for one in run):
        return _is_symbol(before)
    if _JOINED_SCRIPTS.match(before) or _JOINED_SCRIPTS.match(after):
        return True
    return not (before.isalnum() and after.isalnum())


def _is_symbol(character: str) -> bool:
    """Whether it is a picture, a keycap or an ideograph: those have variants."""
    if not character:
        return False
    category = unicodedata.category(character)
    return (
        category.startswith("S")
        or character in "0123456789#*"
        or (category == "Lo" and unicodedata.name(character, "").startswith("CJK"))
        or category == "Po"
    )
