"""Results as the wire has them, in the revision that the client speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.bodies import receipt_beside
from openfang.core.labels import Labels
from openfang.protocols.hops.labels import LABELS, hints_of
from openfang.protocols.hops.words import ANSWER
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.meta import SERVER_INFO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Result
    from openfang.core.session import Options
    from openfang.edges.mcp.context import Context

STRUCTURED_SINCE: Final = "2025-06-18"
_OWN: Final = "openfang/"
_OURS: Final = frozenset(
    {
        *("content", "contents", "messages", "completion", "structuredContent", "isError"),
        *("_meta", "resultType", "inputRequests", "requestState"),
    }
)


def call_result(result: Result, context: Context) -> dict[str, Any]:
    """Write what a tool answered. What the first revisions have no word for is left out there."""
    body = beside(result, context)
    body["content"] = list(result.content)
    if result.structured is not None and context.version >= STRUCTURED_SINCE:
        body["structuredContent"] = result.structured
    if result.is_error:
        body["isError"] = True
    return body


def beside(result: Result, context: Context) -> dict[str, Any]:
    """What a server sent beside its answer, and our receipt: it cannot say what only we can."""
    body = {name: value for name, value in result.extra.items() if name not in _OURS}
    if meta := _meta(result, context):
        body["_meta"] = meta
    return body


def _meta(result: Result, context: Context) -> dict[str, Any]:
    sent = {
        name: value
        for name, value in result.meta.items()
        if not name.startswith(_OWN) and name != SERVER_INFO
    }
    receipt = receipt_beside(result.call_id, result.receipt)
    labels = {LABELS: hints_of(result.labels)} if context.modern and result.labels else {}
    return {**sent, **receipt, **labels}


def vouched(
    body: dict[str, Any], options: Options, context: Context, labels: Labels = Labels.NONE
) -> dict[str, Any]:
    """Sign what is said of an answer, for a node that signed what it asked."""
    chain = options.chain
    token = context.offer.vouch(chain.claims, labels) if chain and chain.claims else ""
    return {**body, "_meta": {**body.get("_meta", {}), ANSWER: token}} if token else body


def check_fault(result: Result) -> Result:
    """Raise the error that a server answered with in the place of a result."""
    fault = result.fault
    if fault is None:
        return result
    code = fault.get("code")
    raise RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        str(fault.get("message", "")),
        fault.get("data"),
    )


def stamped(result: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Say what a modern result says of itself: whether it is complete, and whose it is."""
    own: Mapping[str, Any] = result.get("_meta") or {}
    meta = {SERVER_INFO: dict(context.offer.info), **own}
    return {"resultType": "complete", **result, "_meta": meta}
