"""A small balancer: it hands each single request to the next node, whatever belongs together.

A node that does not answer is passed over for the next one; that is known before anything of the
request has reached it. Streams go through as they come, and end when the client does.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

if TYPE_CHECKING:
    from collections.abc import Generator, MutableMapping

_OUR_OWN = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"host"}
)
_FAILED: dict[str, Any] = {"type": "http.response.start", "status": 502, "headers": []}


@dataclass(slots=True)
class Balancer:
    """Passes requests on. `nodes` may change while it runs; `served` tells who got each request."""

    nodes: list[str]
    address: str = ""
    served: list[str] = field(default_factory=list[str])
    _turn: int = 0
    _client: httpx.AsyncClient | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            body = await _whole(receive)
            for node in self._in_turn():
                with suppress(httpx.ConnectError):
                    passed_on = self._pass_on(node, scope, body, send)
                    await _until_one_ends(passed_on, _gone(receive))
                    return
            await _failed(send, b"no node answers")

    async def _live(self, receive: Any, send: Any) -> None:
        async with httpx.AsyncClient(timeout=httpx.Timeout(120, connect=2)) as self._client:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _in_turn(self) -> list[str]:
        self._turn += 1
        at = self._turn % max(len(self.nodes), 1)
        return [*self.nodes[at:], *self.nodes[:at]]

    async def _pass_on(self, node: str, scope: Any, body: bytes, send: Any) -> None:
        assert self._client
        path = scope["raw_path"].decode()
        query = scope["query_string"].decode()
        asked = self._client.build_request(
            scope["method"],
            f"{node}{path}{'?' if query else ''}{query}",
            headers=[(one, said.strip()) for one, said in scope["headers"] if one not in _OUR_OWN],
            content=body,
        )
        try:
            answer = await self._client.send(asked, stream=True)
        except (
            httpx.ReadError,
            httpx.RemoteProtocolError,
        ):  # it ended before it answered; who knows what it did
            await _failed(send, b"the node ended meanwhile")
            return
        self.served.append(node)
        try:
            await _told(answer, send)
        finally:
            await answer.aclose()


async def _failed(send: Any, why: bytes) -> None:
    await send(_FAILED)
    await send({"type": "http.response.body", "body": why})


async def _whole(receive: Any) -> bytes:
    parts, more = list[bytes](), True
    while more:
        heard: MutableMapping[str, Any] = await receive()
        parts.append(heard.get("body", b""))
        more = heard.get("more_body", False)
    return b"".join(parts)


async def _told(answer: httpx.Response, send: Any) -> None:
    headers = [pair for pair in answer.headers.raw if pair[0].lower() not in _OUR_OWN]
    start = {"type": "http.response.start", "status": answer.status_code, "headers": headers}
    await send(start)
    with suppress(httpx.HTTPError):  # the client sees that it ends
        async for piece in answer.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _until_one_ends(told: Any, gone: Any) -> None:
    tasks = [asyncio.create_task(told), asyncio.create_task(gone)]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in done:
        task.result()


@contextmanager
def balancing(nodes: list[str]) -> Generator[Balancer]:
    """Run one in a thread of its own."""
    balancer = Balancer(nodes)
    config = uvicorn.Config(
        balancer, port=0, loop="asyncio", log_config=None, timeout_graceful_shutdown=1
    )
    listening = config.bind_socket()
    balancer.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield balancer
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
