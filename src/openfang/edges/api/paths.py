"""Addresses with places in them, such as `/api/tools/{tool}/call`, as patterns."""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"\{([a-z_]+)\}")


def pattern_of(path: str) -> re.Pattern[str]:
    """Match the addresses that a path stands for; each place takes one segment."""
    pieces = _PLACE.split(path)
    written = (
        f"(?P<{piece}>[^/]+)" if number % 2 else re.escape(piece)
        for number, piece in enumerate(pieces)
    )
    return re.compile(rf"{''.join(written)}\Z")
