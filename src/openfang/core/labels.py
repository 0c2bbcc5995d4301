"""Labels: what is known of where data came from. A bit set that only grows.

Not an `IntFlag`: a call joins labels a dozen times, and there that costs 2 us each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS = (
    "external_network",
    "untrusted_agent",
    "user_input",
    "secret",
    "pii",
    "private",
    "local_file",
)


class Labels(int):
    """Integrity labels say who could have written the data, the others who may read it."""

    __slots__ = ()
    NONE: ClassVar[Labels]
    EXTERNAL_NETWORK: ClassVar[Labels]
    UNTRUSTED_AGENT: ClassVar[Labels]
    USER_INPUT: ClassVar[Labels]
    SECRET: ClassVar[Labels]
    PII: ClassVar[Labels]
    PRIVATE: ClassVar[Labels]
    LOCAL_FILE: ClassVar[Labels]

    def __or__(self, other: int) -> Labels:
        return _ALL[int.__or__(self, other)]

    def __and__(self, other: int) -> Labels:
        return _ALL[int.__and__(self, other)]

    @property
    def untrusted(self) -> bool:
        """Whether somebody outside could have written any of it."""
        return bool(int.__and__(self, _UNTRUSTED))

    @property
    def confidential(self) -> bool:
        """Whether it holds what should not leave together with untrusted text."""
        return bool(int.__and__(self, _CONFIDENTIAL))

    @property
    def names(self) -> list[str]:
        """The words of the contract, in a fixed order."""
        return _NAMES[self]

    @classmethod
    def of(cls, names: Iterable[str]) -> Labels:
        """Read the words back. An unknown word is a ValueError."""
        found = cls.NONE
        for name in names:
            found |= _ALL[1 << _WORDS.index(name)]
        return found

    def __repr__(self) -> str:
        return f"Labels({', '.join(self.names) or 'none'})"


_ALL = tuple(Labels(bits) for bits in range(1 << len(_WORDS)))
_NAMES = tuple(
    [word for bit, word in enumerate(_WORDS) if labels >> bit & 1] for labels in range(len(_ALL))
)
Labels.NONE = _ALL[0]
for _bit, _word in enumerate(_WORDS):
    setattr(Labels, _word.upper(), _ALL[1 << _bit])
_UNTRUSTED = int(Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT)
_CONFIDENTIAL = int(Labels.PII | Labels.PRIVATE | Labels.LOCAL_FILE)
