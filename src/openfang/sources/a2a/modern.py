"""A2A 1.0 and 0.3, over JSON-RPC and HTTP+JSON, by the library over our own wire."""

from __future__ import annotations

import copy
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.client.client import ClientCallContext
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict

from openfang.core.errors import SourceFailed
from openfang.host.chatter import legible
from openfang.host.httpx_bridge import bridged
from openfang.sources.a2a.aside import Aside
from openfang.sources.a2a.dialect import NotOffered
from openfang.sources.a2a.words import event_of, request_of, task_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator
    from contextlib import AbstractAsyncContextManager

    from a2a.client import Client
    from a2a.types.a2a_pb2 import AgentCard, StreamResponse, Task

    from openfang.core.tasks import Sent
    from openfang.host.http import Streaming
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.dialect import Headers, Hear
    from openfang.sources.a2a.following import PeerTask
    from openfang.sources.a2a.wire import Wire

_SPOKEN: Final = ("JSONRPC", "HTTP+JSON")
_SHOWN: Final = 500


class Modern:
    """A peer of today. Of its interfaces only those count whose address may be reached."""

    def __init__(self, wire: Wire, card: Card) -> None:
        self._wire = wire
        self._streams = card.streaming
        self._name = card.name
        with self._in_words():
            self._card = _reachable(wire, card)

    async def send(self, sent: Sent, headers: Headers, hear: Hear) -> None:
        """Send a message; a peer that does not stream answers at once, and is asked again."""
        with self._in_words():
            aside = Aside()
            request = ParseDict(aside.request(request_of(sent)), SendMessageRequest())
            async with self._client(aside) as client:
                answers = client.send_message(request, context=_context(headers))
                await _told(answers, aside, hear)

    async def watch(self, task_id: str, headers: Headers, hear: Hear) -> None:
        """Subscribe, where the peer streams."""
        if not self._streams:
            raise NotOffered(f"{self._name} does not stream")
        with self._in_words():
            aside, request = Aside(), SubscribeToTaskRequest(id=task_id)
            async with self._client(aside) as client:
                await _told(client.subscribe(request, context=_context(headers)), aside, hear)

    async def get(self, task_id: str, headers: Headers) -> PeerTask:
        """Read a task."""
        with self._in_words():
            aside, request = Aside(), GetTaskRequest(id=task_id)
            async with self._client(aside) as client:
                return _task(await client.get_task(request, context=_context(headers)), aside)

    async def cancel(self, task_id: str, headers: Headers) -> PeerTask:
        """End a task."""
        with self._in_words():
            aside, request = Aside(), CancelTaskRequest(id=task_id)
            async with self._client(aside) as client:
                return _task(await client.cancel_task(request, context=_context(headers)), aside)

    @asynccontextmanager
    async def _client(self, aside: Aside) -> AsyncGenerator[Client]:
        """Hold a client for one errand: whatever it has open ends with it."""
        opens = partial(self._opened, aside)
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(bridged(opens, heard=aside.heard))
            config = ClientConfig(
                streaming=True,
                polling=not self._streams,
                httpx_client=http,
                supported_protocol_bindings=list(_SPOKEN),
            )
            yield ClientFactory(config).create(self._card)

    def _opened(
        self, aside: Aside, method: str, url: str, headers: Headers, body: bytes | None
    ) -> AbstractAsyncContextManager[Streaming]:
        return self._wire.open(method, url, headers, aside.filled(body) if body else body)

    @contextmanager
    def _in_words(self) -> Generator[None]:
        """Say what went wrong; the library raises whatever a peer's answer breaks in it."""
        try:
            yield
        except SourceFailed:
            raise
        except A2AError as error:
            raise SourceFailed(f"{self._name} answered: {_short(error)}") from error
        except Exception as error:
            why = f"{type(error).__name__}: {_short(error)}"
            raise SourceFailed(f"{self._name} answered wrongly: {why}") from error


def _reachable(wire: Wire, card: Card) -> AgentCard:
    """Read the card as the library does, and leave out the addresses that are refused."""
    raw = copy.deepcopy(dict(card.raw))
    raw.pop("signatures", None)
    found = parse_agent_card(raw)
    spoken = [one for one in found.supported_interfaces if one.protocol_binding in _SPOKEN]
    if not spoken:
        raise SourceFailed(
            f"{card.name} offers no interface that is spoken here: {' or '.join(_SPOKEN)}",
            way_out="ask whoever runs that agent",
        )
    refused: list[SourceFailed] = []
    for one in list(found.supported_interfaces):
        try:
            wire.check(one.url)
        except SourceFailed as failed:
            refused.append(failed)
            found.supported_interfaces.remove(one)
    if not any(one.protocol_binding in _SPOKEN for one in found.supported_interfaces):
        raise refused[0]
    return found


async def _told(answers: AsyncIterator[StreamResponse], aside: Aside, hear: Hear) -> None:
    async with aclosing(cast("AsyncGenerator[StreamResponse]", answers)) as events:
        async for answer in events:
            event = event_of(aside.whole(MessageToDict(answer)))
            if event is not None:
                hear(event)


def _task(task: Task, aside: Aside) -> PeerTask:
    return task_of(aside.whole(MessageToDict(task)))


def _context(headers: Headers) -> ClientCallContext:
    return ClientCallContext(service_parameters=dict(headers))


def _short(error: Exception) -> str:
    """Give the first line: the library's others tell where to read on."""
    return legible(str(error).partition("\n")[0])[:_SHOWN]
