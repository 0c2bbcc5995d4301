"""A program that is asked in lines and answers in lines, as `lines.mjs` says. It needs nothing."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

Params: TypeAlias = dict[str, Any]
Does: TypeAlias = Callable[[Any, Params], "AsyncIterator[Any] | Awaitable[Any]"]


def say(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def answered(found: AsyncIterator[Any] | Awaitable[Any]) -> object:
    if not isinstance(found, AsyncIterator):
        return await found
    async for event in found:
        say(event=event)
    return None


def failure(error: Exception) -> dict[str, object]:
    found = getattr(getattr(error, "error", None), "root", getattr(error, "error", None))
    code = getattr(found, "code", getattr(error, "status_code", None))
    return {"name": type(error).__name__, "message": str(error), "code": code}


async def serve(connect: Callable[[str], Awaitable[Any]], does: dict[str, Does]) -> None:
    clients: dict[str, Any] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        key = asked["key"]
        try:
            if key not in clients:
                clients[key] = await connect(key)
            say(result=await answered(does[asked["op"]](clients[key], asked["params"])))
        except Exception as error:  # noqa: BLE001 - whatever the client raises is told
            say(error=failure(error))
