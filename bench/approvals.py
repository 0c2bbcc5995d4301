"""Questions that wait: what a daemon with 10,000 of them takes beside one that has none."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import anyio

from bench.daemon import daemon
from bench.figures import Figure
from openfang.core.errors import Parked
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from bench.daemon import Target

_QUESTIONS = 10_000
_SECONDS = 10
_CALLS = 3_000
_AT_ONCE = 50
_CONFIG = f"[approvals]\nmax_pending = {_QUESTIONS + 100}\ntimeout_secs = 86400\n"


async def _ask(home: Path) -> float:
    """Park so many calls; returns the microseconds that one took."""
    async with open_test_app(home, config=_CONFIG) as app:
        began = time.perf_counter()
        for number in range(_QUESTIONS):
            try:
                await app.call("shell_exec", command=["true", str(number)])
            except Parked:
                continue
        return (time.perf_counter() - began) / _QUESTIONS * 1e6


async def _idle(target: Target) -> float:
    """Milliseconds of CPU in a second in which nobody asks anything."""
    await anyio.sleep(3)  # what a start leaves to be done
    before = target.cpu
    await anyio.sleep(_SECONDS)
    return (target.cpu - before) / _SECONDS * 1e3


async def _calls(target: Target, path: str, body: bytes, status: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    head = target.request(path).partition(b"Content-Length")[0]
    request = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    for _ in range(_CALLS // _AT_ONCE):
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 " + status), answer
        start = answer.lower().index(b"content-length: ") + 16
        await reader.readexactly(int(answer[start : answer.index(b"\r", start)]))
    writer.close()


async def _per_call(target: Target, tool: str, body: bytes, status: bytes) -> float:
    """Microseconds of CPU for each call: the best of three rounds."""
    rounds: list[float] = []
    for _ in range(3):
        before = target.cpu
        async with anyio.create_task_group() as tasks:
            for _ in range(_AT_ONCE):
                tasks.start_soon(_calls, target, f"/api/tools/{tool}/call", body, status)
        rounds.append((target.cpu - before) / _CALLS * 1e6)
    return min(rounds)


async def _measured(target: Target) -> tuple[float, float, float, float]:
    memory, idle = target.megabytes, await _idle(target)
    plain = await _per_call(target, "system_time", b'{"arguments":{}}', b"200")
    again = b'{"arguments":{"command":["true","5000"]}}'
    asked = await _per_call(target, "shell_exec", again, b"202")
    return memory, idle, plain, asked


async def figures(folder: Path) -> list[Figure]:
    """Measure a daemon without questions, then one with many."""
    with daemon(folder / "asked-none", _CONFIG) as (target, _):
        before = await _measured(target)
    park = await _ask(folder / "asked-many")
    with daemon(folder / "asked-many", _CONFIG, made=True) as (target, _):
        after = await _measured(target)
    memory, idle, plain, asked = (now - then for now, then in zip(after, before, strict=True))
    return [
        Figure("10,000 open questions: CPU while idle, more", idle, "ms/s", 2.0,
               beside=f"{after[1]:.1f} ms a second, {before[1]:.1f} with none"),
        Figure("10,000 open questions: memory, more", memory, "MB", 5.0,
               beside=f"{after[0]:.0f} MB, {before[0]:.0f} with none; {park:.0f} us to park one"),
        Figure("10,000 open questions: a plain call, more", plain, "us", 30.0,
               beside=f"{after[2]:.0f} us of CPU, {before[2]:.0f} with none"),
        Figure("10,000 open questions: a call that asks, more", asked, "us", 100.0,
               beside=f"{after[3]:.0f} us of CPU, {before[3]:.0f} with none"),
    ]  # fmt: skip
