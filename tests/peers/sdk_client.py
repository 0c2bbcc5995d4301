"""A client made with the official Python SDK: it does what `client.mjs` does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.peers.clients import SECONDS, Seen, Web

from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from mcp.client._transport import Transport
    from mcp.client.session import ClientRequestContext
    from pydantic import BaseModel
    from tests.peers.clients import Target, Task

MODES: Final = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}


@dataclass(frozen=True, slots=True)
class Talk:
    """What is said while the client is connected."""

    task: Task
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    told: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    # What the server asks

    def _asked(self, method: str, params: BaseModel | None) -> None:
        self.asked.append({"method": method, "params": wire(params) if params else {}})

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        del context
        self._asked("elicitation/create", params)
        return types.ElicitResult(action="accept", content=dict(self.task.form))

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        del context
        self._asked("sampling/createMessage", params)
        text = types.TextContent(type="text", text="an answer")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        del context
        self._asked("roots/list", None)
        root = types.Root.model_validate({"uri": "file:///workspace", "name": "workspace"})
        return types.ListRootsResult(roots=[root])

    # What the server tells

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.told.append({"method": "notifications/message", "params": wire(params)})

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        said = {"progress": progress, "total": total, "message": message}
        params = {name: value for name, value in said.items() if value is not None}
        self.told.append({"method": "notifications/progress", "params": params})

    # What the client asks

    async def ask(self, client: Client, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"result": wire(await self._result(client, method, params))}
        except MCPError as error:
            return {"error": wire(error.error)}

    async def _result(  # noqa: PLR0911 - one line for each method
        self, client: Client, method: str, params: Mapping[str, Any]
    ) -> BaseModel:
        given = {name: value for name, value in params.items() if name != "_meta"}
        meta: types.RequestParamsMeta | None = params.get("_meta")
        match method:
            case "tools/list":
                return await client.list_tools(meta=meta, **given)
            case "tools/call":
                return await client.call_tool(**given, progress_callback=self.progress, meta=meta)
            case "prompts/list":
                return await client.list_prompts(meta=meta, **given)
            case "prompts/get":
                return await client.get_prompt(meta=meta, **given)
            case "resources/list":
                return await client.list_resources(meta=meta, **given)
            case "resources/templates/list":
                return await client.list_resource_templates(meta=meta, **given)
            case "resources/read":
                return await client.read_resource(meta=meta, **given)
            case _:
                request = types.client_request_adapter.validate_python(
                    {"method": method, "params": params}
                )
                return await client.session.send_request(request, OTHERS[method])


OTHERS: Final[Mapping[str, type[types.Result]]] = {
    "completion/complete": types.CompleteResult,
    "logging/setLevel": types.EmptyResult,
}


def wire(model: BaseModel) -> dict[str, Any]:
    """Write it as it was on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@asynccontextmanager
async def connected(talk: Talk) -> AsyncGenerator[Client]:
    task = talk.task

    def answering(name: str, answer: Callable[..., Awaitable[Any]]) -> Any:
        return answer if name in task.answers else None

    async with (
        reached(task.target) as server,
        Client(
            server,
            mode=MODES[task.era],
            elicitation_callback=answering("elicitation", talk.elicit),
            sampling_callback=answering("sampling", talk.sample),
            list_roots_callback=answering("roots", talk.roots),
            logging_callback=talk.log,
            cache=None,
        ) as client,
    ):
        yield client


@asynccontextmanager
async def reached(target: Target) -> AsyncGenerator[Transport | StdioServerParameters]:
    if isinstance(target, Web):
        async with create_mcp_http_client(headers=dict(target.headers)) as web:
            yield streamable_http_client(target.url, http_client=web)
    else:
        yield StdioServerParameters(
            command=target.command, args=list(target.args), env=dict(target.env)
        )


async def python(task: Task) -> Seen:
    """Let the Python SDK do it."""
    talk = Talk(task)
    with anyio.fail_after(SECONDS):
        async with connected(talk) as client:
            answers = [await talk.ask(client, method, params) for method, params in task.requests]
            known = client.server_info
            return Seen(
                revision=client.protocol_version,
                server=wire(known) if known else {},
                answers=answers,
                asked=talk.asked,
                told=talk.told,
            )
