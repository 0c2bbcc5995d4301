"""The seed's router: a call, by its words, on the one path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.compat.house import House, current
from openfang.compat.words import InvocationContext, ToolResult
from openfang.core.bodies import failure_body, problem_body, result_body
from openfang.core.calls import Call
from openfang.core.errors import CallFailed, CallRefused
from openfang.core.trace import new_chain
from openfang.core.values import dataclass
from openfang.policy.context import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Result

_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class ToolRouter:
    """Calls tools as the caller of a house, else of the one in use."""

    house: House | None = None

    async def invoke_tool(
        self, tool_id: str, args: Mapping[str, Any], ctx: InvocationContext
    ) -> ToolResult:
        """Take a call through the pipeline. A refusal is a result, with the reason as its error.

        The context chooses among what is bound to the caller, or tightens it. Whether its spec is
        frozen is looked up by its hash, whatever it claims.
        """
        house = self.house or current()
        clock = house.parts.clock
        began = clock.monotonic()
        answer = await _invoked(house, tool_id, args, ctx)
        return replace(answer, duration_ms=int((clock.monotonic() - began) * _MILLISECONDS))


async def _invoked(
    house: House, tool_id: str, args: Mapping[str, Any], ctx: InvocationContext
) -> ToolResult:
    call_id = ""
    try:
        call = _call(house, tool_id, args, ctx)
        call_id = call.id
        result = await house.parts.pipeline.invoke(call)
    except CallRefused as refusal:
        body = problem_body(refusal)
        return ToolResult(error=refusal.message, invocation_id=call_id, metadata=body)
    except CallFailed as failure:
        body = failure_body(failure)
        return ToolResult(error=failure.message, invocation_id=call_id, metadata=body)
    return ToolResult(
        success=not result.is_error,
        payload=_payload(result),
        error=result.text if result.is_error else None,
        invocation_id=call_id,
        declared_side_effects=_side_effects(house, tool_id),
        metadata=result_body(result),
    )


def _call(house: House, tool_id: str, args: Mapping[str, Any], ctx: InvocationContext) -> Call:
    parts = house.parts
    deadline = parts.clock.monotonic() + parts.config.guard.deadline_secs
    return Call(
        tool=tool_id,
        caller=house.caller,
        arguments=args,
        context=bind(house.caller, ctx.wish, parts.config.policy.blacklist),
        chain=replace(new_chain(), deadline=deadline),
        run=ctx.session_id,
        admin_token=ctx.admin_token,
        edge="python",
    )


def _payload(result: Result) -> Any:  # noqa: ANN401 - any JSON
    if result.structured is not None:
        return result.structured
    parts = result.content
    return parts[0]["text"] if [part.get("type") for part in parts] == ["text"] else list(parts)


def _side_effects(house: House, tool_id: str) -> list[str]:
    tool = house.parts.registry.find(tool_id)
    return sorted(tool.tags) if tool else []
