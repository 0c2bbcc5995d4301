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
MOST_PROCESSES, MOST_MEGABYTES, MOST_WRITTEN = 200, 256, 64_000_000
SCHEMA = {"type": "object", "properties": {"errand": TEXT, "text": TEXT}}


def write(file: str) -> str:
    Path(file).write_text("written", encoding="utf-8")
    return "written"


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310 - the test says which
        return page.read().decode()


def variable(name: str) -> str:
    return os.environ.get(name, "unset")[::-1]


def fork(_: str) -> str:
    """Start as many processes as there may be, up to two hundred, and end them."""
    reading, writing = os.pipe()
    children = list[int]()
    try:
        while len(children) < MOST_PROCESSES:
            child = os.fork()
            if child == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
            children.append(child)
    except BlockingIOError:
        pass
    os.close(writing)
    for child in children:
        os.waitpid(child, 0)
    return str(len(children))


def hog(megabytes: str) -> str:
    """Take as much memory as there may be, up to so much; no more than 256 MB."""
    taken = list[bytes]()
    try:
        while len(taken) < min(int(megabytes), MOST_MEGABYTES):
            taken.append(b"x" * 1_000_000)
    except MemoryError:
        pass
    return str(len(taken))


def herd(_: str) -> str:
    """Let four processes take a quarter of 256 MB each, and say how many got it."""
    children = list[int]()
    for _number in range(4):
        child = os.fork()
        if child == 0:
            hog("64")
            os._exit(0)
        children.append(child)
    return str(sum(os.waitpid(child, 0)[1] == 0 for child in children))


def fill(file: str) -> str:
    """Write as long a file as there may be, up to 64 MB, and remove it."""
    written = 0
    try:
        with Path(file).open("wb", buffering=0) as disk:
            while written < MOST_WRITTEN:
                written += disk.write(b"x" * 1_000_000)
    except OSError:
        pass
    Path(file).unlink(missing_ok=True)
    return str(written)


ERRANDS: dict[str, Callable[[str], str]] = {
    "read": lambda file: Path(file).read_text(encoding="utf-8"),
    "write": write,
    "fetch": fetch,
    "variable": variable,
    "heard": lambda _: "".join(HEARD)[::-1],
    "fork": fork,
    "hog": hog,
    "herd": herd,
    "fill": fill,
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
