"""Definitions: how many poisoned ones are held back, how many real ones are, and what it costs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio

from bench.figures import Figure, cpu_seconds
from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.registry.board import Board
from openfang.registry.pins import Pin, said_of
from openfang.safety.definitions import scan, serious

_DATA = Path(__file__).parent.parent / "tests" / "data" / "definitions"
_MANY = 10_000


class _Kept:
    """Pins in memory."""

    def load(self) -> dict[str, Pin]:
        return {}

    def save(self, pins: object, before: object) -> None:
        del pins, before


class _Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time_ns(self) -> int:
        return time.time_ns()


def _real() -> list[tuple[Any, frozenset[str]]]:
    found: list[tuple[Any, frozenset[str]]] = []
    for file in sorted((_DATA / "real").glob("*.json")):
        said: dict[str, Any] = json.loads(file.read_text())
        tools = said.get("tools", [])
        own = frozenset(one["name"].lower() for one in tools)
        found += [(one, own) for one in [*tools, *said.get("prompts", [])]]
    return found


def _caught(name: str) -> Figure:
    rows = json.loads((_DATA / f"poisoned-{name}.json").read_text())
    caught = sum(serious(scan(one["definition"])) for one in rows)
    beside = f"{caught} of {len(rows)}"
    title = f"poisoned definitions held back, {name}"
    return Figure(title, 100 * caught / len(rows), "%", 95, at_most=False, beside=beside)


def _measured() -> list[Figure]:
    real = _real()
    before = cpu_seconds()
    alarms = sum(serious(scan(one, own)) for one, own in real)
    each = (cpu_seconds() - before) / len(real) * 1e6
    return [
        _caught("dev"),
        _caught("held-out"),
        Figure(
            "real definitions held back",
            100 * alarms / len(real),
            "%",
            2,
            beside=f"{alarms} of {len(real)}",
        ),
        Figure("looking at a real definition, CPU", each, "us", 2_000),
        _unchanged(),
    ]


def _unchanged() -> Figure:
    """Judge a list of ten thousand again in which nothing has changed, beside writing it down."""
    tools = [
        Tool(
            id=f"mcp:many:{number}",
            kind=Kind.MCP,
            source="many",
            name=f"tool_{number}",
            description=f"Reads the file number {number} of the archive.",
            input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
        )
        for number in range(_MANY)
    ]
    board = Board(_Kept(), _Clock())
    verdicts = board.judged(map(said_of, tools))
    board.keep([one.pin for one in verdicts.values()])
    began = cpu_seconds()
    digests = [said_of(tool).digest for tool in tools]  # as it was before anything was looked at
    plain = cpu_seconds() - began
    began = cpu_seconds()
    board.judged(map(said_of, tools))
    more = cpu_seconds() - began - plain
    return Figure(
        "10,000 tools unchanged: more than their pins", more * 1e3, "ms", 100,
        beside=f"{plain * 1e3:.0f} ms for {len(digests):,} digests",
    )  # fmt: skip


async def figures(folder: Path) -> list[Figure]:
    del folder
    return await anyio.to_thread.run_sync(_measured)
