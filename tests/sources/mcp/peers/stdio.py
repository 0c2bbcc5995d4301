"""A server over stdio that does on command what servers do, and what they must not do.

Started as `stdio.py ERA [OPTION...]`; ERA is handshake, modern or both. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fields = dict[str, Any]
ERA, *OPTIONS = sys.argv[1:]
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
SUPPORTED = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


class Server:
    def __init__(self) -> None:
        self.cancelled: list[Fields] = []
        self.noted: list[str] = []
        self.received: list[Fields] = []
        self.replies: dict[object, Fields] = {}
        self.pages = int(option("pages") or 1)

    # Writing

    def send(self, message: object) -> None:
        sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def raw(self, data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def answer(self, number: object, result: object) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "result": result})

    def error(self, number: object, code: int, message: str, data: object = None) -> None:
        body: Fields = {"code": code, "message": message}
        if data is not None:
            body["data"] = data
        self.send({"jsonrpc": "2.0", "id": number, "error": body})

    def note(self, method: str, **params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    # Reading

    def run(self) -> None:
        for line in sys.stdin:
            self.take(json.loads(line))

    def next_message(self) -> Fields:
        return json.loads(sys.stdin.readline())

    def take(self, message: Fields) -> None:
        if "method" not in message:
            self.replies[message["id"]] = message
        elif "id" not in message:
            self.noted.append(message["method"])
            if message["method"] == "notifications/cancelled":
                self.cancelled.append(message["params"])
        else:
            self.received.append(message)
            self.serve(message["id"], message["method"], message.get("params") or {})

    def serve(self, number: object, method: str, params: Fields) -> None:
        meta: Fields = params.get("_meta") or {}
        modern = f"{PREFIX}protocolVersion" in meta
        if option("mute") == method:
            return
        if option("fatal") == method:
            sys.exit(3)
        if ERA == "modern" and not modern:
            self.error(number, -32602, "_meta is missing")
        elif method == "server/discover" and ERA != "handshake":
            self.discover(number, meta)
        elif method == "initialize" and ERA != "modern":
            self.initialize(number, params)
        elif method == "ping" and not modern:
            self.answer(number, {})
        elif method == "tools/list":
            self.list_tools(number, params)
        elif method == "tools/call":
            TOOLS[params["name"]](self, Call(number, params.get("arguments") or {}, params))
        elif method == "subscriptions/listen" and modern:
            self.note(
                "notifications/subscriptions/acknowledged",
                _meta={f"{PREFIX}subscriptionId": number},
                notifications=params["notifications"],
            )
            self.note("notifications/tools/list_changed", _meta={f"{PREFIX}subscriptionId": number})
            self.answer(number, {"resultType": "complete"})
        else:
            self.error(number, -32601, f"Method not found: {method}")

    def discover(self, number: object, meta: Fields) -> None:
        asked = meta.get(f"{PREFIX}protocolVersion")
        if option("refuse_once") and len(self.received) == 1:
            self.error(number, -32022, "no", {"supported": [MODERN], "requested": asked})
            return
        supported = (option("supports") or MODERN).split(",")
        self.answer(
            number,
            {
                "resultType": "complete",
                "supportedVersions": supported,
                "capabilities": {"tools": {"listChanged": True}},
                "instructions": "use it well",
                "_meta": {f"{PREFIX}serverInfo": {"name": "modern-peer", "version": "2"}},
            },
        )

    def initialize(self, number: object, params: Fields) -> None:
        wanted = params["protocolVersion"]
        only = option("only")
        if only and option("strict") and wanted != only:
            self.error(number, -32602, "Unsupported version", {"supported": [only]})
            return
        version = only or (wanted if wanted in SUPPORTED else SUPPORTED[-1])
        answer: Fields = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "handshake-peer", "version": "1"},
            "instructions": "shake hands",
        }
        if only == "none":
            del answer["protocolVersion"]
        self.answer(number, answer)

    def list_tools(self, number: object, params: Fields) -> None:
        cursor = params.get("cursor")
        page = 0 if cursor is None else 1 if cursor == "" else int(cursor)
        tools = [{"name": f"tool{page}", "inputSchema": {"type": "object"}, "x-unknown": page}]
        result: Fields = {"tools": tools}
        if option("circle"):
            result["nextCursor"] = "5"
        elif page + 1 < self.pages:
            result["nextCursor"] = "" if page == 0 else str(page + 1)
        self.answer(number, result)


def option(name: str) -> str:
    for given in OPTIONS:
        key, _, value = given.partition("=")
        if key == name:
            return value or "yes"
    return ""


def text(words: str) -> Fields:
    return {"content": [{"type": "text", "text": words}]}


@dataclass
class Call:
    id: object
    arguments: Fields
    params: Fields


Tool = Callable[[Server, Call], None]


def echo(server: Server, call: Call) -> None:
    result = text(call.arguments["text"])
    result["structuredContent"] = {"arguments": call.arguments, "meta": call.params.get("_meta")}
    result["x-unknown"] = [1, {"kept": None}]
    server.answer(call.id, result)


def wait(server: Server, call: Call) -> None:
    """Never answers; says that it has begun."""
    server.note("notifications/message", data="waiting", id=call.id)


def report(server: Server, call: Call) -> None:
    seen = {"cancelled": server.cancelled, "noted": server.noted, "environment": dict(os.environ)}
    methods = [message["method"] for message in server.received]
    server.answer(call.id, {**text(""), "structuredContent": {**seen, "methods": methods}})


def progress(server: Server, call: Call) -> None:
    token = call.params["_meta"]["progressToken"]
    if call.arguments.get("as_text"):
        token = str(token)
    for step in range(call.arguments["steps"]):
        server.note("notifications/progress", progressToken=token, progress=step)
    server.note("notifications/progress", progressToken="not ours", progress=1)
    server.answer(call.id, text("done"))


def ask(server: Server, call: Call) -> None:
    """Ask the client, and answer with what it said."""
    for index in range(call.arguments.get("times", 1)):
        asked: Fields = {"jsonrpc": "2.0", "id": f"ask-{index}", "method": call.arguments["method"]}
        server.send({**asked, "params": {"index": index}})
    replies: list[Fields] = []
    while len(replies) < call.arguments.get("times", 1):
        message = server.next_message()
        if "method" in message:
            server.take(message)
        else:
            replies.append(message)
    server.answer(call.id, {**text(""), "structuredContent": {"replies": replies}})


def withdraw(server: Server, call: Call) -> None:
    """Ask, and take the question back."""
    server.send({"jsonrpc": "2.0", "id": "w", "method": "elicitation/create", "params": {}})
    server.note("notifications/cancelled", requestId="w")
    server.answer(call.id, text("withdrawn"))


def die(server: Server, call: Call) -> None:
    if call.arguments.get("answer_first"):
        server.answer(call.id, text("last words"))
    if call.arguments.get("signal"):
        os.kill(os.getpid(), call.arguments["signal"])
    os._exit(call.arguments.get("code", 1))


def noise(server: Server, call: Call) -> None:
    server.raw(b'\nStarting up...\n\x00\xff\xfe\n42\n"text"\nnull\n{broken\n\r\n[]\n[1]\n')
    server.raw(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/message"}\r\n')
    line = json.dumps({"jsonrpc": "2.0", "id": call.id, "result": text("A")}).encode()
    server.raw(line.replace(b'"A"', b'"caf\xe9"') + b"\n")


def big(server: Server, call: Call) -> None:
    head = json.dumps({"jsonrpc": "2.0", "id": call.id, "result": text("@")}).encode()
    server.raw(head.replace(b"@", b"x" * call.arguments["size"]) + b"\n")


def endless(server: Server, call: Call) -> None:
    for _ in range(call.arguments["megabytes"]):
        server.raw(b" " * 1_000_000)


def drip(server: Server, call: Call) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": call.id, "result": text("drip")}).encode() + b"\n"
    for byte in line:
        server.raw(bytes([byte]))


def twice(server: Server, call: Call) -> None:
    server.answer(99_999, text("unknown"))
    server.send({"jsonrpc": "2.0", "id": True, "result": text("a boolean")})
    server.answer(str(call.id), text("first"))
    server.answer(call.id, text("second"))
    server.error(call.id, -1, "third")
    server.error(None, -32700, "for nobody")


def wrong(server: Server, call: Call) -> None:
    answers: dict[str, Fields] = {
        "list": {"result": [1]},
        "null": {"result": None},
        "nothing": {},
        "error_text": {"error": "no"},
        "error_code": {"error": {"code": "x", "message": 5}},
        "result_type": {"result": {"resultType": "surprise"}},
    }
    server.send({"jsonrpc": "2.0", "id": call.id, **answers[call.arguments["kind"]]})


def refuse(server: Server, call: Call) -> None:
    server.error(call.id, -32050, "refused", {"why": [1, 2]})


def batch(server: Server, call: Call) -> None:
    note: Fields = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    answer: Fields = {"jsonrpc": "2.0", "id": call.id, "result": text("in a batch")}
    server.send([note, answer])


def complain(server: Server, call: Call) -> None:
    for index in range(call.arguments["lines"]):
        sys.stderr.write(f"line {index} " + "x" * call.arguments.get("length", 0) + "\n")
    sys.stderr.flush()
    server.answer(call.id, text("complained"))


def close(server: Server, call: Call) -> None:
    """Close one pipe and stay alive."""
    os.close(call.arguments["fd"])
    if call.arguments["fd"] == 0:
        server.answer(call.id, text("closed"))
    time.sleep(30)


def inputs(server: Server, call: Call) -> None:
    """Want input `rounds` times; the state counts them."""
    state = call.params.get("requestState")
    done = int(state.removeprefix(" state\t")) if state else 0
    if done >= call.arguments["rounds"]:
        seen = {"responses": call.params.get("inputResponses"), "id": call.id, "state": state}
        server.answer(call.id, {**text("enough"), "structuredContent": seen})
        return
    result: Fields = {"resultType": "input_required"}
    if not call.arguments.get("stateless"):
        result["requestState"] = f" state\t{done + 1}"
    if not call.arguments.get("silent"):
        result["inputRequests"] = {
            "name": {"method": "elicitation/create", "params": {"message": "who?"}},
            "roots": {"method": call.arguments.get("method", "roots/list")},
        }
    server.answer(call.id, result)


def spawn(server: Server, call: Call) -> None:
    """Leave a grandchild behind that ignores everything but a kill."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for ignored in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
    server.answer(call.id, {**text(""), "structuredContent": {"pid": pid}})


TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (
        *(echo, wait, report, progress, ask, withdraw, die, noise, big, endless, drip, twice),
        *(wrong, refuse, batch, complain, close, inputs, spawn),
    )
}

if __name__ == "__main__":
    if option("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(float(option("late") or 0))
    Server().run()
    while option("stubborn"):
        time.sleep(1)
