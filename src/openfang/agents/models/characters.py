"""Text as it can be kept and sent: whole characters, and not without end. Pure.

Some servers cut their answers between the two halves of a character, and a half can be neither
written down nor passed on.
"""

from __future__ import annotations

from typing import Final

from openfang.core.values import dataclass

MOST: Final = 1_000_000
"""Characters of one answer: no model that ends by itself says so much."""
_FIRST: Final = ("\ud800", "\udbff")


def sound(text: str) -> str:
    """Join halves that belong together, and put a mark in the place of one that is alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(slots=True)
class Joined:
    """Pieces of an answer: the first half of a character waits for the second."""

    length: int = 0
    _half: str = ""

    def feed(self, piece: str) -> str:
        """Take a piece, and give what is whole."""
        self.length += len(piece)
        text = self._half + piece
        self._half = text[-1:] if _FIRST[0] <= text[-1:] <= _FIRST[1] else ""
        return sound(text[:-1] if self._half else text)

    def rest(self) -> str:
        """Give what is left at the end."""
        half, self._half = self._half, ""
        return sound(half)
