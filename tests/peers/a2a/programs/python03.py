# type: ignore  # noqa: PGH003 - it runs with another version of the library than the one here
"""The official client for Python of A2A 0.3: it does what `python.py` does, with params of 0.3."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from a2a import types
from a2a.client import ClientConfig, ClientFactory
from lines import Params, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from a2a.client import Client
    from pydantic import BaseModel

URL, BINDING = sys.argv[1:]


@dataclass(frozen=True, slots=True)
class Connected:
    """Whoever streams and whoever does not are two clients."""

    plain: Client
    streaming: Client


async def connect(key: str) -> Connected:
    web = httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)

    async def client(*, streaming: bool) -> Client:
        config = ClientConfig(streaming=streaming, httpx_client=web, supported_transports=[BINDING])
        return await ClientFactory.connect(URL, config)

    return Connected(await client(streaming=False), await client(streaming=True))


def wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def told(answer: Awaitable[BaseModel]) -> dict[str, Any]:
    return wire(await answer)


async def each(events: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
    async for event in events:
        task, update = event if isinstance(event, tuple) else (event, None)
        yield wire(update or task)


def said(client: Client, params: Params) -> AsyncIterator[Any]:
    asked = types.MessageSendParams.model_validate(params)
    return client.send_message(
        asked.message, configuration=asked.configuration, request_metadata=asked.metadata
    )


async def send(client: Connected, params: Params) -> dict[str, Any]:
    (found,) = [event async for event in each(said(client.plain, params))]
    return found


async def card(client: Connected, params: Params) -> dict[str, Any]:
    del params
    return wire(client.plain._card)


def task(params: Params) -> types.TaskIdParams:
    return types.TaskIdParams.model_validate(params)


DOES = {
    "card": card,
    "extended": lambda client, _: told(client.plain.get_card()),
    "send": send,
    "stream": lambda client, params: each(said(client.streaming, params)),
    "get": lambda client, params: told(
        client.plain.get_task(types.TaskQueryParams.model_validate(params))
    ),
    "cancel": lambda client, params: told(client.plain.cancel_task(task(params))),
    "subscribe": lambda client, params: each(client.streaming.resubscribe(task(params))),
    "push_set": lambda client, params: told(
        client.plain.set_task_callback(types.TaskPushNotificationConfig.model_validate(params))
    ),
    "push_get": lambda client, params: told(
        client.plain.get_task_callback(
            types.GetTaskPushNotificationConfigParams.model_validate(params)
        )
    ),
}

asyncio.run(serve(connect, DOES))
