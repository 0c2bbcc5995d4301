"""The published revisions, in two eras, and which of them two parties share.

Up to 2025-11-25 a connection begins with `initialize` (the handshake era). Since 2026-07-28 each
request says for itself which revision it speaks (the modern era).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = ("2026-07-28",)
KNOWN: Final = (*HANDSHAKE, *MODERN)
OLDEST: Final = HANDSHAKE[0]
NEWEST_HANDSHAKE: Final = HANDSHAKE[-1]
NEWEST: Final = MODERN[-1]


def is_modern(version: str) -> bool:
    """Whether requests of this revision stand alone."""
    return version in MODERN


def choose(offered: object, among: Iterable[str] = KNOWN) -> str:
    """Find the newest revision in a list that came over the wire and among ours; empty if none."""
    if not isinstance(offered, list):
        return ""
    words = cast("list[object]", offered)
    return max((version for version in among if version in words), default="")
