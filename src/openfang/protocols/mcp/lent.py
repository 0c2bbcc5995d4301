"""What nodes of one cluster add to MCP when one uses a server that runs at another. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.protocols.mcp.meta import meta_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMBER: Final = "openfang/member"
"""In `_meta` of a request: the `call` that it belongs to, its `client`, its `headers`."""
LOST: Final = -32090
"""The server was lost in the middle of the request."""
UNMADE: Final = -32091
"""The server was not asked."""


def member_in(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read what the other node says of a request; it vouches for it with its signature."""
    said = meta_of(params).get(MEMBER)
    return cast("Mapping[str, Any]", said) if isinstance(said, dict) else {}


def without_member(params: Mapping[str, Any]) -> dict[str, Any]:
    """Take that out again: the server is not to see it."""
    meta = meta_of(params)
    if MEMBER not in meta:
        return dict(params)
    return {**params, "_meta": {name: value for name, value in meta.items() if name != MEMBER}}
