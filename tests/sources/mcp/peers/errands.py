"""A server over stdio that runs errands: `errands.py TOOL[=HINTS]...`. Standard library only.

Each word is a tool, `HINTS` are its annotations in JSON. Whatever a tool is called, it does what
its argument `errand` says with its argument `text`; without one it says the text again. What may
hold a secret is said backwards, or it would be redacted on its way.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = {"type": "string"}
HEARD: list[str] = []
SCHEMA = {"type": "object", "properties": {"errand": TEXT, "text": TEXT}}


def write(file: str) -> str:
    Path(file).write_text("written", encoding="utf-8")
    return "written"


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310 - the test says which
        return page.read().decode()


def variable(name: str) -> str:
    return os.environ.get(name, "unset")[::-1]


ERRANDS: dict[str, Callable[[str], str]] = {
    "read": lambda file: Path(file).read_text(encoding="utf-8"),
    "write": write,
    "fetch": fetch,
    "variable": variable,
    "heard": lambda _: "".join(HEARD)[::-1],
    "pid": lambda _: str(os.getpid()),
    "": str,
}


def run(errand: str, text: str) -> str:
    try:
        return ERRANDS[errand](text)
    except OSError as error:
        return type(error).__name__


def tool(word: str) -> dict[str, Any]:
    name, _, hints = word.partition("=")
    return {"name": name, "inputSchema": SCHEMA, "annotations": json.loads(hints or "{}")}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Say what there is to say; to hang is to say nothing."""
    if method == "initialize":
        info = {"name": "errands", "version": "1"}
        version = "2025-11-25"
        offered: dict[str, Any] = {"tools": {}}
        return {"result": {"protocolVersion": version, "capabilities": offered, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": [tool(word) for word in sys.argv[1:]]}}
    if method == "ping":
        return {"result": {}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": f"Method not found: {method}"}}
    given: dict[str, str] = params.get("arguments") or {}
    if given.get("errand") == "hang":
        return None
    said = run(given.get("errand", ""), given.get("text", ""))
    return {"result": {"content": [{"type": "text", "text": said}]}}


if __name__ == "__main__":
    for line in sys.stdin:
        HEARD.append(line)
        message = json.loads(line)
        if "id" in message and "method" in message:
            body = answer(message["method"], message.get("params") or {})
            if body is not None:
                head = {"jsonrpc": "2.0", "id": message["id"]}
                sys.stdout.write(json.dumps({**head, **body}) + "\n")
                sys.stdout.flush()
