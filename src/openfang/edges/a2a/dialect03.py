"""A2A 0.3 as the library translates it, with what its translation gets wrong put right.

Bad parameters are -32602, not a bad request or a mistake of ours; a stream says that it is final
when it is, also where the caller's turn has come; and a history of no length is none.
"""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import JSONResponse

from openfang.edges.a2a.incoming import plain_base64
from openfang.edges.a2a.sdk import (
    EventSourceResponse,
    InvalidRequest03,
    JSONRPC03Adapter,
    JSONRPCError,
    MessageToDict,
    Parse,
    ParseError,
    RequestHandler03,
    REST03Adapter,
    REST03Handler,
    build_rest_error_payload,
    conversions03,
    errors,
    parse_params,
    pb,
    pb03,
    proto03,
    to_stream_response,
    types03,
)

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
        Mapping,
    )

    from starlette.requests import Request
    from starlette.responses import Response

    from openfang.edges.a2a.handler import Written
    from openfang.edges.a2a.sdk import (
        RequestHandler,
        ServerCallContext,
        ServerCallContextBuilder,
    )

_INTERNAL: Final = -32603
_INVALID_PARAMS: Final = -32602
_WAITING: Final = (types03.TaskState.input_required, types03.TaskState.auth_required)
_OF_HTTP: Final = ("scheme", "description")
_ONE_PUSH: Final = "/v1/tasks/{id}/pushNotificationConfigs/{push_id}"


@contextmanager
def _readable() -> Generator[None]:
    """Say of what cannot be translated that it is the request that is wrong."""
    try:
        yield
    except (ParseError, ValueError) as error:
        raise errors.InvalidParamsError(f"The request cannot be read: {error}") from None


class Handler03(RequestHandler03):
    """The operations in the words of 0.3."""

    async def on_message_send(
        self, request: types03.SendMessageRequest, context: ServerCallContext
    ) -> types03.Task:
        """Take a message."""
        params = _current(request)
        task = await self.request_handler.on_message_send(params, context)
        return conversions03.to_compat_task(cast("pb.Task", task))

    async def on_message_send_stream(
        self, request: types03.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[types03.SendStreamingMessageSuccessResponse]:
        """Take a message, and tell what becomes of it."""
        params = _current(request)
        async for event in self.request_handler.on_message_send_stream(params, context):
            told = _translated(cast("Written", event), request.id)
            result = told.result
            if (
                isinstance(result, types03.TaskStatusUpdateEvent)
                and result.status.state in _WAITING
            ):
                result.final = True
            yield told

    async def on_get_task(
        self, request: types03.GetTaskRequest, context: ServerCallContext
    ) -> types03.Task:
        """Read a task."""
        with _readable():
            params = conversions03.to_core_get_task_request(request)
            if request.params.history_length == 0:
                params.history_length = 0
        task = await self.request_handler.on_get_task(params, context)
        return conversions03.to_compat_task(cast("pb.Task", task))


def _current(request: types03.SendMessageRequest) -> pb.SendMessageRequest:
    """Translate a message; the library would drop half of the letters of the other alphabet."""
    for part in request.params.message.parts:
        match part.root:
            case types03.FilePart(file=types03.FileWithBytes() as file):
                file.bytes = plain_base64(file.bytes)
            case _:
                pass
    with _readable():
        params = conversions03.to_core_send_message_request(request)
    wanted = request.params.configuration
    if wanted is not None and wanted.history_length == 0:
        params.configuration.history_length = 0
    return params


def _translated(event: Written, number: str | int) -> types03.SendStreamingMessageSuccessResponse:
    return conversions03.to_compat_stream_response(to_stream_response(event), number)


def failure03(number: str | int | None, error: Exception | JSONRPCError) -> dict[str, Any]:
    """Write an error as JSON-RPC has it; what is no request by its parameters has bad ones."""
    match error:
        case InvalidRequest03():
            told = {"code": _INVALID_PARAMS, "message": f"Invalid params: {_first(error)}"}
        case JSONRPCError():
            told = error.model_dump(by_alias=True, exclude_none=True)
        case errors.A2AError():
            code = errors.JSON_RPC_ERROR_CODE_MAP.get(type(error), _INTERNAL)
            told = {"code": code, "message": error.message, "data": cast("Any", error).data}
        case _:
            told = {"code": _INTERNAL, "message": "Internal error"}
    return {"jsonrpc": "2.0", "id": number, "error": told}


def _first(error: InvalidRequest03) -> str:
    """What is wrong first, of the many lines that the library's reader has for it."""
    lines = str(cast("Any", error).data).splitlines()[1:3]
    return ": ".join(line.strip().partition(" [type=")[0] for line in lines)


class Adapter03(JSONRPC03Adapter):
    """It over JSON-RPC."""

    def __init__(self, handler: RequestHandler, contexts: ServerCallContextBuilder) -> None:
        super().__init__(handler, contexts)
        self.handler = Handler03(handler)

    async def answer(
        self, number: str | int | None, call: dict[str, Any], request: Request
    ) -> Response:
        """Answer a call."""
        library = cast("Any", self)
        return await library.handle_request(number, call["method"], call, request)

    def _generate_error_response(
        self, request_id: str | int | None, error: Exception | JSONRPCError
    ) -> JSONResponse:
        return JSONResponse(failure03(request_id, error))

    async def _process_non_streaming_request(
        self,
        request_id: str | int | None,
        request_obj: Any,  # noqa: ANN401 - any request of theirs
        context: ServerCallContext,
    ) -> JSONResponse:
        """Answer. A success has a result, also where there is nothing to say."""
        if not isinstance(request_obj, types03.DeleteTaskPushNotificationConfigRequest):
            return await super()._process_non_streaming_request(request_id, request_obj, context)
        await self.handler.on_delete_task_push_notification_config(request_obj, context)
        return JSONResponse({"jsonrpc": "2.0", "id": request_id, "result": None})

    async def _process_streaming_request(
        self,
        request_id: str | int | None,
        request_obj: types03.SendStreamingMessageRequest | types03.TaskResubscriptionRequest,
        context: ServerCallContext,
    ) -> EventSourceResponse:
        if isinstance(request_obj, types03.TaskResubscriptionRequest):
            told = self.handler.on_subscribe_to_task(request_obj, context)
        else:
            request = types03.SendMessageRequest(id=request_obj.id, params=request_obj.params)
            told = self.handler.on_message_send_stream(request, context)
        return EventSourceResponse(_pieces(request_id, told))


async def _pieces(
    number: str | int | None,
    told: AsyncIterable[types03.SendStreamingMessageSuccessResponse],
) -> AsyncIterator[dict[str, str]]:
    try:
        async for response in told:
            yield {"data": response.model_dump_json(by_alias=True, exclude_none=True)}
    except errors.A2AError as error:
        yield {"data": json.dumps(failure03(number, error), ensure_ascii=False)}


class RestHandler03(REST03Handler):
    """It over HTTP and JSON."""

    def __init__(self, handler: RequestHandler) -> None:
        super().__init__(handler)
        self.handler03 = Handler03(handler)

    async def on_message_send(self, request: Request, context: ServerCallContext) -> dict[str, Any]:
        """Take a message."""
        found = await self.handler03.on_message_send(await _message(request), context)
        return MessageToDict(proto03.ToProto.task_or_message(found))

    async def on_message_send_stream(
        self, request: Request, context: ServerCallContext
    ) -> AsyncIterator[dict[str, Any]]:
        """Take a message, and tell what becomes of it."""
        message = await _message(request)
        async for told in self.handler03.on_message_send_stream(message, context):
            yield MessageToDict(proto03.ToProto.stream_response(told.result))

    async def on_get_task(self, request: Request, context: ServerCallContext) -> dict[str, Any]:
        """Read a task; the library would trip over a length that is no number."""
        query = pb.GetTaskRequest()
        with _readable():
            parse_params(request.query_params, query)
        length = query.history_length if query.HasField("history_length") else None
        params = types03.TaskQueryParams(id=request.path_params["id"], history_length=length)
        wanted = types03.GetTaskRequest(id="", params=params)
        return MessageToDict(
            proto03.ToProto.task(await self.handler03.on_get_task(wanted, context))
        )

    async def set_push_notification(
        self, request: Request, context: ServerCallContext
    ) -> dict[str, Any]:
        """Let somebody be told; of which task, the address says. Some leave the envelope out."""
        with _readable():
            body, written = await request.body(), pb03.CreateTaskPushNotificationConfigRequest()
            Parse(body, written, ignore_unknown_fields=True)
            if not written.HasField("config"):
                Parse(body, written.config, ignore_unknown_fields=True)
            written.parent = f"tasks/{request.path_params['id']}"
            params = proto03.FromProto.task_push_notification_config_request(written)
        wanted = types03.SetTaskPushNotificationConfigRequest(id="", params=params)
        found = await self.handler03.on_create_task_push_notification_config(wanted, context)
        return MessageToDict(proto03.ToProto.task_push_notification_config(found))

    async def delete_push_notification(
        self, request: Request, context: ServerCallContext
    ) -> dict[str, Any]:
        """Tell somebody no longer; the library has forgotten this one."""
        params = types03.DeleteTaskPushNotificationConfigParams(
            id=request.path_params["id"],
            push_notification_config_id=request.path_params["push_id"],
        )
        wanted = types03.DeleteTaskPushNotificationConfigRequest(id="", params=params)
        await self.handler03.on_delete_task_push_notification_config(wanted, context)
        return {}

    async def on_get_extended_agent_card(
        self, request: Request, context: ServerCallContext
    ) -> dict[str, Any]:
        """Show the agent, with both spellings of what it lets in by."""
        card: dict[str, Any] = await super().on_get_extended_agent_card(request, context)
        schemes: Mapping[str, dict[str, Any]] = card.get("securitySchemes") or {}
        for scheme in schemes.values():
            if scheme["type"] == "http":
                scheme["httpAuthSecurityScheme"] = {
                    name: scheme[name] for name in _OF_HTTP if name in scheme
                }
        return card


async def _message(request: Request) -> types03.SendMessageRequest:
    with _readable():
        written = pb03.SendMessageRequest()
        Parse(await request.body(), written, ignore_unknown_fields=True)
        for part in written.request.content:
            _encode(part.file)
        params = proto03.FromProto.message_send_params(written)
        return types03.SendMessageRequest(id="", params=params)


def _encode(file: pb03.FilePart) -> None:
    """Write a content in base 64, as the library expects it to be; its own client has done so."""
    content = file.file_with_bytes
    if content and not _is_base64(content):
        file.file_with_bytes = base64.b64encode(content)


def _is_base64(content: bytes) -> bool:
    """Whether it is base 64 to the bit: then it can be told back from what it is taken for."""
    try:
        return base64.b64encode(base64.b64decode(content, validate=True)) == content
    except ValueError:
        return False


def rest_failure03(error: errors.A2AError) -> dict[str, Any]:
    """Write an error as 1.0 has it, with what a client of 0.3 looks for."""
    payload = build_rest_error_payload(error)
    code = errors.JSON_RPC_ERROR_CODE_MAP.get(type(error), _INTERNAL)
    return {**payload, "type": type(error).__name__, "code": code, "message": error.message}


class RestAdapter03(REST03Adapter):
    """Its addresses."""

    def __init__(self, handler: RequestHandler, contexts: ServerCallContextBuilder) -> None:
        super().__init__(handler, contexts)
        self.handler = RestHandler03(handler)

    async def _handle_request(
        self,
        method: Callable[[Request, ServerCallContext], Awaitable[Any]],
        request: Request,
    ) -> JSONResponse:
        try:
            return JSONResponse(await method(request, self._context_builder.build(request)))
        except errors.A2AError as error:
            body = rest_failure03(error)
            return JSONResponse(body, body["error"]["code"])

    def routes(self) -> dict[tuple[str, str], Callable[[Request], Any]]:
        """List them."""
        delete = partial(self._handle_request, self.handler.delete_push_notification)
        return {**super().routes(), (_ONE_PUSH, "DELETE"): delete}
