"""A small server over stdio: `echo.py [OPTION...]`. Standard library only.

Options: `say=TEXT` writes a line on standard error first, `tools=a,b` offers these, `broken` lists
an entry that is no tool, `refuse` ends with a complaint, `show=NAME` answers with a variable,
`parts=JSON` with these parts.
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
        case "tools/call" if "parts" in OPTIONS:
            return {"content": json.loads(OPTIONS["parts"])}
        case "tools/call":
            shown = os.environ.get(OPTIONS.get("show", ""), "unset")
            text = shown if "show" in OPTIONS else params["arguments"].get("text", "")
            return {"content": [{"type": "text", "text": text}]}
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
