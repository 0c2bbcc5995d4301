"""The loop guard: a run that repeats itself is warned, then stopped (C10).

How the rules fit together:

- A *series* is the identical calls since the last changed result. Before call n of a series, the
  *identical* rule warns at n = 3 and blocks at n = 5, whatever came back, or if nothing did.
- The *outcome* rule needs results: the second same result of a series carries a warning, and after
  the third the next identical call is blocked. So where every result comes back the same, the
  outcome rule speaks first (call 4 is blocked); the identical rule is for calls that fail without
  a result, and for those sent side by side before any answer is there.
- A changed result starts a new series, and breaks patterns too: A-B-A-B is no loop while the
  answers move.
- For a tool declared as a poll all these thresholds, patterns included, are three times as high.
- Progress is a (tool, result) pair that this run has not seen. Every ended or blocked call without
  it counts; calls still under way do not. After 30 the run is over, and stays so.

A tool that puts the time into its answer always makes progress; the run budget ends that.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import field
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """The thresholds, and how much is remembered."""

    warn_calls: int = 3
    block_calls: int = 5
    warn_outcomes: int = 2
    block_outcomes: int = 3
    rounds: int = 3
    poll_factor: int = 3
    stale_calls: int = 30
    history: int = 30
    runs: int = 2_000


@dataclass(frozen=True, slots=True)
class Pass:
    """No loop in sight."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Run it, and add `text` to the result."""

    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Do not run it; `text` is the result instead."""

    text: str
    rule: str


Verdict: TypeAlias = Pass | Warn | Block
PASS = Pass()
_KEYS_PER_RUN = 64
_RESULTS_PER_RUN = 128
_CYCLES = (2, 3)


def call_key(tool_id: str, canonical: bytes) -> bytes:
    """Name a call by its tool and its canonical arguments."""
    return blake2b(tool_id.encode() + b"\0" + canonical, digest_size=16).digest()


@dataclass(slots=True)
class _Series:
    """One call as often as it was made since its result last changed."""

    tool: str
    polls: bool
    calls: int = 0
    outcomes: int = 0
    result: bytes | None = None


@dataclass(slots=True)
class _Run:
    history: deque[bytes]
    series: OrderedDict[bytes, _Series] = field(default_factory=OrderedDict[bytes, _Series])
    results: OrderedDict[tuple[str, bytes], None] = field(
        default_factory=OrderedDict[tuple[str, bytes], None]
    )
    stale: int = 0


class Loops:
    """The recent runs and what they repeat."""

    __slots__ = ("_limits", "_runs")

    def __init__(self, limits: LoopLimits | None = None) -> None:
        self._limits = limits or LoopLimits()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def configure(self, limits: LoopLimits) -> None:
        """Judge by other limits from now on; what was counted stays."""
        self._limits = limits

    @property
    def size(self) -> int:
        """How many runs are remembered."""
        return len(self._runs)

    def before(self, run_id: str | None, tool: Tool, key: bytes) -> Verdict:
        """Count a call that is about to run, and say whether it may. `key` is from `call_key`."""
        if run_id is None:
            return PASS
        run = self._run(run_id)
        series = _series(run, tool, key)
        series.calls += 1
        run.history.append(key)
        verdict = self._judge(run, tool, series, run.history)
        if isinstance(verdict, Block):
            run.stale += 1
        return verdict

    def look(self, run_id: str | None, tool: Tool, key: bytes) -> Verdict:
        """Say what `before` would answer, and change nothing."""
        run = self._runs.get(run_id) if run_id is not None else None
        if run is None:
            return PASS
        known = run.series.get(key)
        series = _Series(
            tool.id,
            tool.polls,
            (known.calls if known else 0) + 1,
            known.outcomes if known else 0,
        )
        return self._judge(run, tool, series, deque((*run.history, key), self._limits.history))

    def after(self, run_id: str | None, key: bytes, result: bytes | None) -> Pass | Warn:
        """Take in the digest of a call's result, or None where it ended without one."""
        run = self._runs.get(run_id) if run_id is not None else None
        series = run.series.get(key) if run else None
        if run is None or series is None:
            return PASS
        if result is None or not _is_new(run, series.tool, result):
            run.stale += 1
        elif run.stale < self._limits.stale_calls:
            run.stale = 0
        return PASS if result is None else self._compare(run, key, series, result)

    def _run(self, run_id: str) -> _Run:
        runs = self._runs
        run = runs.get(run_id)
        if run is None:
            run = runs[run_id] = _Run(deque(maxlen=self._limits.history))
            if len(runs) > self._limits.runs:
                runs.popitem(last=False)
        else:
            runs.move_to_end(run_id)
        return run

    def _judge(self, run: _Run, tool: Tool, series: _Series, history: deque[bytes]) -> Verdict:
        limits = self._limits
        factor = limits.poll_factor if tool.polls else 1
        if run.stale >= limits.stale_calls:
            return _over(run.stale)
        if series.outcomes >= limits.block_outcomes * factor:
            return _same_outcome(tool, series.outcomes)
        if series.calls >= limits.block_calls * factor:
            return _same_call(tool, series.calls)
        if self._circles(run, tool, history):
            return _circle(tool)
        if series.calls >= limits.warn_calls * factor:
            return Warn(
                f"[loop guard] This is identical call {series.calls} of {tool.id} in this run. "
                "Change the arguments, try another tool, or answer with what you have."
            )
        return PASS

    def _circles(self, run: _Run, tool: Tool, history: deque[bytes]) -> bool:
        """Whether the last calls are one cycle of two or three different calls, over and over."""
        last = len(history) - 1
        return any(
            last >= length
            and history[last] == history[last - length]
            and self._repeats(run, tool, list(history), length)
            for length in _CYCLES
        )

    def _repeats(self, run: _Run, tool: Tool, recent: list[bytes], length: int) -> bool:
        cycle = recent[-length:]
        if len(set(cycle)) != length:
            return False
        polls = tool.polls or any(key in run.series and run.series[key].polls for key in cycle)
        rounds = self._limits.rounds * (self._limits.poll_factor if polls else 1)
        return recent[-length * rounds :] == cycle * rounds

    def _compare(self, run: _Run, key: bytes, series: _Series, result: bytes) -> Pass | Warn:
        if series.result is not None and series.result != result:
            series.calls = 1
            series.outcomes = 0
            run.history.clear()
            run.history.append(key)
        series.result = result
        series.outcomes += 1
        factor = self._limits.poll_factor if series.polls else 1
        if series.outcomes < self._limits.warn_outcomes * factor:
            return PASS
        return Warn(
            f"[loop guard] {series.tool} gave the same result {series.outcomes} times for the same "
            "arguments. It will not change: use it, or do something else."
        )


def _series(run: _Run, tool: Tool, key: bytes) -> _Series:
    series = run.series.get(key)
    if series is None:
        series = run.series[key] = _Series(tool.id, tool.polls)
        if len(run.series) > _KEYS_PER_RUN:
            run.series.popitem(last=False)
    else:
        run.series.move_to_end(key)
    return series


def _is_new(run: _Run, tool: str, result: bytes) -> bool:
    pair = (tool, result)
    if pair in run.results:
        run.results.move_to_end(pair)
        return False
    run.results[pair] = None
    if len(run.results) > _RESULTS_PER_RUN:
        run.results.popitem(last=False)
    return True


def _over(stale: int) -> Block:
    text = (
        f"The last {stale} calls of this run brought nothing new, so the run has ended. "
        "Tell the user what you found and what is missing."
    )
    return Block(text, "no_progress")


def _same_outcome(tool: Tool, outcomes: int) -> Block:
    text = (
        f"{tool.id} has given the same result {outcomes} times for these arguments and was not "
        "called again. Use that result, change the arguments, or answer with what you have."
    )
    return Block(text, "identical_outcome")


def _same_call(tool: Tool, calls: int) -> Block:
    text = (
        f"This is identical call {calls} of {tool.id} in this run and was not made. "
        "Change the arguments, try another tool, or answer with what you have."
    )
    return Block(text, "identical_calls")


def _circle(tool: Tool) -> Block:
    text = (
        f"The last calls go round in a circle, and {tool.id} was not called again. "
        "Choose a different step, or answer with what you have."
    )
    return Block(text, "call_pattern")
