"""A server over stdio with resources and prompts: `librarian.py JSON`. Standard library only.

The JSON has `resources`, `templates`, `prompts` (names, or name and text) and what is left out of
`capabilities`. Its tools change the lists, tell of changes, and say what was asked.
"""

from __future__ import annotations

import json
import sys
from typing import Any

KNOWN: dict[str, Any] = {"resources": [], "templates": [], "prompts": [], "without": []}
ASKED: list[str] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(method: str, **params: Any) -> None:
    send({"method": f"notifications/{method}", "params": params})


def capabilities() -> dict[str, Any]:
    able: dict[str, Any] = {
        "tools": {},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
    }
    if "subscribe" in KNOWN["without"]:
        able["resources"].pop("subscribe")
    return {name: value for name, value in able.items() if name not in KNOWN["without"]}


def called(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    match name:
        case "asked":
            return [{"type": "text", "text": json.dumps(ASKED)}]
        case "link":
            return [
                {"type": "resource_link", "name": "x", "uri": arguments["uri"]},
                {"type": "resource", "resource": {"uri": arguments["uri"], "text": "here"}},
            ]
        case "write":
            KNOWN[arguments["list"]].append(arguments["entry"])
            kind = "prompts" if arguments["list"] == "prompts" else "resources"
            tell(f"{kind}/list_changed")
        case _:
            tell("resources/updated", uri=arguments["uri"])
    return [{"type": "text", "text": "done"}]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 - one each
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities(),
                "serverInfo": {"name": "librarian", "version": "1"},
                "instructions": "Ask for books.",
            }
        case "tools/list":
            names = ("asked", "link", "write", "touch")
            return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names]}
        case "tools/call":
            return {"content": called(params["name"], params.get("arguments") or {})}
        case "resources/list":
            return {"resources": [{"uri": uri, "name": uri} for uri in KNOWN["resources"]]}
        case "resources/templates/list":
            found = [{"uriTemplate": one, "name": one} for one in KNOWN["templates"]]
            return {"resourceTemplates": found}
        case "prompts/list":
            return {"prompts": [{"name": one} for one in KNOWN["prompts"]]}
        case "resources/read":
            text = f"{sys.argv[2]} has {params['uri']}"
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text}]}
        case "prompts/get":
            text = f"{sys.argv[2]} says {params['name']} {params.get('arguments', {})}"
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        case "completion/complete":
            return {"completion": {"values": [json.dumps(params["ref"]), sys.argv[2]]}}
        case _:
            return {}


if __name__ == "__main__":
    KNOWN.update(json.loads(sys.argv[1]))
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if "id" in message and "method" in message:
            method: str = message["method"]
            params: dict[str, Any] = message.get("params") or {}
            if method.startswith(("resources/", "prompts/get", "completion")):
                ASKED.append(f"{method} {params.get('uri', '')}".strip())
            send({"id": message["id"], "result": answer(method, params)})
