"""What a server says in `WWW-Authenticate`, as far as a sign-in needs it (RFC 9110, 6750, 9728)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNAUTHORIZED: Final = 401
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
_TOKEN: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # noqa: S105 - RFC 9110's word
_PART = re.compile(
    rf"""[\s,]*(?:
        (?P<name>{_TOKEN})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))
      | (?P<scheme>{_TOKEN})(?:\s+[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|\Z)))?
    )""",
    re.VERBOSE,
)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """Why credentials are wanted, and where it is written who gives them."""

    status: int = UNAUTHORIZED
    error: str = ""
    scope: str = ""
    resource_metadata: str = ""

    @property
    def wants_scope(self) -> bool:
        """Whether the token is good, but not for this."""
        return self.status != UNAUTHORIZED and self.error == INSUFFICIENT_SCOPE

    def header(self) -> str:
        """Write it as one challenge, so that it has one reading."""
        fields = {
            "error": self.error,
            "scope": self.scope,
            "resource_metadata": self.resource_metadata,
        }
        said = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        return f"Bearer {said}".rstrip()


def read_challenge(status: int, headers: Iterable[str]) -> Challenge:
    """Read what is said of bearer tokens; of two that say the same thing, the first counts."""
    fields: dict[str, str] = {}
    for header in headers:
        for name, value in _bearer(header):
            fields.setdefault(name, value)
    metadata = fields.get("resource_metadata", "")
    return Challenge(
        status=status,
        error=INSUFFICIENT_SCOPE if fields.get("error") == INSUFFICIENT_SCOPE else "",
        scope=join_scopes(fields.get("scope", "")),
        resource_metadata="" if '"' in metadata else metadata,
    )


def _bearer(header: str) -> Iterator[tuple[str, str]]:
    scheme, at = "", 0
    while found := _PART.match(header, at):
        at = found.end()
        if found["scheme"]:
            scheme = found["scheme"].lower()
        elif scheme == "bearer":
            quoted = found["quoted"]
            value = found["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            yield found["name"].lower(), value


def join_scopes(*scopes: str) -> str:
    """Join lists of scopes, each scope once; what no scope can be is left out."""
    words = (word for scope in scopes for word in scope.split())
    return " ".join(dict.fromkeys(word for word in words if _SCOPE.fullmatch(word)))
