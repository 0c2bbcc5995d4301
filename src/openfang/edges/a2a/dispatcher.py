"""JSON-RPC as the library takes it apart, with our own translation of 0.3 and our own writing."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

from openfang.edges.a2a.answers import Answers
from openfang.edges.a2a.dialect03 import Adapter03
from openfang.edges.a2a.pump import error_event
from openfang.edges.a2a.sdk import (
    EventSourceResponse,
    JsonRpcDispatcher,
    build_error_response,
    errors,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.edges.a2a.asked import Contexts
    from openfang.edges.a2a.handler import Handler
    from openfang.edges.a2a.pump import Piece
    from openfang.edges.a2a.sdk import ServerCallContext, pb
    from openfang.edges.a2a.written import Json

_JSON = "application/json"


class Dispatcher(JsonRpcDispatcher):
    """Serves all agents."""

    def __init__(self, handler: Handler, contexts: Contexts) -> None:
        super().__init__(handler, contexts, enable_v0_3_compat=True)
        self._v03_adapter = Adapter03(handler, contexts)
        self._answers = Answers(handler)

    async def _handle_send_message(
        self, request_obj: pb.SendMessageRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        return await self._answers.send(request_obj, context)

    async def _handle_get_task(
        self, request_obj: pb.GetTaskRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        return await self._answers.get(request_obj, context)

    async def _handle_list_tasks(
        self, request_obj: pb.ListTasksRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        return await self._answers.page(request_obj, context)

    async def _handle_cancel_task(
        self, request_obj: pb.CancelTaskRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        return await self._answers.cancel(request_obj, context)

    async def _process_streaming_request(
        self,
        request_id: str | int | None,
        request_obj: pb.SendMessageRequest | pb.SubscribeToTaskRequest,
        context: ServerCallContext,
    ) -> AsyncGenerator[Any]:
        return _pieces(request_id, await self._answers.story(request_obj, context))

    def _create_response(
        self, context: ServerCallContext, handler_result: AsyncGenerator[Any] | dict[str, Any]
    ) -> Response:
        del context
        if isinstance(handler_result, dict):
            return Response(orjson.dumps(handler_result), media_type=_JSON)
        return EventSourceResponse(handler_result)


async def _pieces(number: str | int | None, story: AsyncGenerator[Json]) -> AsyncGenerator[Piece]:
    async with aclosing(story):
        try:
            async for event in story:
                yield orjson.dumps({"jsonrpc": "2.0", "id": number, "result": event})
        except errors.A2AError as error:
            yield error_event(build_error_response(number, error))
