"""Integers that JSON can carry and a 64-bit reader would round.

Every body is looked through, on the event loop: what has no long row of digits is seen at a glance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LONG_ROW = re.compile(rb"[0-9]{19,}+")
_ANY_LONG_ROW = b"0" * 19
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_OF_A_NUMBER = frozenset(b".eE+-")
_OF_A_FRACTION = frozenset(b".eE")
_MOST_DIGITS = 20


def long_integer(text: bytes) -> str | None:
    """Return the first integer of a valid JSON text that needs more than 64 bits."""
    if _ANY_LONG_ROW not in text.translate(_AS_ZEROS):
        return None
    for digits in _long_integers(_STRING.sub(b'""', text)):
        if len(digits) > _MOST_DIGITS or not -(2**63) <= int(digits) < 2**64:
            return digits[:40].decode()
    return None


def _long_integers(text: bytes) -> Iterator[bytes]:
    """Find rows of digits that are a whole number, not a part of one."""
    for found in _LONG_ROW.finditer(text):
        start, end = found.span()
        if text[start - 1 : start] == b"-":
            start -= 1
        within = start > 0 and text[start - 1] in _OF_A_NUMBER
        if not within and (end == len(text) or text[end] not in _OF_A_FRACTION):
            yield text[start:end]
