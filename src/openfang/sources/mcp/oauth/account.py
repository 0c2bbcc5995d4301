"""What is kept of a sign-in: tokens, for which address and from whom, and as which client."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.sources.mcp.spec import Http

_LEEWAY_SECONDS: Final = 30.0
_LEEWAY_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One sign-in. `wanted` are the scopes that the next one has to ask for.

    `client`, `server` and `resource` are the documents that the tokens came with: who we are there,
    the authorization server's metadata and the protected resource's.
    """

    url: str
    grant: str
    issuer: str = ""
    access: str = field(default="", repr=False)
    refresh: str = field(default="", repr=False)
    scope: str = ""
    issued_at: float = 0.0
    expires_at: float | None = None
    client: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    server: Mapping[str, Any] = field(default_factory=dict[str, Any])
    resource: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wanted: str = ""

    @property
    def headers(self) -> Mapping[str, str]:
        """What to send; nothing without a token."""
        return {"Authorization": f"Bearer {self.access}"} if self.access else {}

    @property
    def stale_at(self) -> float | None:
        """When to look for a new token: a little before this one ends."""
        if self.expires_at is None:
            return None
        life = max(0.0, self.expires_at - self.issued_at)
        return self.expires_at - min(_LEEWAY_SECONDS, life * _LEEWAY_SHARE)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of it nobody may see."""
        known = (self.access, self.refresh, str(self.client.get("client_secret") or ""))
        return tuple(value for value in known if value)

    def fits(self, reached: Http) -> bool:
        """Whether it was made for this address, and for what the operator says of it now."""
        oauth = reached.sign_in
        return (
            oauth is not None
            and (self.url, self.grant) == (reached.url, oauth.grant)
            and oauth.issuer.rstrip("/") in {"", self.issuer.rstrip("/")}
            and oauth.client_id in {"", self.client.get("client_id")}
        )

    def text(self) -> str:
        """Write it down."""
        return orjson.dumps(asdict(self)).decode()


def read_account(text: str) -> Account | None:
    """Read what was written down; what an older or newer version wrote counts as nothing."""
    try:
        return Account(**cast("dict[str, Any]", orjson.loads(text)))
    except (ValueError, TypeError):
        return None
