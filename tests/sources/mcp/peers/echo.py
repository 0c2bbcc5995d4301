"""A small server over stdio: `echo.py [OPTION...]`. Standard library only.

Options: `say=TEXT` writes a line on standard error first, `tools=a,b` offers these, `broken` lists
an entry that is no tool, `refuse` ends with a complaint, `show=NAME` answers with a variable,
`parts=JSON` with these parts, `adds=FILE` adds the text as a line to a file.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

OPTIONS = {name: value for name, _, value in (word.partition("=") for word in sys.argv[1:])}


def tools() -> list[dict[str, Any]]:
    names = OPTIONS.get("tools", "echo").split(",")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    offered: list[dict[str, Any]] = [
        {"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in names
    ]
    return [*offered, {"name": "broken"}] if "broken" in OPTIONS else offered


def add(file: str, line: str) -> None:
    """Add a line at once: others add to the same file."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def called(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    if "parts" in OPTIONS:
        return json.loads(OPTIONS["parts"])
    text = arguments.get("text", "")
    if "show" in OPTIONS:
        text = os.environ.get(OPTIONS["show"], "unset")
    elif "adds" in OPTIONS:
        add(OPTIONS["adds"], text)
        text = "added"
    return [{"type": "text", "text": text}]


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": tools()}
        case "tools/call":
            return {"content": called(params["arguments"])}
        case _:
            return None


def answer(message: dict[str, Any]) -> dict[str, Any]:
    found = result(message["method"], message.get("params") or {})
    if found is None:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": found}


def main() -> None:
    if "say" in OPTIONS:
        sys.stderr.write(f"{OPTIONS['say']}\n")
        sys.stderr.flush()
    if "refuse" in OPTIONS:
        sys.exit("I will not.")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            body = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
            sys.stdout.write(f"{json.dumps(body)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
