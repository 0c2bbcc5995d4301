"""An MCP server of 2026-07-28 over HTTP for the figures: one POST, one JSON answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from openfang.host.crowd import Crowd
from openfang.host.server import ServerLimits, listen, serve

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_CACHED = {"ttlMs": 60_000, "cacheScope": "public"}
_TOOL = {
    "name": "get_echo",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


def _result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "server/discover":
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}},
                **_CACHED,
            }
        case "tools/list":
            return {"tools": [_TOOL], **_CACHED}
        case _:
            return {"content": [{"type": "text", "text": params["arguments"].get("text", "")}]}


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    message = orjson.loads((await receive())["body"])
    result = {"resultType": "complete", **_result(message["method"], message["params"])}
    body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def main() -> None:
    listener = listen("127.0.0.1", 0)

    def ready() -> None:
        print(listener.address[1], flush=True)

    await serve(answer, listener, Crowd(ServerLimits()), stop=anyio.Event(), ready=ready)


if __name__ == "__main__":
    sys.exit(anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True}))
