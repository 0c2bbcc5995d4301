"""A server over stdio whose tool takes as long as a pipe is held open. Standard library only.

`kettle.py FOLDER [reads]`: each call is noted in `FOLDER/heard`, with the key that tells whether it
is made again, and ends with `FOLDER/pipe`. Any number may watch at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Lock, Thread
from typing import Any

FOLDER, READS = Path(sys.argv[1]), "reads" in sys.argv[2:]
TOOL: dict[str, Any] = {
    "name": "watch_kettle",
    "description": "Watch the kettle until it boils.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": READS, "idempotentHint": READS},
}


def watch(params: dict[str, Any]) -> dict[str, Any]:
    key = params.get("_meta", {}).get("openfang/idempotency-key", "")
    with (FOLDER / "heard").open("a") as heard:
        heard.write(f"watch {key}\n")
    (FOLDER / "pipe").read_bytes()
    return {"content": [{"type": "text", "text": "The kettle boils."}]}


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "kettle", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return watch(params)
        case _:
            return {}


def answer(message: dict[str, Any]) -> None:
    told = result(message["method"], message.get("params", {}))
    written = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told})
    with TURN:
        sys.stdout.write(f"{written}\n")
        sys.stdout.flush()


TURN = Lock()
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        Thread(target=answer, args=(request,), daemon=True).start()
