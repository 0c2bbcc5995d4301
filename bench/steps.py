"""Where the CPU of a governed call over `/mcp` goes: `python -m bench.steps`.

A step has the samples whose innermost function of a known home belongs to it: what it calls for
help (`safety`, `core`, a library) is its own cost. A number behind it is that of the calls.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from bench.daemon import daemon
from bench.mcp import http_entry, stdio_entry, web
from bench.sampled import SAMPLES
from bench.wire import TEXT, Served, cpu_of_calls

if TYPE_CHECKING:
    from bench.daemon import Target

CALLS = 30_000
CALLERS = 10
WAYS = {
    "built-in": "system_time",
    "stdio upstream": "mcp_echo_get_echo",
    "HTTP upstream": "mcp_web_get_echo",
}
LOOP = "event loop, system, threads"
STEPS = {
    "HTTP: request read": (
        "host/connection.py",
        "host/heads.py",
        "host/server.py",
        "edges/api/exchange.py:read_body",
        "edges/api/app.py:_taken",
    ),
    "HTTP: answer sent": (
        "host/exchange.py",
        "edges/api/mount.py",
        "edges/api/exchange.py:send_answer",
        "edges/mcp/reply.py",
        "uvicorn",
    ),
    "who asks, from where, in which chain": ("edges/api", "app/auth", "app/daemon"),
    "MCP: message read, answer made": ("edges/mcp",),
    "what is offered here, the call made": ("app/offering", "app/calling.py", "policy/context.py"),
    "tool found, guards": ("pipeline/catalog.py", "registry", "pipeline/guards.py", "guard"),
    "arguments: size and schema": ("safety/sizes.py", "safety/schemas.py", "safety/schema_work.py"),
    "gates, flow": ("policy", "pipeline/verdicts.py", "pipeline/runs.py", "safety/taint.py"),
    "records made, redacted": (
        "pipeline/records.py",
        "pipeline/evidence.py",
        "pipeline/invoke.py:_arguments",
        "pipeline/invoke.py:_context",
        "pipeline/invoke.py:_finish",
    ),
    "records chained, committed": ("audit", "storage"),
    "slot, stamp, deadline": ("pipeline/execute.py", "pipeline/slot.py", "pipeline/stamp.py"),
    "source: the tool, or its server": ("sources", "host/lines.py", "host/http.py", "aiohttp"),
    "result: capped, redacted, labelled": ("pipeline/shape.py", "pipeline/invoke.py:_shaped"),
    "log line, counters": (
        "pipeline/logged.py",
        "app/logs",
        "app/metrics",
        "pipeline/invoke.py:_observe",
    ),
    "the path itself": ("pipeline/invoke.py",),
}
_HOMES = sorted(
    ((home, step) for step, homes in STEPS.items() for home in homes),
    key=lambda known: -len(known[0]),
)


def step_of(stack: str) -> str:
    """Find whose cost a sample is."""
    for function in reversed(stack.split()):
        for home, step in _HOMES:
            if function.startswith(home):
                return step
    return LOOP


def shares(samples: str) -> dict[str, float]:
    """The part that each step has of all samples."""
    counted = Counter[str]()
    for line in samples.splitlines():
        count, _, stack = line.partition(" ")
        counted[step_of(stack)] += int(count)
    return {step: counted[step] / counted.total() for step in (*STEPS, LOOP)}


async def _sampled(target: Target, home: Path, tool: str, calls: int) -> tuple[float, str]:
    """Microseconds of CPU for each call, and what was sampled meanwhile."""
    arguments = {} if tool == "system_time" else TEXT
    served = Served(target=target, modern=True, tool=tool, arguments=arguments)
    await cpu_of_calls(served, CALLERS, calls // 10)
    os.kill(target.pid, signal.SIGUSR1)
    cost = await cpu_of_calls(served, CALLERS, calls)
    os.kill(target.pid, signal.SIGUSR1)
    return cost, _written(home / SAMPLES)


def _written(file: Path) -> str:
    end = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < end, file
        time.sleep(0.02)
    text = file.read_text()
    file.unlink()
    return text


def table(found: dict[str, tuple[float, dict[str, float]]]) -> str:
    """The steps in the order in which a call meets them, and what each costs, by way."""
    lines = [f"| step | {' | '.join(found)} |", "|---|" + "--:|" * len(found)]
    for step in (*STEPS, LOOP):
        cells = [
            f"{cost * share[step]:.0f} us, {share[step]:.1%}" for cost, share in found.values()
        ]
        lines.append(f"| {step} | {' | '.join(cells)} |")
    whole = [f"**{cost:.0f} us**" for cost, _ in found.values()]
    return "\n".join([*lines, f"| whole | {' | '.join(whole)} |"])


async def profile(folder: Path, calls: int) -> str:
    """Call all ways, one after the other, and say where it went."""
    home = folder / "profiled"
    found: dict[str, tuple[float, dict[str, float]]] = {}
    with web() as port:
        servers = stdio_entry("echo") + http_entry("web", port)
        with daemon(home, servers, module="bench.sampled") as (target, _):
            for way, tool in WAYS.items():
                cost, samples = await _sampled(target, home, tool, calls)
                found[way] = cost, shares(samples)
    return table(found)


def main() -> None:
    calls = int(sys.argv[1]) if sys.argv[1:] else CALLS
    with tempfile.TemporaryDirectory(prefix="openfang-profile-") as name:
        options = {"use_uvloop": True}
        print(anyio.run(profile, Path(name), calls, backend_options=options))


if __name__ == "__main__":
    main()
