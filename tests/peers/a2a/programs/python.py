"""The official client for Python of A2A 1.0: `python python.py URL BINDING`, then lines.

Params are requests of 1.0 as they are written in JSON.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.base_client import BaseClient
from a2a.types import a2a_pb2 as types
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from lines import Params, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from a2a.client import Client
    from lines import Does

URL, BINDING = sys.argv[1:]
Asked = TypeVar("Asked", bound=Message)


@dataclass(frozen=True, slots=True)
class Connected:
    """Whoever streams and whoever does not are two clients."""

    plain: Client
    streaming: Client


async def connect(key: str) -> Connected:
    web = httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)

    async def client(*, streaming: bool) -> Client:
        config = ClientConfig(
            streaming=streaming, httpx_client=web, supported_protocol_bindings=[BINDING]
        )
        return await ClientFactory(config).create_from_url(URL)

    return Connected(await client(streaming=False), await client(streaming=True))


def read(params: Params, asked: Asked) -> Asked:
    return ParseDict(params, asked)


async def told(answer: Awaitable[Message | None]) -> dict[str, Any] | None:
    found = await answer
    return None if found is None else MessageToDict(found)


async def each(events: AsyncIterator[Message]) -> AsyncIterator[dict[str, Any]]:
    async for event in events:
        yield MessageToDict(event)


async def send(client: Connected, params: Params) -> dict[str, Any]:
    request = read(params, types.SendMessageRequest())
    (found,) = [event async for event in each(client.plain.send_message(request))]
    return found


async def card(client: Connected, params: Params) -> dict[str, Any]:
    del params
    assert isinstance(client.plain, BaseClient)
    return MessageToDict(client.plain._card)


DOES: dict[str, Does] = {
    "card": card,
    "extended": lambda client, params: told(
        client.plain.get_extended_agent_card(read(params, types.GetExtendedAgentCardRequest()))
    ),
    "send": send,
    "stream": lambda client, params: each(
        client.streaming.send_message(read(params, types.SendMessageRequest()))
    ),
    "get": lambda client, params: told(client.plain.get_task(read(params, types.GetTaskRequest()))),
    "list": lambda client, params: told(
        client.plain.list_tasks(read(params, types.ListTasksRequest()))
    ),
    "cancel": lambda client, params: told(
        client.plain.cancel_task(read(params, types.CancelTaskRequest()))
    ),
    "subscribe": lambda client, params: each(
        client.streaming.subscribe(read(params, types.SubscribeToTaskRequest()))
    ),
    "push_set": lambda client, params: told(
        client.plain.create_task_push_notification_config(
            read(params, types.TaskPushNotificationConfig())
        )
    ),
    "push_get": lambda client, params: told(
        client.plain.get_task_push_notification_config(
            read(params, types.GetTaskPushNotificationConfigRequest())
        )
    ),
    "push_list": lambda client, params: told(
        client.plain.list_task_push_notification_configs(
            read(params, types.ListTaskPushNotificationConfigsRequest())
        )
    ),
    "push_delete": lambda client, params: told(
        client.plain.delete_task_push_notification_config(
            read(params, types.DeleteTaskPushNotificationConfigRequest())
        )
    ),
}

asyncio.run(serve(connect, DOES))
