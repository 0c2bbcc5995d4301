"""Servers over HTTP, one of each kind, on loopback; each notes what it was asked.

In a test: `async with serving(Modern()) as url`. As a program, `web.py modern` prints its address.
"""

from __future__ import annotations

import asyncio
import sys
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, cast

import orjson
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

Fields = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"


def fields(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def text(words: str) -> Fields:
    return {"content": [{"type": "text", "text": words}]}


def answer(number: object, result: object) -> Fields:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(number: object, code: int, data: object = None) -> Fields:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": "no", "data": data}}


def note(method: str, **params: object) -> Fields:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def json_response(message: object, status: int = 200, **headers: str) -> web.Response:
    body = orjson.dumps(message)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(body=body, status=status, content_type="application/json", headers=named)


class Stream:
    """A stream of events, as a server writes it."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})

    async def __aenter__(self) -> Self:
        await self._response.prepare(self._request)
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def raw(self, data: bytes) -> None:
        await self._response.write(data)

    async def send(self, message: object, number: str = "") -> None:
        head = f"id: {number}\n".encode() if number else b""
        await self.raw(head + b"data: " + orjson.dumps(message) + b"\n\n")

    def response(self) -> web.StreamResponse:
        return self._response


class Peer:
    """What all kinds share."""

    path = "/mcp"

    def __init__(self) -> None:
        self.seen: list[tuple[str, Fields]] = []
        self.headers: list[tuple[str, dict[str, str]]] = []
        self._news = asyncio.Event()
        self.gone = asyncio.Event()
        self.called = asyncio.Event()
        self.status: dict[str, tuple[int, dict[str, str]]] = {}
        self.moved: dict[str, str] = {}

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.seen]

    def header(self, method: str, name: str) -> str | None:
        """The header of the last request of that method."""
        found = [headers for seen, headers in self.headers if seen == method][-1]
        return found.get(name.lower())

    async def sees(self, method: str) -> None:
        """Wait for a request of that method."""
        while method not in self.methods:
            await self._news.wait()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: Fields = orjson.loads(await request.read()) if request.method == "POST" else {}
        method = str(body.get("method", request.method))
        self.seen.append((method, body))
        self.headers.append((method, {k.lower(): v for k, v in request.headers.items()}))
        self._news.set()
        self._news = asyncio.Event()
        if method in self.status:
            status, headers = self.status[method]
            if method == "GET":
                return json_response(error(None, -32000), status)
            return web.Response(status=status, headers=headers, text="words")
        if self.moved.get(method, request.path) != request.path:
            return web.Response(status=307, headers={"Location": self.moved[method]})
        return await self.serve(request, method, body)

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        raise NotImplementedError

    async def hang(self) -> None:
        """Wait until the client has gone."""
        self.called.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()


class Modern(Peer):
    """2026-07-28: every request stands alone, and its headers say what its body says."""

    def __init__(self) -> None:
        super().__init__()
        region: Fields = {"type": "string", "x-mcp-header": "Region"}
        schema: Fields = {"type": "object", "properties": {"region": region}}
        bad: Fields = {
            "type": "object",
            "properties": {"a": {"type": "number", "x-mcp-header": "A"}},
        }
        self.tools: list[Fields] = [
            {"name": "echo", "inputSchema": schema},
            {"name": "bad", "inputSchema": bad},
        ]
        self.required = "Region"

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        number, params = body.get("id"), fields(body.get("params"))
        version = fields(params.get("_meta")).get(f"{PREFIX}protocolVersion")
        said = (request.headers.get("Mcp-Method"), request.headers.get("MCP-Protocol-Version"))
        if request.method != "POST":
            return web.Response(status=405)
        if said != (method, version):
            return json_response(error(number, -32020), 400)
        if method == "tools/call":
            return await self.call(request, number, params)
        if method == "subscriptions/listen":
            return await self.listen(request, number)
        results = {"server/discover": self.discovery(), "tools/list": {"tools": self.tools}}
        if method not in results:
            return json_response(error(number, -32601), 404)
        return json_response(answer(number, results[method]), Mcp_Session_Id="ignored")

    async def listen(self, request: web.Request, number: object) -> web.StreamResponse:
        async with Stream(request) as stream:
            await stream.send(note("notifications/subscriptions/acknowledged"))
            await stream.send(note("notifications/tools/list_changed"))
            await stream.send(answer(number, {}))
        return stream.response()

    def discovery(self) -> Fields:
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": True}},
            "_meta": {f"{PREFIX}serverInfo": {"name": "modern-web", "version": "1"}},
        }

    async def call(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        if decoded(request.headers.get("Mcp-Name", "")) != params["name"]:
            return json_response(error(number, -32020), 400)
        arguments: Fields = params.get("arguments") or {}
        wanted = arguments.get("region")
        if wanted is not None and request.headers.get(f"Mcp-Param-{self.required}") != wanted:
            return json_response(error(number, -32020), 400)
        tool = {"stream": self.stream, "wait": self.wait, "hold": self.hold, "cut": self.cut}
        if params["name"] in tool:
            return await tool[params["name"]](request, number, params)
        result = text(str(arguments.get("text", "")) * int(arguments.get("times", 1)))
        return json_response(answer(number, result))

    async def stream(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        token = params["_meta"].get("progressToken")
        async with Stream(request) as stream:
            await stream.raw(b"\xef\xbb\xbf: hello\r\n\r\ndata: \r\n\r\ndata: nonsense\r\n\r\n")
            for step in range(3):
                await stream.send(
                    note("notifications/progress", progressToken=token, progress=step)
                )
            await stream.send(note("notifications/message", data="log"))
            await stream.send({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
            await stream.send(answer(number, text("streamed")))
            if params["arguments"].get("linger"):
                await self.hang()
        return stream.response()

    async def wait(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        del number, params
        async with Stream(request) as stream:
            await stream.raw(b": open\n\n")
            await self.hang()
        return stream.response()

    async def hold(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        del request, number, params
        await self.hang()
        return web.Response()

    async def cut(self, request: web.Request, number: object, params: Fields) -> web.StreamResponse:
        del number, params
        async with Stream(request) as stream:
            await stream.raw(b"id: 5\ndata: {}\n\n")
        return stream.response()


def decoded(value: str) -> str:
    if value.startswith("=?base64?"):
        return b64decode(value[9:-2]).decode()
    return value


class Session(Peer):
    """2025-11-25: a handshake, a session, a stream of the server's own, streams that resume."""

    session = "session-1"

    def __init__(self, version: str = "2025-11-25") -> None:
        super().__init__()
        self.version = version
        self.forgotten = 0
        self.news: asyncio.Queue[Fields | None] = asyncio.Queue()
        self.late: dict[str, Fields] = {}
        self.replies: asyncio.Queue[Fields] = asyncio.Queue()
        self.listening = asyncio.Event()
        self.refuses_replies = False

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if method == "initialize":
            return json_response(
                answer(body["id"], self.introduction()), Mcp_Session_Id=self.session
            )
        if self.forgotten or request.headers.get("Mcp-Session-Id") != self.session:
            return json_response(error(None, -32000), self.forgotten or 400)
        if request.method == "GET":
            return await self.listen(request)
        if "method" in body and "id" in body:
            return await self.respond(request, method, body)
        if "id" in body:
            await self.replies.put(body)
            if self.refuses_replies:
                return json_response(error(body["id"], -32600), 400)
        if method == "notifications/cancelled":
            self.gone.set()
        return web.Response(status=202)

    def introduction(self) -> Fields:
        return {
            "protocolVersion": self.version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "session-web", "version": "1"},
        }

    async def respond(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if method == "tools/call":
            return await self.call(request, body["id"], fields(body.get("params")))
        results: dict[str, Fields] = {"tools/list": {"tools": []}, "ping": {}}
        if method not in results:
            return json_response(error(body["id"], -32601))
        return json_response(answer(body["id"], results[method]))

    async def listen(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID", "")
        async with Stream(request) as stream:
            if last in self.late:
                await stream.send(self.late.pop(last), "resumed")
                return stream.response()
            self.listening.set()
            while (message := await self.news.get()) is not None:
                await stream.send(message, "news-1")
                await stream.raw(b"retry: 10\n\n")
        return stream.response()

    async def call(
        self, request: web.Request, number: object, params: Fields
    ) -> web.StreamResponse:
        name, arguments = params["name"], fields(params.get("arguments"))
        if name == "push":
            for message in arguments["messages"]:
                await self.news.put(message)
            return json_response([answer(number, text("pushed"))])
        if name == "wrong":
            return json_response(error(number, -32050), 400)
        async with Stream(request) as stream:
            match name:
                case "wait":
                    await stream.raw(b": open\n\n")
                    await self.hang()
                case "broken":
                    self.late["place"] = answer(number, text("resumed"))
                    await stream.raw(b"id: place\nretry: 20\ndata: \n\n")
                case "ask":
                    await stream.send({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
                    reply = await self.replies.get()
                    await stream.send(answer(number, {**text(""), "structuredContent": reply}))
                case _:
                    await stream.send(answer(number, text(arguments.get("text", ""))))
        return stream.response()


class Sse(Peer):
    """2024-11-05: one stream for all answers, and an address to post to."""

    path = "/sse"

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        super().__init__()
        self.endpoint = endpoint
        self.out: asyncio.Queue[Fields | None] = asyncio.Queue()

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if request.method == "GET":
            async with Stream(request) as stream:
                await stream.raw(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
                while (message := await self.out.get()) is not None:
                    await stream.send(message)
            return stream.response()
        if request.path != "/messages":
            return web.Response(status=405)
        if "id" in body:
            await self.respond(body["id"], method, fields(body.get("params")))
        if method == "notifications/cancelled":
            self.gone.set()
        return web.Response(status=202, text="Accepted")

    async def respond(self, number: object, method: str, params: Fields) -> None:
        match method:
            case "initialize":
                result: Fields = {"protocolVersion": "2024-11-05", "capabilities": {}}
                await self.out.put(answer(number, result))
            case "tools/list":
                await self.out.put(answer(number, {"tools": [{"name": "echo"}]}))
            case "tools/call" if params["name"] == "end":
                await self.out.put(None)
            case "tools/call" if params["name"] == "wait":
                self.called.set()
            case "tools/call":
                token = params.get("_meta", {}).get("progressToken")
                await self.out.put(note("notifications/progress", progressToken=token, progress=1))
                await self.out.put(note("notifications/tools/list_changed"))
                await self.out.put(answer(number, text(params["arguments"]["text"])))
            case _:
                await self.out.put(error(number, -32601))


class Plain(Peer):
    """A POST, an answer, and no idea of the rest."""

    def __init__(self, *, initializes: bool = True) -> None:
        super().__init__()
        self.initializes = initializes

    async def serve(self, request: web.Request, method: str, body: Fields) -> web.StreamResponse:
        if request.method != "POST" or "event-stream" in request.headers["Accept"]:
            return web.Response(status=406, text="JSON only")
        if "id" not in body:
            return web.Response(status=500, text="no id")
        results: dict[str, Fields] = {
            "tools/list": {"tools": [{"name": "echo"}]},
            "tools/call": text(
                str(fields(fields(body.get("params")).get("arguments")).get("text"))
            ),
        }
        if self.initializes:
            results["initialize"] = {"capabilities": {"tools": {}}}
        if method not in results:
            return web.Response(body=orjson.dumps(error(body["id"], -32601)))
        return web.Response(body=orjson.dumps(answer(body["id"], results[method])))


@asynccontextmanager
async def serving(peer: Peer, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Serve it, and give its address."""
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]] = peer.handle
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield f"http://{host}:{runner.addresses[0][1]}{peer.path}"
    finally:
        await runner.cleanup()


async def main(kind: str) -> None:
    peers: dict[str, Callable[[], Peer]] = {"modern": Modern, "session": Session, "sse": Sse}
    async with serving(peers[kind]()) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
