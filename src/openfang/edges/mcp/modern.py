"""What a request of the modern era says of its sender: revision, capabilities, log level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openfang.edges.mcp.context import Context
from openfang.protocols.mcp.errors import INVALID_PARAMS, UNSUPPORTED_VERSION, RpcError
from openfang.protocols.mcp.levels import LEVELS, LOG_LEVEL
from openfang.protocols.mcp.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, meta_of
from openfang.protocols.mcp.versions import MODERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.ports import Link, Offer
    from openfang.protocols.mcp.messages import Id


def is_modern_request(params: Mapping[str, Any]) -> bool:
    """Whether a request says for itself which revision it speaks."""
    return PROTOCOL_VERSION in meta_of(params)


def modern_context(
    params: Mapping[str, Any],
    offer: Offer,
    link: Link,
    *,
    number: Id | None = None,
    run: str | None = None,
) -> Context:
    """Read what the request says of its sender; what must be there and is not is an error."""
    meta = meta_of(params)
    capabilities, info, level = (meta.get(k) for k in (CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL))
    version = meta.get(PROTOCOL_VERSION)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta lacks {PROTOCOL_VERSION}")
    if version not in MODERN:
        data = {"supported": list(MODERN), "requested": version[:100]}
        raise RpcError(UNSUPPORTED_VERSION, f"{version[:100]} is not spoken here", data)
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta lacks {CLIENT_CAPABILITIES}")
    if info is not None and not isinstance(info, dict):
        raise RpcError(INVALID_PARAMS, f"{CLIENT_INFO} is no object")
    if level is not None and level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"{LOG_LEVEL} is one of {', '.join(LEVELS)}")
    return Context(
        offer=offer,
        link=link,
        version=version,
        capabilities=cast("dict[str, Any]", capabilities),
        level=level or "",
        number=number,
        run=run,
    )
