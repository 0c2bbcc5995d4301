"""A server over stdio that does everything wrong, on command. Standard library only.

Started as `hostile.py [NAME=VALUE...]`. Options misbehave by themselves:

start=exit|html|silent   greeting=NAME of GREETINGS   probe=die   stubborn   late=SECONDS
tools=NAME of LISTS      memory=FILE with a number that counts its starts   fail_starts=N

Everything else is a tool of its own. What eats space, time or processes stops by itself.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]
OPTIONS = {name: value for name, _, value in (word.partition("=") for word in sys.argv[1:])}
MEGABYTE = 1_000_000
MOST = 64 * MEGABYTE
LONGEST = 60.0
ANY: Fields = {"type": "object"}
VERSION = "2025-11-25"


class State:
    """What it knows of itself and has heard."""

    def __init__(self) -> None:
        self.heard: list[Fields] = []
        self.description = "Says what it is told."
        self.renamed = ""
        self.refuses_list = False
        self.lists = 0
        self.progress: tuple[object, object] | None = None


STATE = State()


def limit_ourselves() -> None:
    """Whatever it is told to do, the machine survives it."""
    for kind, most in ((resource.RLIMIT_FSIZE, MOST), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


# Writing


def raw(data: bytes, fd: int = 1) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:MEGABYTE]) :]


def send(**message: Any) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def note(method: str, **params: Any) -> None:
    send(method=method, params=params)


def text(words: str) -> Fields:
    return {"content": [{"type": "text", "text": words}]}


def say(number: object, words: str) -> None:
    send(id=number, result=text(words))


# Tools


def echo(number: object, given: Fields) -> None:
    say(number, str(given.get("text", "")))


def whole(number: object, given: Fields) -> None:
    """Answer with the result that it was given."""
    send(id=number, result=json.loads(given["result"][:: -1 if given.get("backwards") else 1]))


def pid(number: object, given: Fields) -> None:
    del given
    say(number, str(os.getpid()))


def seen(number: object, given: Fields) -> None:
    """Tell what was heard: the notifications, and the answers to its own requests."""
    notes = [one for one in STATE.heard if "id" not in one]
    replies = [one for one in STATE.heard if "method" not in one]
    calls = [one["id"] for one in STATE.heard if one.get("method") == "tools/call"]
    lists = sum(one.get("method") == "tools/list" for one in STATE.heard)
    found = {"notes": notes, "replies": len(replies), "calls": calls, "lists": lists}
    del given
    send(id=number, result={**text(""), "structuredContent": found})


def hang(number: object, given: Fields) -> None:
    """Never answer, and go on reading."""
    del number, given
    note("notifications/message", level="info", data="hanging")


def freeze(number: object, given: Fields) -> None:
    """Never answer, and read nothing either."""
    del number
    note("notifications/message", level="info", data="frozen")
    time.sleep(min(float(given.get("seconds", LONGEST)), LONGEST))


def stop(number: object, given: Fields) -> None:
    del number, given
    os.kill(os.getpid(), signal.SIGSTOP)


def end(number: object, given: Fields) -> None:
    del number, given
    os._exit(7)


def kill(number: object, given: Fields) -> None:
    del number
    os.kill(os.getpid(), int(given.get("signal", signal.SIGKILL)))


def stderr(number: object, given: Fields) -> None:
    """Write so many megabytes for people, made of these bytes."""
    piece = bytes.fromhex(given["hex"])
    block = piece * (MEGABYTE // len(piece))
    for _ in range(min(int(given["megabytes"]), MOST // MEGABYTE)):
        raw(block, 2)
    say(number, "written")


def stdout(number: object, given: Fields) -> None:
    """Write so many bytes between messages, made of these."""
    piece = bytes.fromhex(given["hex"])
    left = min(int(given["bytes"]), MOST)
    block = piece * (MEGABYTE // len(piece))
    while left > 0:
        raw(block[:left] if left < len(block) else block)
        left -= len(block)
    raw(b"\n")
    say(number, "written")


def big(number: object, given: Fields) -> None:
    """Answer on a line of so many bytes."""
    head = json.dumps({"jsonrpc": "2.0", "id": number, "result": text("@")}).encode()
    raw(head.replace(b"@", b"x" * min(int(given["bytes"]), MOST)) + b"\n")


def twice(number: object, given: Fields) -> None:
    del given
    say(number, "first")
    say(number, "second")
    send(id=number, error={"code": -1, "message": "third"})


def others(number: object, given: Fields) -> None:
    """Answer to ids that nobody waits for, in every type that there is, then to the right one."""
    del given
    nobodies: list[object] = [99_999_999, -1, 0, "x", "", None, True, 1.5, [], {}, 10**30]
    for nobody in nobodies:
        say(nobody, "for nobody")
    say(str(number), "as a string")


def batch(number: object, given: Fields) -> None:
    del given
    one = {"jsonrpc": "2.0", "id": number, "result": text("in a batch")}
    raw(json.dumps([[], 7, {"jsonrpc": "2.0"}, one, one]).encode() + b"\n")


def ask(number: object, given: Fields) -> None:
    for index in range(int(given["times"])):
        send(id=f"ask-{index}", method=given["method"], params={})
    say(number, "asked")


def storm(number: object, given: Fields) -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    raw(line * int(given["times"]))
    say(number, "stormed")


def babble(number: object, given: Fields) -> None:
    """So many messages for people."""
    for index in range(int(given["times"])):
        note("notifications/message", level="info", data={"line": index, "words": "x" * 1000})
    say(number, "babbled")


def progress(number: object, given: Fields) -> None:
    """Tell of progress, of this call and of others, and answer."""
    token = given["_token"]
    for step in range(int(given["times"])):
        note("notifications/progress", progressToken=token, progress=step)
        note("notifications/progress", progressToken=f"other-{step}", progress=step)
    note("notifications/progress", progressToken=[token], progress="much")
    note("notifications/progress", progressToken=10**9, progress=None)
    say(number, "progressed")


def forever(number: object, given: Fields) -> None:
    """Tell of progress and never be done."""
    token, began, step = given["_token"], time.monotonic(), 0
    while time.monotonic() - began < min(float(given.get("seconds", LONGEST)), LONGEST):
        note("notifications/progress", progressToken=token, progress=step)
        step += 1
        time.sleep(0.02)
    say(number, "at last")


def wrong(number: object, given: Fields) -> None:
    """Answer in the wrong shape."""
    answer = WRONG[given["kind"]].replace(b"@", json.dumps(number).encode())
    unit, times = LONG.get(given["kind"], (b"", 0))
    raw(answer.replace(b"...", unit * times) + b"\n")


def close(number: object, given: Fields) -> None:
    """Close a pipe and live on."""
    del number
    os.close(int(given["fd"]))
    time.sleep(LONGEST)


def fork(number: object, given: Fields) -> None:
    """Leave children behind that hold the pipes and ignore every polite word."""
    found: list[int] = []
    for _ in range(min(int(given["times"]), 20)):
        child = os.fork()
        if child == 0:
            os.setsid()
            for ignored in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(ignored, signal.SIG_IGN)
            time.sleep(LONGEST)
            os._exit(0)
        found.append(child)
    send(id=number, result={**text(""), "structuredContent": {"pids": found}})
    if given.get("die"):
        os._exit(0)


def drip(number: object, given: Fields) -> None:
    del given
    line = json.dumps({"jsonrpc": "2.0", "id": number, "result": text("drip")}).encode() + b"\n"
    for byte in line:
        raw(bytes([byte]))


def redescribe(number: object, given: Fields) -> None:
    STATE.description = str(given["text"])
    note("notifications/tools/list_changed")
    say(number, "described anew")


def rename(number: object, given: Fields) -> None:
    STATE.renamed = str(given["text"])
    note("notifications/tools/list_changed")
    say(number, "renamed")


def refuse_list(number: object, given: Fields) -> None:
    STATE.refuses_list = bool(given.get("on", True))
    note("notifications/tools/list_changed")
    say(number, "refused from now on")


Act = Callable[[object, Fields], None]
TOOLS: dict[str, Act] = {
    act.__name__: act
    for act in (
        *(echo, whole, pid, seen, hang, freeze, stop, end, kill, stderr, stdout, big, twice),
        *(others, batch, ask, storm, babble, progress, forever, wrong, close, fork, drip),
        *(redescribe, rename, refuse_list),
    )
}


def result_of(body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":@,"result":' + body + b"}"


WRONG: dict[str, bytes] = {
    "no list": result_of(b'{"content":"words"}'),
    "a number": result_of(b'{"content":7}'),
    "null": result_of(b'{"content":null}'),
    "missing": result_of(b"{}"),
    "parts": result_of(
        b'{"content":[7,null,"words",[1],{"type":"text"},{"type":"text","text":5}]}'
    ),
    "flags": result_of(b'{"content":[],"isError":"yes","_meta":[],"structuredContent":[1]}'),
    "result list": result_of(b"[1]"),
    "result null": result_of(b"null"),
    "result text": result_of(b'"words"'),
    "nothing": b'{"jsonrpc":"2.0","id":@}',
    "error text": b'{"jsonrpc":"2.0","id":@,"error":"no"}',
    "error shape": b'{"jsonrpc":"2.0","id":@,"error":{"code":"x","message":[5]}}',
    "nan": result_of(b'{"content":[],"structuredContent":{"mean":NaN}}'),
    "infinity": result_of(b'{"content":[],"structuredContent":{"most":-Infinity}}'),
    "deep": result_of(b'{"structuredContent":...}'),
    "utf-8": result_of(b'{"content":[{"type":"text","text":"caf\xe9 \xff\xfe"}]}'),
    "surrogate": result_of(b'{"content":[{"type":"text","text":"\\ud800 alone"}]}'),
    "huge": result_of(b'{"content":[],"structuredContent":{"n":' + b"9" * 4000 + b"}}"),
    "numbers": result_of(b'{"structuredContent":[...0]}'),
    "objects": result_of(b'{"content":[...{}]}'),
    "half": b'{"jsonrpc":"2.0","id":@,"result":{"content":[...',
}
LONG: dict[str, tuple[bytes, int]] = {
    "deep": (b"[" * 10_000 + b"]" * 10_000, 1),
    "numbers": (b"1.5,", 4_000_000),
    "objects": (b"{},", 3_000_000),
    "half": (b'{"type":"text","text":"x"},', 100_000),
}


# What it lists


def plain_tools() -> list[Fields]:
    found: list[Fields] = [{"name": name, "inputSchema": ANY} for name in TOOLS]
    found[0]["description"] = STATE.description
    if STATE.renamed:
        found.append({"name": STATE.renamed, "inputSchema": ANY})
    return found


def deep(levels: int) -> Fields:
    schema: Fields = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def many(params: Fields) -> Fields:
    del params
    return {"tools": [{"name": f"tool{n}", "inputSchema": ANY} for n in range(20_000)]}


def names(params: Fields) -> Fields:
    del params
    bad = ["\x1b[31mred", "a\nb", "\u202eevil", "x" * 4000, "", 7, None, "echo", "echo", "nul\0"]
    odd = ["../../etc/passwd", "mcp:good:echo", "a b", "ü" * 200, "builtin:file_read", "file_read"]
    found: list[Any] = [{"name": name, "inputSchema": ANY} for name in bad + odd]
    return {"tools": [*found, 7, None, [], {}, {"name": "bare"}, *plain_tools()]}


def schemas(params: Fields) -> Fields:
    del params
    given: dict[str, Any] = {
        "deep": deep(40),
        "loop": {"$ref": "#"},
        "ring": {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        "remote": {"$ref": "http://169.254.169.254/latest"},
        "file": {"$ref": "file:///etc/passwd"},
        "type": {"type": "elephant"},
        "pattern": {"properties": {"text": {"pattern": "^(a+)+$"}}},
        "large": {"properties": {f"p{n}": ANY for n in range(20_000)}},
        "list": [1],
    }
    found: list[Fields] = [{"name": f"s_{name}", "inputSchema": s} for name, s in given.items()]
    return {"tools": [*found, *plain_tools()]}


def long_words(params: Fields) -> Fields:
    del params
    words = "create delete update read " * 4000
    found = [{"name": f"t{n}", "description": words, "inputSchema": ANY} for n in range(200)]
    return {"tools": [*found, *plain_tools()]}


def endless(params: Fields) -> Fields:
    page = int(params.get("cursor", 0))
    found = [{"name": f"page{page}", "inputSchema": ANY}]
    return {"tools": found, "nextCursor": str(page + 1)}


def circle(params: Fields) -> Fields:
    del params
    return {"tools": plain_tools(), "nextCursor": "again"}


def fresh(params: Fields) -> Fields:
    """A new list each time, and each time a word that there is a newer one."""
    del params
    STATE.lists += 1
    note("notifications/tools/list_changed")
    found = [{"name": f"new{STATE.lists}_{n}", "inputSchema": ANY} for n in range(100)]
    return {"tools": [*found, *plain_tools()]}


def no_list(params: Fields) -> Fields:
    del params
    return {"tools": {"name": "echo"}, "nextCursor": 7}


LISTS = {
    one.__name__: one for one in (many, names, schemas, long_words, endless, circle, fresh, no_list)
}


def listed(number: object, params: Fields) -> None:
    if STATE.refuses_list:
        send(id=number, error={"code": -32603, "message": "no list today\x1b[31m" + "!" * 10_000})
    elif "tools" in OPTIONS:
        send(id=number, result=LISTS[OPTIONS["tools"]](params))
    else:
        send(id=number, result={"tools": plain_tools()})


# How it greets

GREETINGS: dict[str, bytes] = {
    "version": result_of(b'{"protocolVersion":"1999-12-31","capabilities":{}}'),
    "no text": result_of(b'{"protocolVersion":["2025-11-25"],"capabilities":7}'),
    "types": result_of(
        b'{"protocolVersion":"2025-11-25","capabilities":[1],"serverInfo":"me","instructions":[]}'
    ),
    "error": b'{"jsonrpc":"2.0","id":@,"error":{"code":-32000,"message":"go away"}}',
    "null": result_of(b"null"),
    "list": result_of(b"[]"),
    "nothing": b"",
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "large": result_of(
        b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"'
        + b"n" * 5_000_000
        + b'","x":{}}}'
    ),
}


def greet(number: object, params: Fields) -> None:
    if "greeting" in OPTIONS:
        raw(GREETINGS[OPTIONS["greeting"]].replace(b"@", json.dumps(number).encode()) + b"\n")
        return
    info = {"name": "hostile", "version": "1"}
    capabilities = {"tools": {"listChanged": True}}
    version = params.get("protocolVersion", VERSION)
    result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
    send(id=number, result=result)


def serve(number: object, method: str, params: Fields) -> None:
    match method:
        case "server/discover" if OPTIONS.get("probe") == "die":
            os._exit(3)
        case "initialize":
            greet(number, params)
        case "tools/list":
            listed(number, params)
        case "tools/call":
            given = {**params.get("arguments", {})}
            given["_token"] = params.get("_meta", {}).get("progressToken")
            TOOLS[params["name"]](number, given)
        case "ping":
            send(id=number, result={})
        case _:
            send(id=number, error={"code": -32601, "message": f"Method not found: {method}"})


def starts() -> int:
    """Count how often it was started, in a file, if there is one."""
    if "memory" not in OPTIONS:
        return 1
    with open(OPTIONS["memory"], "a+", encoding="ascii") as file:  # noqa: PTH123 - nothing imported
        file.write("x")
        return file.tell()


def begin() -> None:
    limit_ourselves()
    if starts() <= int(OPTIONS.get("fail_starts", 0)) or OPTIONS.get("start") == "exit":
        sys.stderr.write("I will not start.\n")
        sys.exit(5)
    if "stubborn" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if OPTIONS.get("start") == "html":
        raw(b"<!DOCTYPE html>\n<p>Hello</p>\n")
    if OPTIONS.get("start") == "silent":
        time.sleep(LONGEST)
    time.sleep(min(float(OPTIONS.get("late", 0)), LONGEST))


def main() -> None:
    begin()
    for line in sys.stdin:
        message: Fields = json.loads(line)
        STATE.heard.append(message)
        if "method" in message and "id" in message:
            serve(message["id"], message["method"], message.get("params") or {})
    if "stubborn" in OPTIONS:
        time.sleep(LONGEST)


if __name__ == "__main__":
    main()
