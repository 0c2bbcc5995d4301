"""Questions that wait: what a daemon with 10,000 of them takes beside one that has none."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import anyio

from bench.daemon import daemon
from bench.figures import Figure, cpu_seconds
from openfang.core.errors import Parked
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from bench.daemon import Target

_QUESTIONS = 10_000
_SECONDS = 10
_CALLS = 3_000
_AT_ONCE = 50
_ROUNDS = 4
_CONFIG = f"[approvals]\nmax_pending = {_QUESTIONS + 100}\ntimeout_secs = 86400\n"


async def _ask(home: Path) -> float:
    """Park so many calls; returns the microseconds of CPU that one took."""
    logging.getLogger("openfang").setLevel(logging.ERROR)
    async with open_test_app(home, config=_CONFIG) as app:
        before = cpu_seconds()
        for number in range(_QUESTIONS):
            try:
                await app.call("shell_exec", command=["true", str(number)])
            except Parked:
                continue
        return (cpu_seconds() - before) / _QUESTIONS * 1e6


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


async def _round(target: Target, tool: str, body: bytes, status: bytes) -> float:
    """Microseconds of CPU for each call."""
    before = target.cpu
    async with anyio.create_task_group() as tasks:
        for _ in range(_AT_ONCE):
            tasks.start_soon(_calls, target, f"/api/tools/{tool}/call", body, status)
    return (target.cpu - before) / _CALLS * 1e6


async def _beside(
    none: Target, many: Target, tool: str, body: bytes, status: bytes
) -> tuple[float, float]:
    """The same calls to both in turns, so that a busy machine is busy for both; the best rounds."""
    call = tool, body, status
    rounds = [(await _round(none, *call), await _round(many, *call)) for _ in range(_ROUNDS)]
    few, lots = zip(*rounds, strict=True)
    return min(few), min(lots)


async def figures(folder: Path) -> list[Figure]:
    """Measure a daemon without questions beside one with many."""
    park = await _ask(folder / "asked-many")
    with (
        daemon(folder / "asked-none", _CONFIG) as (none, _),
        daemon(folder / "asked-many", _CONFIG, made=True) as (many, _),
    ):
        memory = none.megabytes, many.megabytes
        idle = await _idle(none), await _idle(many)
        plain = await _beside(none, many, "system_time", b'{"arguments":{}}', b"200")
        again = b'{"arguments":{"command":["true","5000"]}}'
        asked = await _beside(none, many, "shell_exec", again, b"202")
    return [
        _more("CPU while idle", idle, "ms/s", 2.0),
        _more("memory", memory, "MB", 5.0, f"; {park:.0f} us of CPU to park one"),
        _more("a plain call", plain, "us", 30.0),
        _more("a call that asks", asked, "us", 100.0),
    ]


def _more(what: str, found: tuple[float, float], unit: str, goal: float, told: str = "") -> Figure:
    none, many = found
    beside = f"{many:.1f}, {none:.1f} with none{told}"
    return Figure(f"10,000 open questions: {what}, more", many - none, unit, goal, beside=beside)
