"""The one handler: a method and its params in, a result out, whatever way they came by.

What it raises is `RpcError`. A refusal that a model should read is a result like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.errors import OpenFangError
from openfang.edges.mcp import greeting, listing, prompts, resources, tools
from openfang.edges.mcp.changes import listen
from openfang.edges.mcp.context import Context
from openfang.edges.mcp.parked import Parked
from openfang.edges.mcp.refusals import rpc_error
from openfang.edges.mcp.results import stamped
from openfang.protocols.mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.levels import LEVELS

if TYPE_CHECKING:
    from openfang.core.ports import Clock

Answers: TypeAlias = Callable[[Mapping[str, Any], Context], Awaitable[dict[str, Any]]]
_ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


class Handler:
    """Answers requests. The state of a parked call is authenticated by `secret`, and on `node`."""

    def __init__(self, *, secret: bytes, clock: Clock, node: str = "") -> None:
        self._parked = Parked(secret, clock, node)
        both: dict[str, Answers] = {
            "tools/list": listing.tools,
            "tools/call": tools.call,
            "resources/list": listing.resources,
            "resources/templates/list": listing.templates,
            "resources/read": resources.read,
            "prompts/list": listing.prompts,
            "prompts/get": prompts.get,
            "completion/complete": prompts.complete,
        }
        self._modern: Mapping[str, Answers] = {
            **both,
            "server/discover": greeting.discover,
            "subscriptions/listen": listen,
        }
        self._handshake: Mapping[str, Answers] = {
            **both,
            "initialize": greeting.initialize,
            "ping": _ping,
            "logging/setLevel": _set_level,
            "resources/subscribe": resources.subscribe,
            "resources/unsubscribe": resources.unsubscribe,
        }

    async def handle(
        self, method: str, params: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        """Answer one request."""
        known = self._modern if context.modern else self._handshake
        answers = known.get(method)
        if answers is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        try:
            if not context.modern:
                return await answers(params, context)
            if method in _ASKING:
                result = await self._parked.answer(method, answers, params, context)
            else:
                result = await answers(params, context)
            return stamped(result, context)
        except OpenFangError as error:
            raise rpc_error(error) from error

    def elsewhere(self, method: str, params: Mapping[str, Any], context: Context) -> str:
        """Name the other node that has what this request goes on with, if one has."""
        if "requestState" not in params or method not in _ASKING:
            return ""
        return self._parked.elsewhere(method, params, context)

    def left(self, run: str) -> None:
        """End what waits for the answers of a client that has hung up."""
        self._parked.left(run)

    def close(self) -> None:
        """End what waits for a client's answer."""
        self._parked.close()


async def _ping(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    del params, context
    return {}


async def _set_level(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    level = params.get("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"level is one of {', '.join(LEVELS)}")
    if context.talk is not None:
        context.talk.level = level
    return {}
