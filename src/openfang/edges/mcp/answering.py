"""One request, answered by the handler: paid for, and ended well whatever ends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from openfang.edges.api.serving import go_on, serving
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.messages import answer, failure

if TYPE_CHECKING:
    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.staying import Staying
    from openfang.protocols.mcp.messages import Ask

CALL: Final = "tools/call"
_ENDING: Final = "The node is ending: this was cancelled, and may have had an effect"
_TURNED_AWAY: Final = "The key has ended: this was cancelled, and may have had an effect"


def charge(came: Came, method: str = "") -> None:
    """Take the cells of a request from the caller's rate; the pipeline charges for calls."""
    if method != CALL:
        came.node.charge(came.caller, "health")


def charge_unmade(came: Came, method: str) -> None:
    """Take the cells of a request that never came as far as to be paid for."""
    came.node.charge(came.caller, "call" if method == CALL else "health")


async def answered(
    handler: Handler, ask: Ask, context: Context, came: Came, staying: Staying
) -> tuple[bytes, RpcError | None]:
    """Answer a request: the message that goes back, and the error, if it is one."""
    with staying.attend(came, serving().cancel) as stay:
        try:
            return answer(ask.id, await handler.handle(ask.method, ask.params, context)), None
        except RpcError as error:
            if ask.method == CALL:
                charge_unmade(came, CALL)  # who guesses names pays for it
            return failure(ask.id, error), error
        except asyncio.CancelledError:
            if came.node.ready and not stay.ended:
                raise
            # It was begun before the end, so nobody may think that it was not.
            go_on()
            why = _TURNED_AWAY if stay.ended else _ENDING
            return failure(ask.id, RpcError(INTERNAL_ERROR, why)), None
