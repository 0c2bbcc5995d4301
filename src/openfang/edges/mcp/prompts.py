"""`prompts/get` and `completion/complete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.edges.mcp.client import named, options_of
from openfang.edges.mcp.results import beside, check_fault
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.edges.mcp.context import Context


async def get(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Get a prompt, with its arguments filled in."""
    name, given = named(params)
    result = check_fault(await context.offer.prompt(name, given, options_of(params, context)))
    messages = [_message(part) for part in result.content]
    return {**beside(result, context), "messages": messages}


def _message(part: Part) -> dict[str, Any]:
    content = {name: value for name, value in part.items() if name != "role"}
    return {"role": part.get("role", "user"), "content": content}


async def complete(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Suggest how an argument could go on."""
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise RpcError(INVALID_PARAMS, "ref and argument are wanted, as objects")
    result = check_fault(await context.offer.complete(params, options_of(params, context)))
    return {**beside(result, context), "completion": result.structured or {"values": []}}
