"""An agent that does what the first word of a message says, one program for all who ask it."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openfang.agents.code.context import Context

BEGUN: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
STOPPED: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


async def say(rest: str, context: Context) -> str:
    for word in rest.split():
        context.stream(f"{word} ")
    return rest


async def ask(rest: str, context: Context) -> str:
    answers = [await context.ask(question) for question in rest.split("|")]
    return f"It is {' and '.join(answers)}."


async def make(rest: str, context: Context) -> str:
    context.artifact("note.txt", f"a note on {rest}")
    context.artifact("table.json", {"rows": [1, 2]})
    context.artifact("dot.bin", b"\x00\x01\xff", "image/x-dot")
    return "Made three."


async def hold(rest: str, context: Context) -> str:
    context.stream("Holding. ")
    BEGUN[rest].set()
    try:
        await HELD[rest].wait()
    except asyncio.CancelledError:
        STOPPED[rest].set()
        raise
    context.stream("Let go.")
    return "Holding. Let go."


async def release(rest: str, context: Context) -> str:
    del context
    HELD[rest].set()
    return f"Released {rest}."


async def begun(rest: str, context: Context) -> str:
    del context
    async with asyncio.timeout(10):
        await BEGUN[rest].wait()
    return f"Begun {rest}."


async def stopped(rest: str, context: Context) -> str:
    del context
    async with asyncio.timeout(10):
        await STOPPED[rest].wait()
    return f"Stopped {rest}."


async def seen(rest: str, context: Context) -> str:
    """Say whether one has begun or was stopped, without waiting for it."""
    del context
    what, name = rest.split()
    return "yes" if {"begun": BEGUN, "stopped": STOPPED}[what][name].is_set() else "no"


async def fail(rest: str, context: Context) -> str:
    del context
    raise ValueError(rest)


async def reject(rest: str, context: Context) -> str:
    context.reject(rest)


async def tell(rest: str, context: Context) -> str:
    del rest
    seen = {
        "parts": list(context.parts),
        "metadata": dict(context.metadata),
        "history": [said.get("text") for said in context.history],
    }
    return json.dumps(seen)


ALL = (say, ask, make, hold, begun, release, seen, stopped, fail, reject, tell)
DOES = {does.__name__: does for does in ALL}


async def run(message: str, context: Context) -> str:
    word, *rest = message.split(maxsplit=1)
    return await DOES[word]("".join(rest), context)
