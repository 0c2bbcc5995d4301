"""`tools/call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.errors import CallFailed, CallRefused
from openfang.edges.mcp.client import named, options_of
from openfang.edges.mcp.refusals import refusal_result
from openfang.edges.mcp.results import call_result, check_fault, vouched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.context import Context


async def call(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Make the call; what was refused is a result that says why."""
    name, given = named(params)
    options = options_of(params, context)
    try:
        result = await context.offer.call(name, given, options)
    except (CallRefused, CallFailed) as error:
        return vouched(refusal_result(error), options, context)
    body = call_result(check_fault(result), context)
    return vouched(body, options, context, result.labels)
