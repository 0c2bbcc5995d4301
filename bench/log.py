"""The audit log: how many records a second, how long the loop stalls, how fast it is verified."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import anyio
import orjson
from anyio import to_thread

from bench.figures import Figure, Stopwatch, cpu_seconds
from openfang.app.verify import Export, opened, verify
from openfang.audit.export import row_body, verify_lines
from openfang.core.events import Record
from openfang.storage.log import all_rows
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from pathlib import Path

PRODUCERS = 200
RECORDS = 100_000
ROUNDS = 3
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


class Stall(NamedTuple):
    """How late a timer of one millisecond came, and what the loop's thread did meanwhile, in ms."""

    late: float = 0.0
    busy: float = 0.0


async def worst_stall(stop: anyio.Event) -> Stall:
    worst = Stall()
    while not stop.is_set():
        before, used = time.perf_counter(), time.thread_time()
        await anyio.sleep(_TICK)
        late, busy = time.perf_counter() - before - _TICK, time.thread_time() - used
        worst = max(worst, Stall(late * 1000, busy * 1000))
    return worst


async def stall_under_calls(app: OpenApp) -> Stall:
    stop, worst = anyio.Event(), [Stall()]

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


def exported(app: OpenApp, begun: Export, file: Path) -> float:
    """Verify an export by its key alone, then with one byte of it changed: records a second."""
    found = all_rows(file.with_name("log") / "openfang.db")
    with file.open("wb") as to:
        for body in (*begun.lines, *map(row_body, filter(begun.covers, found))):
            to.write(orjson.dumps(body) + b"\n")
    key = app.parts.master.signing_key().public_key()
    with Stopwatch() as watch, file.open("rb") as came:
        verification = verify_lines(came, key)
    assert verification.intact
    changed = file.read_bytes().replace(b"123", b"124", 1)
    assert not verify_lines(changed.splitlines(), key).intact
    return verification.records / watch.seconds


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "log") as app:
        await stall_under_calls(app)  # the first round loads what is loaded once
        # What other programs of the machine do shows in one round, what we do in each.
        stall = min([await stall_under_calls(app) for _ in range(ROUNDS)])
        before = cpu_seconds()
        with Stopwatch() as watch:
            await produce(app)
        cpu = (cpu_seconds() - before) / RECORDS * 1e6
        rate = RECORDS / watch.seconds
        with Stopwatch() as watch:
            verification = await verify(app.parts)
        assert verification.intact
        verified = verification.records / watch.seconds
        begun = await opened(app.parts, 0, at=1)
        offline = await to_thread.run_sync(exported, app, begun, folder / "log.jsonl")
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
        Figure("verified records of an export, one core", offline, "/s", 100_000, at_most=False),
        Figure(
            "worst stall of the event loop, 50 callers",
            stall.late,
            "ms",
            10,
            beside=f"the loop worked for {stall.busy:.1f} ms of it",
        ),
    ]
