"""The baseline of the HTTP figures: the same server, an application that only echoes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio

from openfang.host.crowd import Crowd
from openfang.host.server import ServerLimits, listen, serve

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    message = await receive()
    body = message.get("body", b"")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def main() -> None:
    listener = listen("127.0.0.1", 0)

    def ready() -> None:
        print(listener.address[1], flush=True)

    await serve(echo, listener, Crowd(ServerLimits()), stop=anyio.Event(), ready=ready)


if __name__ == "__main__":
    sys.exit(anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True}))
