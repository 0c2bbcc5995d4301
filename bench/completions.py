"""OpenAI clients: CPU of the daemon for each completion, beside the message as a plain call.

Each of them begins a session of its own, which is most of what it costs.
"""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any

from bench.daemon import daemon
from bench.figures import Figure
from bench.wire import exchange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.daemon import Target

CALLS = 500
ROUNDS = 3
_TURNS = 20
_PLAIN = "/api/tools/agent:assistant/call"
_CHAT = "/v1/chat/completions"


def _request(target: Target, path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {target.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def _said(number: int, before: int = 0) -> list[dict[str, str]]:
    """A conversation like no other, with so many turns before its last message."""
    roles = ("user", "assistant")
    past = [{"role": roles[n % 2], "content": f"hello {number} {n}"} for n in range(before)]
    return [*past, {"role": "user", "content": f"hello {number}"}]


def _bodies(numbers: Iterator[int]) -> dict[str, tuple[str, Iterator[dict[str, Any]]]]:
    def plain() -> Iterator[dict[str, Any]]:
        for n in numbers:
            name = f"plain-{sha256(b'%d' % n).hexdigest()[:32]}"
            yield {"arguments": {"message": f"hello {n}", "session": name, "history": []}}

    def chat(before: int = 0, *, stream: bool = False) -> Iterator[dict[str, Any]]:
        for n in numbers:
            yield {"model": "assistant", "messages": _said(n, before), "stream": stream}

    return {
        "plain": (_PLAIN, plain()),
        "whole": (_CHAT, chat()),
        "long": (_CHAT, chat(_TURNS)),
        "streamed": (_CHAT, chat(stream=True)),
    }


async def _cost(target: Target, path: str, bodies: Iterator[dict[str, Any]]) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    before = target.cpu
    for _ in range(CALLS):
        _, body = await exchange(reader, writer, _request(target, path, next(bodies)))
        assert b'"error"' not in body, body[:500]
    writer.close()
    return (target.cpu - before) / CALLS * 1e6


async def figures(folder: Path) -> list[Figure]:
    with daemon(folder / "openai") as (target, _):
        ways, best = _bodies(count(1)), dict[str, float]()
        for _ in range(ROUNDS):
            for name, (path, bodies) in ways.items():
                cost = await _cost(target, path, bodies)
                best[name] = min(cost, best.get(name, cost))
    plain = best.pop("plain")
    beside = f"the same message as a call of the agent costs {plain:,.0f} us"
    times = {
        "whole": ("POST /v1/chat/completions, times a plain call", 1.3),
        "long": (f"the same with {_TURNS} turns before it", 1.8),
        "streamed": ("the same as a stream", 1.8),
    }
    return [
        Figure(name, best[way] / plain, "x", goal, beside=f"{best[way]:,.0f} us; {beside}")
        for way, (name, goal) in times.items()
    ]
