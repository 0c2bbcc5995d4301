"""The library's own client against us: both versions, over both ways in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError
from tests.edges.a2a.front import card_of, serving

from openfang.edges.a2a.sdk import pb
from openfang.protocols.a2a.extensions import CHAIN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.a2a.front import Served

pytestmark = pytest.mark.requirement("C5.3")

WAYS = [
    pytest.param("JSONRPC", "1.0", id="json-rpc-1.0"),
    pytest.param("HTTP+JSON", "1.0", id="http-json-1.0"),
    pytest.param("JSONRPC", "0.3", id="json-rpc-0.3"),
    pytest.param("HTTP+JSON", "0.3", id="http-json-0.3"),
]


@asynccontextmanager
async def client(
    served: Served, agent: str, binding: str, version: str, *, streaming: bool = False
) -> AsyncGenerator[Client]:
    """A client that knows one way in."""
    card = card_of(served.node, agent)
    ways = [
        way
        for way in card.supported_interfaces
        if (way.protocol_binding, way.protocol_version) == (binding, version)
    ]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(ways)
    headers = served.node.headers()
    async with httpx.AsyncClient(headers=headers, verify=False, trust_env=False, timeout=30) as web:  # noqa: S501 - loopback without TLS
        config = ClientConfig(
            httpx_client=web, streaming=streaming, supported_protocol_bindings=[binding]
        )
        yield ClientFactory(config).create(card)


def request(text: str, **more: str) -> pb.SendMessageRequest:
    message = pb.Message(message_id=f"m-{text}", role=pb.ROLE_USER, parts=[pb.Part(text=text)])
    message.task_id = more.get("task_id", "")
    return pb.SendMessageRequest(message=message)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    async with serving(tmp_path / "home", config="[a2a.push]\nallow_private = true\n") as running:
        yield running


@pytest.mark.requirement("C8.1")
@pytest.mark.parametrize(("binding", "version"), WAYS)
async def test_it_uses_the_extension_that_is_demanded(
    tmp_path: Path, binding: str, version: str
) -> None:
    config = "[a2a]\nenabled = true\nrequire_chain = true\n"
    knows = ServiceParametersFactory.create([with_a2a_extensions([CHAIN])])
    async with (
        serving(tmp_path / "home", config=config) as demanding,
        client(demanding, "echo", binding, version) as peer,
    ):
        with pytest.raises(A2AError, match=CHAIN):
            [_ async for _ in peer.send_message(request("unaware"))]
        context = ClientCallContext(service_parameters=knows)
        [told] = [one async for one in peer.send_message(request("aware"), context=context)]
        assert told.task.artifacts[0].parts[0].text == "you said aware"


@pytest.mark.parametrize(("binding", "version"), WAYS)
async def test_it_sends_asks_reads_and_cancels(served: Served, binding: str, version: str) -> None:
    async with client(served, "asker", binding, version) as peer:
        [asked] = [one async for one in peer.send_message(request("begin"))]
        assert asked.task.status.state == pb.TASK_STATE_INPUT_REQUIRED
        assert asked.task.status.message.parts[0].text == "Which one?"
        answer = request("blue", task_id=asked.task.id)
        [ended] = [one async for one in peer.send_message(answer)]
        assert ended.task.artifacts[0].parts[0].text == "so: blue"
        read = await peer.get_task(pb.GetTaskRequest(id=asked.task.id))
        assert read == ended.task
        with pytest.raises(TaskNotCancelableError):
            await peer.cancel_task(pb.CancelTaskRequest(id=asked.task.id))
        with pytest.raises(TaskNotFoundError):
            await peer.get_task(pb.GetTaskRequest(id="task_of_nobody"))
        [other] = [one async for one in peer.send_message(request("again"))]
        gone = await peer.cancel_task(pb.CancelTaskRequest(id=other.task.id))
        assert gone.status.state == pb.TASK_STATE_CANCELED
        if version == "1.0":
            listed = await peer.list_tasks(pb.ListTasksRequest())
            assert [task.id for task in listed.tasks] == [other.task.id, asked.task.id]


@pytest.mark.parametrize(("binding", "version"), WAYS)
async def test_it_listens_and_comes_back(served: Served, binding: str, version: str) -> None:
    async with client(served, "waiter", binding, version, streaming=True) as peer:
        stream = peer.send_message(request("go"))
        first = await anext(stream)
        await served.demo.begun.wait()
        watching = peer.subscribe(pb.SubscribeToTaskRequest(id=first.task.id))
        again = await anext(watching)
        assert again.task.id == first.task.id
        served.demo.released.set()
        for told in (stream, watching):
            events = [event async for event in told]
            assert events[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
            words = [event.artifact_update for event in events[:-1]]
            assert "".join(one.artifact.parts[0].text for one in words) == "I wait no more"
            assert words[-1].last_chunk


@pytest.mark.parametrize(("binding", "version"), WAYS)
async def test_it_says_who_is_to_be_told(served: Served, binding: str, version: str) -> None:
    async with client(served, "asker", binding, version) as peer:
        [asked] = [one async for one in peer.send_message(request("begin"))]
        wanted = pb.TaskPushNotificationConfig(
            task_id=asked.task.id, id="mine", url="http://127.0.0.1:9/told", token="t"
        )
        assert await peer.create_task_push_notification_config(wanted) == wanted
        one = pb.GetTaskPushNotificationConfigRequest(task_id=asked.task.id, id="mine")
        assert await peer.get_task_push_notification_config(one) == wanted
        card = await peer.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
        assert card.name == "asker"
