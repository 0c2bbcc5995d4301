"""A server that has resources and prompts, and that asks and tells things on command.

Over stdio it is started as `federated.py ERA [OPTION...]`; ERA is handshake or modern. `World` is
what it does, whatever carries it. Standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Fields = dict[str, Any]
Send = Callable[[Fields], None]
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
CAPABILITIES: Fields = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
TOOLS = ("ask", "say", "touch", "change", "seen", "storm", "echo", "hang", "die", "refuse")


def note(method: str, **params: object) -> Fields:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(number: object, result: object) -> Fields:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(number: object, code: int, message: str, data: object = None) -> Fields:
    body: Fields = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": number, "error": body}


def text(words: str, **structured: object) -> Fields:
    result: Fields = {"content": [{"type": "text", "text": words}]}
    return {**result, "structuredContent": structured} if structured else result


@dataclass
class World:
    """What the server knows and does. `tell` reaches whoever is connected."""

    era: str
    options: list[str]
    tell: Send
    seen: list[Fields] = field(default_factory=list[Fields])
    resources: int = 3
    prompts: int = 1
    watched: set[str] = field(default_factory=set[str])
    listening: dict[Any, Fields] = field(default_factory=dict[Any, Fields])
    asked: dict[str, tuple[Send, int, list[Fields]]] = field(default_factory=dict[str, Any])

    row: list[Fields] = field(default_factory=list[Fields])

    def option(self, name: str) -> str:
        for given in self.options:
            key, _, value = given.partition("=")
            if key == name:
                return value or "yes"
        return ""

    def take(self, message: Fields, send: Send) -> None:
        """Take a message; what it leads to at once is sent on its own way back."""
        self.seen.append(message)
        if "method" not in message:
            self.answered(message)
        elif "id" in message:
            self.serve(message["id"], message["method"], message.get("params") or {}, send)
        elif message["method"] == "notifications/cancelled":
            self.listening.pop(message["params"]["requestId"], None)

    # Requests

    def serve(self, number: Any, method: str, params: Fields, send: Send) -> None:
        if self.option("mute") == method:
            return
        if self.option("broken") == method:
            send(answer(number, {"resources": 5, "resourceTemplates": 5, "prompts": None}))
        elif method == "subscriptions/listen" and self.era == "modern":
            self.listen(number, params["notifications"], send)
        elif method == "tools/call":
            getattr(self, f"do_{params['name']}")(
                number, params.get("arguments") or {}, params, send
            )
        else:
            send(self.reply(number, method, self.result(method, params)))

    def reply(self, number: Any, method: str, found: Fields | None) -> Fields:
        if found is None:
            return error(number, -32601, f"Method not found: {method}")
        if "code" in found:
            return error(number, found["code"], "Resource not found", found["data"])
        return answer(number, self.whole(found))

    def whole(self, result: Fields) -> Fields:
        return {"resultType": "complete", **result} if self.era == "modern" else result

    def result(self, method: str, params: Fields) -> Fields | None:
        match method, self.era:
            case "server/discover", "modern":
                return self.discovery()
            case "initialize", "handshake":
                return self.greeting(params)
            case "ping" | "logging/setLevel", "handshake":
                return {}
            case "resources/subscribe" | "resources/unsubscribe", "handshake":
                wanted = method == "resources/subscribe"
                (self.watched.add if wanted else self.watched.discard)(params["uri"])
                return {}
            case _:
                return self.listed(method, params) or self.given(method, params)

    def capabilities(self) -> Fields:
        only = self.option("only")
        return {name: CAPABILITIES[name] for name in only.split(",")} if only else CAPABILITIES

    def discovery(self) -> Fields:
        info = {"name": "federated", "version": "1"}
        return {
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "instructions": "ask me",
            "_meta": {f"{PREFIX}serverInfo": info},
        }

    def greeting(self, params: Fields) -> Fields:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "federated", "version": "1"},
            "instructions": "ask me",
        }

    def listed(self, method: str, params: Fields) -> Fields | None:
        match method:
            case "tools/list":
                names = [*TOOLS, *filter(None, self.option("tools").split(","))]
                hints = {"readOnlyHint": True, "openWorldHint": False}
                schema = {"type": "object"}
                return {
                    "tools": [
                        {"name": name, "inputSchema": schema, "annotations": hints}
                        for name in names
                    ]
                }
            case "resources/list":
                return self.page(self.all_resources(), "resources", params)
            case "resources/templates/list":
                template = {"uriTemplate": "memo://{id}", "name": "memo", "x-kept": 1}
                return self.page([template], "resourceTemplates", params)
            case "prompts/list":
                return self.page(self.all_prompts(), "prompts", params)
            case _:
                return None

    def page(self, entries: list[Any], key: str, params: Fields) -> Fields:
        """Two entries at a time, unless they are many."""
        size = max(2, len(entries) // 50)
        start = int(params.get("cursor", 0))
        found: Fields = {key: entries[start : start + size]}
        return {**found, "nextCursor": str(start + size)} if start + size < len(entries) else found

    def all_resources(self) -> list[Any]:
        count = int(self.option("many") or self.resources)
        found: list[Any] = [
            {"uri": f"memo://{number}", "name": f"memo {number}", "x-kept": [number, None]}
            for number in range(count)
        ]
        return found + WRONG if self.option("wrong") else found

    def all_prompts(self) -> list[Any]:
        argument = {"name": "who", "required": True}
        found: list[Any] = [
            {"name": f"greet{number}", "description": self.option("says"), "arguments": [argument]}
            for number in range(self.prompts)
        ]
        return found + WRONG if self.option("wrong") else found

    def given(self, method: str, params: Fields) -> Fields | None:
        match method:
            case "resources/read":
                uri = params["uri"]
                if not uri.startswith("memo://"):
                    return {"code": -32002, "data": {"uri": uri}}
                found = {
                    "uri": uri,
                    "mimeType": "text/plain",
                    "text": f"memo of {uri}",
                    "x-kept": 1,
                }
                blob = {"uri": uri, "blob": "AAEC"}
                return {"contents": [found, blob, 7], "ttlMs": 5, "_meta": {"a/b": 1}}
            case "prompts/get":
                values: Fields = params.get("arguments") or {}
                who = values.get("who", "nobody")
                said = {"type": "text", "text": f"Greet {who}", "x-kept": 1}
                memo = {"type": "resource", "resource": {"uri": "memo://1", "text": "it"}}
                return {
                    "description": "A greeting",
                    "messages": [
                        {"role": "user", "content": said},
                        {"role": "assistant", "content": memo},
                    ],
                }
            case "completion/complete":
                value = params["argument"]["value"]
                return {"completion": {"values": [f"{value}is", f"{value}ty"], "hasMore": False}}
            case _:
                return None

    def listen(self, number: Any, wanted: Fields, send: Send) -> None:
        self.listening[number] = wanted
        tag = {f"{PREFIX}subscriptionId": number}
        send(note("notifications/subscriptions/acknowledged", _meta=tag, notifications=wanted))

    # Tools

    def do_ask(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Ask the client `questions`, methods and params; in the modern era by a result."""
        questions: list[Fields] = arguments["questions"]
        if self.era == "modern":
            self.require(number, questions, params, send)
            return
        self.asked[str(number)] = (send, len(questions), [])
        if arguments.get("row"):
            questions, self.row = questions[:1], questions[1:]
        for index, question in enumerate(questions):
            asked: Fields = {"jsonrpc": "2.0", "id": f"{number}/{index}", **question}
            if arguments.get("larger"):
                asked["params"] = {**asked["params"], "x": "x" * arguments["larger"]}
            (self.tell if arguments.get("aside") else send)(asked)

    def require(self, number: Any, questions: list[Fields], params: Fields, send: Send) -> None:
        given = params.get("inputResponses")
        if given is None:
            wanted = {f"q{index}": question for index, question in enumerate(questions)}
            required = {"resultType": "input_required", "inputRequests": wanted}
            send(answer(number, {**required, "requestState": "word for word"}))
            return
        replies = [{"result": given[f"q{index}"]} for index in range(len(questions))]
        send(answer(number, self.whole(text("asked", replies=replies))))

    def answered(self, message: Fields) -> None:
        call, _, _ = str(message["id"]).partition("/")
        send, count, replies = self.asked[call]
        replies.append({name: message[name] for name in ("result", "error") if name in message})
        if self.row:
            send({"jsonrpc": "2.0", "id": f"{call}/{len(replies)}", **self.row.pop(0)})
        elif len(replies) == count:
            del self.asked[call]
            send(answer(int(call), text("asked", replies=replies)))

    def do_say(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        del params
        for method, told in arguments["notes"]:
            (self.tell if arguments.get("aside") else send)(note(method, **told))
        send(answer(number, self.whole(text("said"))))

    def do_touch(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Say that a resource changed to whoever watches it."""
        del params
        uri = arguments["uri"]
        for listener, wanted in self.listening.items():
            if uri in wanted.get("resourceSubscriptions", ()):
                tag = {f"{PREFIX}subscriptionId": listener}
                self.tell(note("notifications/resources/updated", uri=uri, _meta=tag))
        if uri in self.watched:
            self.tell(note("notifications/resources/updated", uri=uri))
        send(answer(number, self.whole(text("touched"))))

    def do_change(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Have more resources or prompts, and say so."""
        del params
        kind = arguments["list"]
        setattr(self, kind, getattr(self, kind) + arguments.get("more", 1))
        wanted = [one for one in self.listening.values() if one.get(f"{kind}ListChanged")]
        if wanted or self.era == "handshake":
            for _ in range(arguments.get("times", 1)):
                self.tell(note(f"notifications/{kind}/list_changed"))
        send(answer(number, self.whole(text("changed"))))

    def do_storm(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Say something again and again."""
        del params
        for index in range(arguments["times"]):
            self.tell(note(arguments["method"], uri=f"memo://{index}", level="info", data="x"))
        send(answer(number, self.whole(text("over"))))

    def do_echo(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        meta = params.get("_meta")
        send(answer(number, self.whole(text(str(arguments.get("text", "")), meta=meta))))

    def do_refuse(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        del arguments, params
        send(error(number, -32050, "refused", {"why": [1, 2]}))

    def do_hang(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Never answer; ask first, if there is anything to ask."""
        del params
        for question in arguments.get("questions", ()):
            send({"jsonrpc": "2.0", "id": f"{number}/hang", **question})
        self.asked[str(number)] = (send, -1, [])

    def do_die(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        del number, arguments, params, send
        sys.exit(3)

    def do_seen(self, number: Any, arguments: Fields, params: Fields, send: Send) -> None:
        """Give what has come so far."""
        del arguments, params
        send(answer(number, self.whole(text("", seen=self.seen))))


# What no client could read among resources and prompts.
WRONG: list[Any] = [
    7,
    {},
    {"uri": 5, "name": 5},
    {"uri": "", "name": ""},
    {"uri": "memo://nameless"},
    {"uri": "memo://bell\x07", "name": "bell\x07"},
    {"uri": "memo://title", "name": "title", "title": ["x"]},
    {"uri": "memo://arguments", "name": "arguments", "arguments": [{"name": 5}]},
    {"uri": "memo://large", "name": "large", "description": "x" * 70_000},
    {"uri": "memo://0", "name": "greet0", "description": "the second of that name"},
    {"uri": "memo://null", "name": "null", "description": None, "size": None},
]


def main() -> None:
    era, *options = sys.argv[1:]

    def send(message: Fields) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    world = World(era, options, send)
    time.sleep(float(world.option("late") or 0))
    for line in sys.stdin:
        world.take(json.loads(line), send)


if __name__ == "__main__":
    main()
