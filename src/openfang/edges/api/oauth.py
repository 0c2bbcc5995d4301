"""What an OAuth client is told: where it gets tokens (RFC 9728), and why it was turned away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from openfang.core.errors import INSUFFICIENT_SCOPE, INVALID_TOKEN, CallRefused, Unauthenticated
from openfang.core.values import dataclass
from openfang.edges.api.exchange import secret_of

if TYPE_CHECKING:
    from openfang.core.errors import OpenFangError
    from openfang.edges.api.exchange import Headers, Scope

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# An edge is one resource, and so is each toolset and each agent that is served as a server.
_RESOURCE = re.compile(r"/(?:mcp(?:(?:/agents)?/[A-Za-z0-9._~%-]+)?|api)(?=/|\Z)")
_IN_A_URL = ":/?#[]@!$&'()*+,;=%~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Whose tokens are accepted, and with which scopes; `base` is our own public address."""

    issuer: str
    scopes: tuple[str, ...] = ()
    base: str | None = None


def metadata(authority: Authority, headers: Headers, path: str) -> dict[str, Any]:
    """Describe the resource at a path as RFC 9728 says."""
    return {
        "resource": _base(authority, headers) + path,
        "authorization_servers": [authority.issuer],
        "bearer_methods_supported": ["header"],
        **({"scopes_supported": list(authority.scopes)} if authority.scopes else {}),
    }


def challenge(
    authority: Authority | None, error: OpenFangError, scope: Scope
) -> tuple[tuple[bytes, bytes], ...]:
    """Write the header that tells a client what would help; nothing where no token would."""
    if not isinstance(error, CallRefused) or authority is None:
        return ()
    headers: Headers = dict(scope["headers"])
    problem = _problem(error, headers)
    if problem is None:
        return ()
    place = WELL_KNOWN + _resource(scope["raw_path"].decode("latin-1"))
    fields = {
        "error": problem,
        "error_description": error.message if problem else "",
        "scope": " ".join(authority.scopes),
        "resource_metadata": _base(authority, headers) + place,
    }
    words = ", ".join(f'{name}="{_quoted(value)}"' for name, value in fields.items() if value)
    return ((b"www-authenticate", f"Bearer {words}".encode()),)


def _problem(error: CallRefused, headers: Headers) -> str | None:
    """Name the problem as RFC 6750 does: without any credential there is none to speak of."""
    if isinstance(error, Unauthenticated):
        return "" if secret_of(headers) is None else INVALID_TOKEN
    return INSUFFICIENT_SCOPE if error.rule == INSUFFICIENT_SCOPE else None


def _resource(path: str) -> str:
    found = _RESOURCE.match(path)
    return found[0] if found else ""


def _base(authority: Authority, headers: Headers) -> str:
    """Our public address, else the one that was asked: its host was found to be ours."""
    asked = headers.get(b"host", b"localhost").decode("latin-1")
    return quote(authority.base or f"http://{asked}", safe=_IN_A_URL)


def _quoted(text: str) -> str:
    return "".join(c for c in text if c.isascii() and c.isprintable() and c not in '"\\')
