"""A figure: what was measured, what it is compared with, and what it should be."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


_SCHED = 2  # which of the clocks of a process, as Linux numbers them


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report. `at_most` says in which direction the goal lies."""

    name: str
    value: float
    unit: str
    goal: float
    at_most: bool = True
    beside: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        mark = "ok  " if self.met else "MISS"
        beside = f"   {self.beside}" if self.beside else ""
        figure = f"{self.value:>12,.2f} {self.unit:<5}{sign} {self.goal:<12,.1f}"
        return f"{mark} {self.name:<46}{figure}{beside}"


def cpu_seconds() -> float:
    """User and system time of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of_process(pid: int) -> float:
    """The same of another process, by its own clock: /proc tells hundredths of a second alone."""
    return time.clock_gettime(~pid << 3 | _SCHED)


def cpu_per(count: int, work: Callable[[], object]) -> float:
    """Microseconds of CPU for each of `count` repetitions: the best of three rounds."""
    rounds: list[float] = []
    for _ in range(3):
        before = cpu_seconds()
        for _ in range(count):
            work()
        rounds.append((cpu_seconds() - before) / count * 1e6)
    return min(rounds)


async def cpu_per_async(count: int, work: Callable[[], Awaitable[object]]) -> float:
    """The same for coroutines, one after the other."""
    rounds: list[float] = []
    for _ in range(3):
        before = cpu_seconds()
        for _ in range(count):
            await work()
        rounds.append((cpu_seconds() - before) / count * 1e6)
    return min(rounds)


@dataclass(slots=True)
class Stopwatch:
    """Wall time of a block."""

    began: float = 0.0
    seconds: float = 0.0

    def __enter__(self) -> Self:
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.began
