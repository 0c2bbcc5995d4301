"""How severe a message is, from the least to the most; and how a modern request asks for some."""

from __future__ import annotations

from typing import Final

LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
_SEVERITY: Final = {level: number for number, level in enumerate(LEVELS)}


def severity(level: object) -> int:
    """Order levels; a word that is none counts as less severe than all of them."""
    return _SEVERITY.get(level, -1) if isinstance(level, str) else -1
