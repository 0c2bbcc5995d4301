"""The operator's rules: what a call pays for those that the index leaves, and what the index takes.

Decisions are timed inside real calls, where nothing is warm, with and without rules in turn.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

from bench.figures import Figure, cpu_per, cpu_seconds
from openfang.core.calls import Call, Caller
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Tool
from openfang.policy.engine import Decided, Engine
from openfang.policy.rules.book import Book
from openfang.policy.rules.conditions import compiled
from openfang.policy.rules.rule import Names, Rule
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.testing import OpenApp

TOOL = "builtin:system_time"
ROUNDS, CALLS = 5, 400
TOOLS, RULES, LEFT = 10_000, 100, 3
_BUILTIN = Tool(id=TOOL, kind=Kind.BUILTIN, source="builtin", name="system_time", risk=Risk.LOW)
CONDITION = "has(args.path) && args.path.startsWith('/etc/{number}') && !('secret' in labels)"


def rule(number: int, *, left: bool) -> Rule:
    """Make a rule with a condition that is false; one that is not left is about other tools."""
    return Rule(
        name=f"rule-{number}",
        says="deny",
        callers=Names(("*",) if number % 2 else ()),
        tools=Names((TOOL,) if left else (f"mcp:s{number}:*", f"mcp:*:delete_{number}")),
        condition=compiled(CONDITION.format(number=number)),
    )


def book_of(left: int) -> Book:
    rules = [rule(number, left=number >= RULES - left) for number in range(RULES)]
    return Book(rules, time.time_ns)


def many_tools() -> list[Tool]:
    return [
        Tool(
            id=f"mcp:s{number % RULES}:tool_{number}",
            kind=Kind.MCP,
            source=f"s{number % RULES}",
            name=f"tool_{number}",
            risk=Risk.LOW,
        )
        for number in range(TOOLS)
    ]


class _Timed(Engine):
    """An engine that notes what each decision takes of the processor, amid real calls."""

    def decide(self, tool: Tool, call: Call, labels: Labels = Labels.NONE) -> Decided:
        began = time.thread_time_ns()
        decided = Engine.decide(self, tool, call, labels)
        NOTED.append(time.thread_time_ns() - began)
        return decided


NOTED: list[int] = []


async def _decision(app: OpenApp, book: Book | None) -> float:
    """Microseconds of CPU that a decision takes, with these rules in force."""
    pipeline = app.parts.pipeline
    engine = pipeline.engine
    pipeline.engine = _Timed(engine.gates, engine.custom, book)
    caller, context = app.caller, app.make(TOOL, {}).context
    NOTED.clear()
    for _ in range(CALLS):
        await pipeline.invoke(Call(tool=TOOL, caller=caller, context=context))
    pipeline.engine = engine
    return median(NOTED) / 1e3


async def _costs(app: OpenApp) -> dict[str, float]:
    books = {"none": None, "three": book_of(LEFT), "all": book_of(RULES), "no left": book_of(0)}
    least = dict.fromkeys(books, float("inf"))
    for _ in range(ROUNDS):
        for name, book in books.items():
            least[name] = min(least[name], await _decision(app, book))
    return least


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "rules") as app:
        costs = await _costs(app)
    found, tools = book_of(LEFT), many_tools()
    caller = Caller(id="key:bench")
    call = Call(tool=TOOL, caller=caller, arguments={"path": "/home/somebody/file"})
    before = cpu_seconds()
    for tool in tools:
        found.judge(tool, call, Labels.NONE)
    indexed = (cpu_seconds() - before) * 1e3
    judged = cpu_per(2_000, lambda: found.judge(_BUILTIN, call, Labels.USER_INPUT))
    bare = costs["none"]
    added = costs["three"] - bare
    beside = f"{bare:.1f} us a decision without rules; judging alone {judged:.1f} us"
    return [
        Figure(f"{RULES} rules, {LEFT} left: added to a call", added, "us", 50, beside=beside),
        Figure(f"{RULES} rules, none left: added to a call", costs["no left"] - bare, "us", 10),
        Figure(f"{RULES} rules, all left: added to a call", costs["all"] - bare, "us", 1000),
        Figure(f"index of {TOOLS:,} tools x {RULES} rules", indexed, "ms", 500),
    ]
