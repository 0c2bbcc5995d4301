"""The values that are known to be secret, who made them known, and how each may be spelled.

What nobody owns stays known. An owner tells one generation after the other, such as the tokens of a
sign-in: the last two are known, for what was said with the former may still be on its way.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SHORTEST_VALUE: Final = 6
_GENERATIONS: Final = 2
_SAFE_IN_URLS: Final = bytes.maketrans(b"+/", b"-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Values, without those that are too short to tell from other text."""

    lasting: frozenset[str] = frozenset()
    owned: Mapping[str, tuple[frozenset[str], ...]] = field(
        default_factory=dict[str, "tuple[frozenset[str], ...]"], repr=False
    )

    def learnt(self, values: Iterable[str], owner: str = "") -> Known:
        """Know these as well; an owner's take the place of what it told before the last time."""
        told = frozenset(value for value in values if len(value) >= _SHORTEST_VALUE)
        if not told:
            return self
        if not owner:
            return replace(self, lasting=self.lasting | told)
        others = [one for one in self.owned.get(owner, ()) if one != told]
        return replace(self, owned={**self.owned, owner: (*others[1 - _GENERATIONS :], told)})

    @property
    def values(self) -> frozenset[str]:
        """All of them."""
        return self.lasting.union(*(one for told in self.owned.values() for one in told))

    def spelled(self) -> dict[bytes, bytes]:
        """Every spelling, and the value that it stands for."""
        return {
            spelled: encoded(value) for value in sorted(self.values) for spelled in _spelled(value)
        }


def encoded(text: str) -> bytes:
    """Write text as bytes, ill-formed text too."""
    return text.encode("utf-8", "surrogatepass")


def _spelled(value: str) -> set[bytes]:
    """Write a value as text, as JSON with and without escapes, as part of a URL, and encoded."""
    shown = json.dumps(value, ensure_ascii=False)[1:-1]
    escaped = json.dumps(value)[1:-1]
    inside = json.dumps(shown, ensure_ascii=False)[1:-1]
    in_url = quote(encoded(value), safe="")
    spellings = (value, shown, escaped, inside, in_url, _compact(value))
    written = {encoded(spelled) for spelled in spellings if len(spelled) >= _SHORTEST_VALUE}
    return written.union(_in_base64(encoded(value)), _in_hex(encoded(value)))


def _in_base64(value: bytes) -> Iterator[bytes]:
    """What of base64 is the value's alone, wherever in three bytes it begins, in both alphabets."""
    for shift in range(3):
        whole = b64encode(bytes(shift) + value)
        own = whole[-(-shift * 8 // 6) : (shift + len(value)) * 8 // 6]
        yield from (own, own.translate(_SAFE_IN_URLS))


def _in_hex(value: bytes) -> tuple[bytes, bytes]:
    small = value.hex().encode()
    return small, small.upper()


def _compact(value: str) -> str:
    """Write a value that is JSON as it comes out when somebody has read it and written it again."""
    try:
        return orjson.dumps(orjson.loads(value)).decode()
    except ValueError:
        return value
