"""The audit log: how many records a second, how long the loop stalls, how fast it is verified."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from bench.figures import Figure, Stopwatch, cpu_seconds
from openfang.app.verify import verify
from openfang.core.events import Record
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from pathlib import Path

PRODUCERS = 200
RECORDS = 100_000
_TICK = 0.001


async def produce(app: OpenApp) -> None:
    payload = {"outcome": "ok", "duration_us": 123, "labels": ["external_network"]}
    context = {"tool": "builtin:system_time", "caller": "key:admin", "source_type": "builtin"}
    record = Record(event="tool_invocation_end", payload=payload, context=context)

    async def one() -> None:
        for _ in range(RECORDS // PRODUCERS):
            await app.parts.writer.submit(app.parts.broker.unit([record]))

    async with anyio.create_task_group() as tasks:
        for _ in range(PRODUCERS):
            tasks.start_soon(one)


async def worst_stall(stop: anyio.Event) -> float:
    """The longest that a timer of one millisecond came late, in milliseconds."""
    worst = 0.0
    while not stop.is_set():
        before = time.perf_counter()
        await anyio.sleep(_TICK)
        worst = max(worst, time.perf_counter() - before - _TICK)
    return worst * 1000


async def stall_under_calls(app: OpenApp) -> float:
    stop, worst = anyio.Event(), [0.0]

    async def watch() -> None:
        worst[0] = await worst_stall(stop)

    async def calls() -> None:
        for _ in range(200):
            await app.call("system_time")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        async with anyio.create_task_group() as callers:
            for _ in range(50):
                callers.start_soon(calls)
        stop.set()
    return worst[0]


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "log") as app:
        await stall_under_calls(app)  # the first round loads what is loaded once
        stall = await stall_under_calls(app)
        before = cpu_seconds()
        with Stopwatch() as watch:
            await produce(app)
        cpu = (cpu_seconds() - before) / RECORDS * 1e6
        rate = RECORDS / watch.seconds
        with Stopwatch() as watch:
            verification = await to_thread.run_sync(verify, app.parts)
        assert verification.intact
        verified = verification.records / watch.seconds
    beside = f"{cpu:.1f} us of CPU each"
    return [
        Figure(
            f"committed records, {PRODUCERS} producers",
            rate,
            "/s",
            20_000,
            at_most=False,
            beside=beside,
        ),
        Figure("verified records, one core", verified, "/s", 100_000, at_most=False),
        Figure("worst stall of the event loop, 50 callers", stall, "ms", 10),
    ]
