"""The path: one governed call of a trivial built-in, every gate, guard and record on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from bench.figures import Figure, cpu_per, cpu_seconds
from openfang.core.calls import Call
from openfang.core.ids import Kind
from openfang.core.results import text_result
from openfang.core.tools import Risk
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

CALLS = 5_000
TOOL = "system_time"


def bare() -> object:
    """What a call would cost if nobody governed it."""
    return text_result("2026-01-01T00:00:00+00:00")


async def cpu_of_calls(app: OpenApp, callers: int) -> float:
    """Microseconds of CPU per call, the best of three rounds."""

    caller, context = app.caller, app.make(TOOL, {}).context
    invoke = app.parts.pipeline.invoke

    async def calls() -> None:
        for _ in range(CALLS // callers):
            await invoke(Call(tool=TOOL, caller=caller, context=context))

    rounds: list[float] = []
    for _ in range(3):
        before = cpu_seconds()
        async with anyio.create_task_group() as tasks:
            for _ in range(callers):
                tasks.start_soon(calls)
        rounds.append((cpu_seconds() - before) / CALLS * 1e6)
    return min(rounds)


def many_tools(count: int) -> list[TableSource]:
    async def nothing(_: Mapping[str, Any]) -> str:
        return ""

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    per_source = 100
    return [
        TableSource(Kind.MCP, f"s{number}", {f"t{i}": (facts, nothing) for i in range(per_source)})
        for number in range(count // per_source)
    ]


async def figures(folder: Path) -> list[Figure]:
    baseline = cpu_per(20_000, bare)
    found: list[Figure] = []
    async with open_test_app(folder / "few", sources=many_tools(100)) as app:
        for callers in (1, 50):
            cost = await cpu_of_calls(app, callers)
            beside = f"{cost / baseline:,.0f} times a bare function ({baseline:.2f} us)"
            name = f"governed call of a built-in, {callers} caller(s)"
            found.append(Figure(name, cost, "us", 120, beside=beside))
        few = found[-1].value
    async with open_test_app(folder / "many", sources=many_tools(10_000)) as app:
        many = await cpu_of_calls(app, 50)
    share = (many / few - 1) * 100
    beside = f"{many:.0f} us at 10,000 tools, {few:.0f} us at 100"
    found.append(Figure("10,000 tools cost more than 100 by", share, "%", 10, beside=beside))
    return found
