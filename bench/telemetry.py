"""What it costs to tell a collector of every call: CPU of the daemon, with and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from bench.daemon import ROUNDS, Target, daemon, echo, round_of
from bench.figures import Figure

if TYPE_CHECKING:
    from pathlib import Path

CALLERS = 50
_SETTLES = 1.5


async def _cost(target: Target) -> float:
    """Microseconds for each call, with what is written and sent of it afterwards."""
    before = target.cpu
    used, _ = await round_of(target, CALLERS, "/api/tools/system_time/call")
    calls = (target.cpu - before) / used * 1e6
    await anyio.sleep(_SETTLES)
    return (target.cpu - before) / calls * 1e6


async def figures(folder: Path) -> list[Figure]:
    with echo() as collector:
        config = (
            f'[telemetry]\nendpoint = "http://127.0.0.1:{collector.port}"\n'
            "allow_private = true\ninterval_secs = 1\n"
        )
        off, on = list[float](), list[float]()
        with (
            daemon(folder / "telemetry-off") as (plain, _),
            daemon(folder / "telemetry-on", config) as (told, _),
        ):
            for _ in range(ROUNDS):
                off.append(await _cost(plain))
                on.append(await _cost(told))
    beside = f"{min(off):.0f} us without, {min(on):.0f} us with traces and metrics"
    ratio = min(on) / min(off)
    return [Figure("telemetry on, times a call without", ratio, "x", 1.1, beside=beside)]
