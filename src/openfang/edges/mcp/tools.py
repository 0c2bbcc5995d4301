"""`tools/call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openfang.core.errors import CallFailed, CallRefused
from openfang.edges.mcp.client import options_of
from openfang.edges.mcp.refusals import refusal_result
from openfang.edges.mcp.results import call_result, check_fault
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.context import Context


async def call(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Make the call; what was refused is a result that says why."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        raise RpcError(INVALID_PARAMS, "name is missing, or no string")
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments is no object")
    given = cast("dict[str, Any]", arguments or {})
    try:
        result = await context.offer.call(name, given, options_of(params, context))
    except (CallRefused, CallFailed) as error:
        return refusal_result(error)
    return call_result(check_fault(result), context)
