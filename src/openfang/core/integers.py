"""Integers that JSON can carry and a 64-bit reader would round."""

from __future__ import annotations

import re

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")
_MOST_DIGITS = 20


def long_integer(text: bytes) -> str | None:
    """Return the first integer of a valid JSON text that needs more than 64 bits."""
    if not _LONG_INTEGER.search(text):
        return None
    for found in _LONG_INTEGER.finditer(_STRING.sub(b'""', text)):
        digits = found[0].decode()
        if len(digits) > _MOST_DIGITS or not -(2**63) <= int(digits) < 2**64:
            return digits[:40]
    return None
