"""Schedules: what the one timer loop takes to find the next of them, among few and among many."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.figures import Figure, cpu_per_async
from openfang.storage import timers
from openfang.storage.timers import Timer, TimerStore
from openfang.storage.units import Unit
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.testing import OpenApp

_FEW, _MANY = 20, 1_000
_LOOKS = 500
_TOMORROW = 86_400_000_000_000


async def _plan(app: OpenApp, first: int, last: int) -> None:
    due = app.parts.clock.time_ns() + _TOMORROW
    planned = [
        timers.add(Timer(id=f"s{number}", kind="schedule", subject=f"s{number}", due=due + number))
        for number in range(first, last)
    ]
    await app.parts.writer.write(Unit(statements=tuple(planned)))


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "schedules") as app:
        look = partial(TimerStore(app.parts.database).soonest, "schedule", 17)
        await _plan(app, 0, _FEW)
        few = await cpu_per_async(_LOOKS, look)
        await _plan(app, _FEW, _MANY)
        many = await cpu_per_async(_LOOKS, look)
    beside = f"{many:.0f} us a look, every 30 s at most; {few:.0f} us with {_FEW}"
    return [Figure("1,000 schedules, none due: times a few", many / few, "x", 1.5, beside=beside)]
