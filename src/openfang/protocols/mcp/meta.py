"""`_meta`: what a modern request says about its sender, and the token that progress comes back by.

What peers say about themselves is for display and debugging, never for a decision.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = f"{_PREFIX}protocolVersion"
CLIENT_INFO: Final = f"{_PREFIX}clientInfo"
CLIENT_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"
SERVER_INFO: Final = f"{_PREFIX}serverInfo"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - a name, not a secret
STEP: Final = "openfang/idempotency-key"
"""Under this a call of an agent's run says its name: the same, when it is made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """Who we say we are."""

    name: str
    version: str
    title: str = ""

    def fields(self) -> dict[str, str]:
        """As the wire has it."""
        named = {"name": self.name, "version": self.version}
        return {**named, "title": self.title} if self.title else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What every modern request says of its sender."""

    version: str
    client: ClientInfo
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def fields(self) -> dict[str, Any]:
        """As the wire has it."""
        return {
            PROTOCOL_VERSION: self.version,
            CLIENT_INFO: self.client.fields(),
            CLIENT_CAPABILITIES: dict(self.capabilities),
        }


def with_meta(params: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Copy params with fields added to their `_meta`; unknown fields stay, these win."""
    return {**params, "_meta": {**meta_of(params), **fields}} if params else {"_meta": {**fields}}


def meta_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read `_meta`, empty when there is none of the right shape."""
    meta: Mapping[str, Any] | None = params.get("_meta")
    return meta if isinstance(meta, dict) else {}
