"""JSON-RPC: which operation of A2A a call is, and its answer; 0.3 is the library's to translate."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson
from starlette.responses import Response

from openfang.edges.a2a.answers import Answers
from openfang.edges.a2a.dialect03 import Adapter03
from openfang.edges.a2a.pump import error_event
from openfang.edges.a2a.sdk import (
    EventSourceResponse,
    ParseDict,
    ParseError,
    build_error_response,
    errors,
    pb,
)
from openfang.edges.a2a.versions import V03

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from google.protobuf.message import Message as Proto
    from starlette.requests import Request

    from openfang.edges.a2a.asked import Asked, Contexts
    from openfang.edges.a2a.handler import Handler
    from openfang.edges.a2a.pump import Piece
    from openfang.edges.a2a.written import Json

    Does: TypeAlias = Callable[[Any, Asked], Awaitable[Json | None]]
    Tells: TypeAlias = Callable[[Any, Asked], Awaitable[AsyncGenerator[Json]]]
    Number: TypeAlias = str | int | None

_JSON: Final = "application/json"


class Dispatcher:
    """Serves all agents."""

    def __init__(self, handler: Handler, contexts: Contexts) -> None:
        self._older = Adapter03(handler, contexts)
        answers = Answers(handler)
        self._answered: Mapping[str, tuple[type[Proto], Does]] = {
            "SendMessage": (pb.SendMessageRequest, answers.send),
            "GetTask": (pb.GetTaskRequest, answers.get),
            "ListTasks": (pb.ListTasksRequest, answers.page),
            "CancelTask": (pb.CancelTaskRequest, answers.cancel),
            "CreateTaskPushNotificationConfig": (pb.TaskPushNotificationConfig, answers.set_push),
            "GetTaskPushNotificationConfig": (
                pb.GetTaskPushNotificationConfigRequest,
                answers.push,
            ),
            "ListTaskPushNotificationConfigs": (
                pb.ListTaskPushNotificationConfigsRequest,
                answers.pushes,
            ),
            "DeleteTaskPushNotificationConfig": (
                pb.DeleteTaskPushNotificationConfigRequest,
                answers.delete_push,
            ),
            "GetExtendedAgentCard": (pb.GetExtendedAgentCardRequest, answers.card),
        }
        self._told: Mapping[str, tuple[type[Proto], Tells]] = {
            "SendStreamingMessage": (pb.SendMessageRequest, answers.story),
            "SubscribeToTask": (pb.SubscribeToTaskRequest, answers.story),
        }

    async def answer(self, body: object, asked: Asked, request: Request) -> Response:
        """Answer one call; what is wrong with it comes in its envelope."""
        number = number_of(body)
        try:
            call = _checked(body)
            method = call["method"]
            if asked.version == V03:
                return await self._older.answer(number, call, request)
            if method in self._told:
                kind, tells = self._told[method]
                story = await tells(_read(kind, call), asked)
                return EventSourceResponse(_pieces(number, story))
            kind, does = self._answered[method]
            return _response(
                {**_ENVELOPE, "id": number, "result": await does(_read(kind, call), asked)}
            )
        except errors.A2AError as error:
            return _response(build_error_response(number, error))


_ENVELOPE: Final = {"jsonrpc": "2.0"}


def number_of(body: object) -> Number:
    """Find the id of what can be answered by it."""
    match body:
        case {"id": bool()}:
            return None
        case {"id": str() | int() as number}:
            return number
        case _:
            return None


def _checked(body: object) -> dict[str, Any]:
    """Refuse what is no call."""
    if not isinstance(body, dict):
        raise errors.InvalidRequestError("A request is an object.")
    call = cast("dict[str, Any]", body)
    if call.get("jsonrpc") != "2.0":
        raise errors.InvalidRequestError("jsonrpc is not '2.0'.")
    if call.get("id") is not None and number_of(call) is None:
        raise errors.InvalidRequestError("id is no string and no integer.")
    if not call.get("method") or not isinstance(call["method"], str):
        raise errors.InvalidRequestError("method is missing, or no string.")
    return call


def _read(kind: type[Proto], call: Mapping[str, Any]) -> Proto:
    params = call.get("params")
    try:
        return ParseDict({} if params is None else params, kind(), ignore_unknown_fields=True)
    except (ParseError, TypeError, ValueError, AttributeError) as error:
        raise errors.InvalidParamsError(f"params cannot be read: {error}") from None


def _response(body: Mapping[str, Any]) -> Response:
    return Response(orjson.dumps(body), media_type=_JSON)


async def _pieces(number: Number, story: AsyncGenerator[Json]) -> AsyncGenerator[Piece]:
    async with aclosing(story):
        try:
            async for event in story:
                yield orjson.dumps({**_ENVELOPE, "id": number, "result": event})
        except errors.A2AError as error:
            yield error_event(build_error_response(number, error))
