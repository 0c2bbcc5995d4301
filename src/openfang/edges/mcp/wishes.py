"""What a request chooses of what is bound to its caller, in `_meta` (C7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Mode
from openfang.edges.api.wishes import wrong_with
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT_KEY: Final = "openfang/context"
TOKEN_KEY: Final = "openfang/adminToken"  # noqa: S105 - a name, not a secret


def wishes_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Read them as fields of `Options`; whether the caller may is decided further in."""
    if CONTEXT_KEY not in meta and TOKEN_KEY not in meta:
        return {}
    token = meta.get(TOKEN_KEY)
    if token is not None and not isinstance(token, str):
        raise RpcError(INVALID_PARAMS, f"_meta {TOKEN_KEY} is no string")
    chosen = _chosen(meta.get(CONTEXT_KEY, {}))
    return {**chosen, "admin_token": token} if token else chosen


def _chosen(context: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    if why := wrong_with(context):
        raise RpcError(INVALID_PARAMS, f"_meta {CONTEXT_KEY} is not as documented: {why}")
    named = {
        "project": context.get("project_id"),
        "spec": context.get("spec_hash"),
        "task": context.get("task_id"),
        "run": context.get("run"),
        "mode": Mode(context["mode"]) if "mode" in context else None,
    }
    found = {name: value for name, value in named.items() if value is not None}
    return {**found, "blacklist": frozenset(context.get("blacklist", ()))}
