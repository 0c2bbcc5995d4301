"""A2A 1.0 over HTTP and JSON: what stands in an address, its query and a body, and the answer."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import orjson
from google.protobuf.message import Message as Proto
from starlette.responses import Response

from openfang.edges.a2a.answers import Answers
from openfang.edges.a2a.asked import asked_by
from openfang.edges.a2a.pump import error_event
from openfang.edges.a2a.sdk import (
    EventSourceResponse,
    Parse,
    ParseError,
    build_rest_error_payload,
    errors,
    parse_params,
    pb,
)
from openfang.edges.a2a.versions import A2A_JSON

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from starlette.requests import Request

    from openfang.edges.a2a.asked import Asked
    from openfang.edges.a2a.handler import Handler
    from openfang.edges.a2a.pump import Piece
    from openfang.edges.a2a.written import Json

    Serve: TypeAlias = Callable[[Request], Awaitable[Response]]
    Does: TypeAlias = Callable[[Request, Asked], Awaitable[Json]]
    Watches: TypeAlias = Callable[
        [Request], Awaitable[pb.SendMessageRequest | pb.SubscribeToTaskRequest]
    ]

P = TypeVar("P", bound=Proto)
_TASK: Final = "/tasks/{id}"
_PUSHES: Final = "/tasks/{id}/pushNotificationConfigs"
_PUSH: Final = "/tasks/{id}/pushNotificationConfigs/{push_id}"


class Rest:
    """Serves all agents."""

    def __init__(self, handler: Handler) -> None:
        self._answers = Answers(handler)

    def routes(self) -> Mapping[tuple[str, str], Serve]:
        """List the addresses, the more special ones first."""
        told: dict[tuple[str, str], Watches] = {
            ("/message:stream", "POST"): _message,
            (f"{_TASK}:subscribe", "GET"): _watched,
            (f"{_TASK}:subscribe", "POST"): _watched,
        }
        answered: dict[tuple[str, str], Does] = {
            ("/message:send", "POST"): self._send,
            (f"{_TASK}:cancel", "POST"): self._cancel,
            (_TASK, "GET"): self._get,
            ("/tasks", "GET"): self._list,
            (_PUSHES, "POST"): self._set_push,
            (_PUSHES, "GET"): self._pushes,
            (_PUSH, "GET"): self._push,
            (_PUSH, "DELETE"): self._delete_push,
            ("/extendedAgentCard", "GET"): self._card,
        }
        return {
            **{place: partial(self._told, read) for place, read in told.items()},
            **{place: partial(self._answered, does) for place, does in answered.items()},
        }

    async def _answered(self, does: Does, request: Request) -> Response:
        try:
            return _response(await does(request, asked_by(request)))
        except (errors.A2AError, ParseError) as error:
            return _failure(error)

    async def _told(self, read: Watches, request: Request) -> Response:
        try:
            story = await self._answers.story(await read(request), asked_by(request))
        except (errors.A2AError, ParseError) as error:
            return _failure(error)
        return EventSourceResponse(_pieces(story))

    async def _send(self, request: Request, asked: Asked) -> Json:
        return await self._answers.send(await _message(request), asked)

    async def _get(self, request: Request, asked: Asked) -> Json:
        params = _query(request, pb.GetTaskRequest())
        params.id = request.path_params["id"]
        return await self._answers.get(params, asked)

    async def _list(self, request: Request, asked: Asked) -> Json:
        return await self._answers.page(_query(request, pb.ListTasksRequest()), asked)

    async def _cancel(self, request: Request, asked: Asked) -> Json:
        params = pb.CancelTaskRequest(id=request.path_params["id"])
        return await self._answers.cancel(params, asked)

    async def _set_push(self, request: Request, asked: Asked) -> Json:
        params = await _body(request, pb.TaskPushNotificationConfig())
        params.task_id = request.path_params["id"]
        return await self._answers.set_push(params, asked)

    async def _pushes(self, request: Request, asked: Asked) -> Json:
        params = _query(request, pb.ListTaskPushNotificationConfigsRequest())
        params.task_id = request.path_params["id"]
        return await self._answers.pushes(params, asked)

    async def _push(self, request: Request, asked: Asked) -> Json:
        params = pb.GetTaskPushNotificationConfigRequest(**_named(request))
        return await self._answers.push(params, asked)

    async def _delete_push(self, request: Request, asked: Asked) -> Json:
        params = pb.DeleteTaskPushNotificationConfigRequest(**_named(request))
        await self._answers.delete_push(params, asked)
        return {}

    async def _card(self, request: Request, asked: Asked) -> Json:
        del request
        return await self._answers.card(pb.GetExtendedAgentCardRequest(), asked)


async def _message(request: Request) -> pb.SendMessageRequest:
    return await _body(request, pb.SendMessageRequest())


async def _watched(request: Request) -> pb.SubscribeToTaskRequest:
    return pb.SubscribeToTaskRequest(id=request.path_params["id"])


async def _body(request: Request, params: P) -> P:
    return Parse(await request.body(), params, ignore_unknown_fields=True)


def _query(request: Request, params: P) -> P:
    parse_params(request.query_params, params)
    return params


def _named(request: Request) -> dict[str, str]:
    """Which push of which task an address names."""
    return {"task_id": request.path_params["id"], "id": request.path_params["push_id"]}


def _response(body: Mapping[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type=A2A_JSON)


def _failure(error: errors.A2AError | ParseError) -> Response:
    body = build_rest_error_payload(error)
    return _response(body, body["error"]["code"])


async def _pieces(story: AsyncGenerator[Json]) -> AsyncGenerator[Piece]:
    async with aclosing(story):
        try:
            async for event in story:
                yield orjson.dumps(event)
        except errors.A2AError as error:
            yield error_event(build_rest_error_payload(error))
