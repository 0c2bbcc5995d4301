"""A server that may run once: it holds a lock while it lives, and notes whoever else does.

In the folder that it is given `lives` has a line for each life, `calls` one for each call.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
TEXT: dict[str, Any] = {"type": "object", "properties": {"note": {"type": "string"}}}
TOOLS: dict[str, dict[str, Any]] = {
    "add": {"annotations": {"destructiveHint": False}},
    "ask": {},
    "wait": {},
    "hold": {"annotations": {"readOnlyHint": False, "idempotentHint": False}},
    "linger": {"annotations": {"readOnlyHint": True, "idempotentHint": True}},
    "grow": {},
}
_answers: dict[str, Any] = {}
_answered = threading.Event()
_cancelled: set[object] = set()
_grown: list[str] = []


def note(file: str, words: str) -> None:
    with (FOLDER / file).open("a") as opened:
        opened.write(f"{words}\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def live() -> None:
    lock = os.open(FOLDER / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        note("lives", f"{os.getpid()} alone")
    except BlockingIOError:
        note("lives", f"{os.getpid()} NOT ALONE")


def listed() -> list[dict[str, Any]]:
    names = {**TOOLS, **{name: {} for name in _grown}}
    return [
        {"name": name, "description": f"It can {name}", "inputSchema": TEXT, **more}
        for name, more in names.items()
    ]


def called(name: str, arguments: dict[str, Any], token: object, number: object) -> str:
    said = arguments.get("note", "")
    note("calls", f"{name} {said}")
    if name == "grow":
        _grown.append("grown")
        say({"method": "notifications/tools/list_changed"})
    if name in {"wait", "hold", "linger"}:
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        say({"method": "notifications/message", "params": {"level": "warning", "data": "at it"}})
        until = time.monotonic() + 30
        while time.monotonic() < until and not (FOLDER / "go").exists():
            time.sleep(0.02)
            if number in _cancelled:
                note("calls", f"cancelled {said}")
                return "cancelled"
    if name == "ask":
        form = {"type": "object", "properties": {"color": {"type": "string"}}}
        params = {"message": "Which color?", "requestedSchema": form}
        say({"id": "q1", "method": "elicitation/create", "params": params})
        _answered.wait(30)
        return json.dumps(_answers.get("q1"))
    return f"{name} by {os.getpid()}"


def work(message: dict[str, Any]) -> None:
    params: dict[str, Any] = message.get("params") or {}
    meta: dict[str, Any] = params.get("_meta") or {}
    token, number = meta.get("progressToken"), message["id"]
    text = called(params["name"], params.get("arguments") or {}, token, number)
    say({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})


def answer(message: dict[str, Any]) -> None:
    match message.get("method"):
        case "initialize":
            abilities = {"tools": {"listChanged": True}, "logging": {}}
            info = {"name": "once", "version": "1"}
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": abilities,
                "serverInfo": info,
            }
            say({"id": message["id"], "result": result})
        case "tools/list":
            say({"id": message["id"], "result": {"tools": listed()}})
        case "tools/call":
            threading.Thread(target=work, args=(message,), daemon=True).start()
        case "notifications/cancelled":
            _cancelled.add(message["params"]["requestId"])
        case "ping" | "logging/setLevel":
            say({"id": message["id"], "result": {}})
        case None:
            _answers[str(message.get("id"))] = message.get("result")
            _answered.set()
        case _ if "id" in message:
            say({"id": message["id"], "error": {"code": -32601, "message": "not known"}})
        case _:
            pass


live()
for line in sys.stdin:
    answer(json.loads(line))
