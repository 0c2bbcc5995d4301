"""Labels: what is known of where data came from. A bit set that only grows."""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Labels(IntFlag):
    """Integrity labels say who could have written the data, the others who may read it."""

    NONE = 0
    EXTERNAL_NETWORK = 1
    UNTRUSTED_AGENT = 2
    USER_INPUT = 4
    SECRET = 8
    PII = 16
    PRIVATE = 32
    LOCAL_FILE = 64

    @property
    def untrusted(self) -> bool:
        """Whether somebody outside could have written any of it."""
        return bool(self & UNTRUSTED)

    @property
    def confidential(self) -> bool:
        """Whether it holds what should not leave together with untrusted text."""
        return bool(self & CONFIDENTIAL)

    @property
    def names(self) -> list[str]:
        """The words of the contract, in a fixed order."""
        return [word for bit, word in _WORDS if self & bit]

    @classmethod
    def of(cls, names: Iterable[str]) -> Labels:
        """Read the words back. An unknown word is a KeyError."""
        found = cls.NONE
        for name in names:
            found |= cls[name.upper()]
        return found


UNTRUSTED = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT
CONFIDENTIAL = Labels.PII | Labels.PRIVATE | Labels.LOCAL_FILE
_WORDS = tuple((label.value, str(label.name).lower()) for label in Labels if label.value)
