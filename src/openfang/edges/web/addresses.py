"""The addresses of the web page: what is at each, and what it takes. No I/O here."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from openfang.edges.api.paths import pattern_of

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
STATIC: Final = "/static/{name}"
THEME: Final = "/theme"
SHOWN: Final = "GET, HEAD"
SENT: Final = "POST"
BOTH: Final = "GET, HEAD, POST"
ROUTES: Final = {
    "/": SHOWN,
    "/calls": SHOWN,
    "/calls/live": SHOWN,
    "/calls/{id}": SHOWN,
    "/approvals": SHOWN,
    "/approvals/{id}": BOTH,
    "/tools": SHOWN,
    "/tools/{id}": BOTH,
    "/servers": BOTH,
    "/servers/{name}": BOTH,
    "/agents": SHOWN,
    "/agents/{name}": BOTH,
    "/agents/{name}/stream": SENT,
    "/tasks": SHOWN,
    "/tasks/{id}": BOTH,
    "/policy": BOTH,
    "/audit": BOTH,
    "/audit/export": SHOWN,
    "/keys": BOTH,
    "/settings": BOTH,
    LOGIN: BOTH,
    LOGOUT: SENT,
    THEME: SENT,
    STATIC: SHOWN,
}
"""What each address takes."""
PUBLIC: Final = frozenset({LOGIN, STATIC})
"""These are for everybody."""
_PATTERNS = [(pattern_of(path), path) for path in ROUTES]


def place_of(path: str) -> tuple[str, dict[str, str]]:
    """Find what is at an address, and what it names; nothing, if that is not ours."""
    if path in ROUTES:
        return path, {}
    for pattern, route in _PATTERNS:
        if found := pattern.match(path):
            return route, {name: unquote(value) for name, value in found.groupdict().items()}
    return "", {}
