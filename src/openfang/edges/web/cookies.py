"""The cookies of the page: who is signed in, and the theme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Headers

THEME: Final = "openfang_theme"
KEYS: Final = "openfang_keys"
THEMES: Final = frozenset({"light", "dark"})
_YEAR: Final = 365 * 24 * 3600


def read_cookies(headers: Headers) -> dict[str, str]:
    """Read what the browser sent; of two of one name the first holds."""
    found: dict[str, str] = {}
    for piece in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, text = piece.strip().partition("=")
        found.setdefault(name, text)
    return found


def session_cookie(headers: Headers) -> str:
    """Name the cookie: browsers give it to every port of a host, and each node has its own."""
    _, _, port = headers.get(b"host", b"").decode("latin-1").rpartition(":")
    return f"openfang_{port}" if port.isdigit() else "openfang"


def set_cookie(name: str, text: str, *, secure: bool, script: bool = False) -> tuple[bytes, bytes]:
    """Give the browser a cookie for this node's own pages; an empty one is taken away."""
    age = "" if text and not script else f"; Max-Age={_YEAR if text else 0}"
    ends = f"{'' if script else '; HttpOnly'}{'; Secure' if secure else ''}"
    return b"set-cookie", f"{name}={text}; Path=/; SameSite=Strict{age}{ends}".encode()
