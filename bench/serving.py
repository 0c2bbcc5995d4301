"""Our own MCP server: CPU of the daemon for each call over `/mcp`, beside other gateways."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from bench import rivals
from bench.daemon import daemon
from bench.figures import Figure
from bench.mcp import http_entry, stdio_entry, web
from bench.wire import GREETING, TEXT, Served, answer, cpu_of_calls, greeted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from bench.daemon import Target

CALLS = 3_000
RIVAL_CALLS = 200
CALLERS = 10
ROUNDS = 3
SESSIONS = 1_000
_SEARCH = '[toolsets.searched]\nservers = ["many"]\nmode = "search"\n'
_WHOLE = '[toolsets.whole]\nservers = ["many"]\n'
_TIMES = {"mcp-proxy": 1, "FastMCP's proxy": 10, "mcp-hangar": 10}


async def _best(served: Served, calls: int = CALLS) -> float:
    return min([await cpu_of_calls(served, CALLERS, calls) for _ in range(ROUNDS)])


async def _calls(target: Target) -> AsyncGenerator[tuple[str, Figure]]:
    ours = Served(target=target, modern=True)
    ways = (
        ("a built-in", replace(ours, tool="system_time"), 400),
        ("a stdio upstream", replace(ours, tool="mcp_echo_get_echo", arguments=TEXT), 700),
        ("an HTTP upstream", replace(ours, tool="mcp_web_get_echo", arguments=TEXT), 1_200),
    )
    for what, served, goal in ways:
        cost = await _best(served)
        yield what, Figure(f"governed call over /mcp to {what}", cost, "us", goal)
        if not served.arguments:  # alike in a session, these calls would be a loop
            continue
        session = await _best(replace(served, modern=False, session=True))
        beside = f"{session:.0f} us"
        name = f"the same in a session, times {what}"
        yield "session", Figure(name, session / cost, "x", 1.5, beside=beside)


async def _rivals(folder: Path, ours: float) -> AsyncGenerator[Figure]:
    for name in rivals.NAMES:
        with rivals.running(name, folder) as served:
            headers = await greeted(served)
            there = replace(served, headers=headers)
            await answer(there, "notifications/initialized")
            await cpu_of_calls(there, 1, 5)
            cost = await _best(there, RIVAL_CALLS)
        beside = f"{cost:,.0f} us, ours {ours:,.0f} us"
        yield Figure(
            f"{name} costs, times ours",
            cost / ours,
            "x",
            _TIMES[name],
            at_most=False,
            beside=beside,
        )


async def _idle_sessions(target: Target) -> Figure:
    served = Served(target=target)
    for _ in range(20):
        await greeted(served)
    before = target.megabytes
    for _ in range(SESSIONS - 20):
        await greeted(served)
    kib = (target.megabytes - before) * 1e6 / 1024 / (SESSIONS - 20)
    return Figure(f"one of {SESSIONS:,} idle sessions", kib, "KiB", 25)


async def _searched(target: Target) -> Figure:
    sizes = [
        len(await answer(Served(target=target, path=f"/mcp/{name}", modern=True), "tools/list"))
        for name in ("whole", "searched")
    ]
    whole, searched = sizes
    beside = f"{searched:,} bytes in place of {whole:,}"
    less = (1 - searched / whole) * 100
    return Figure(
        "search mode at 500 tools shows less by", less, "%", 95, at_most=False, beside=beside
    )


def _greeting_over_stdio(home: Path) -> Figure:
    """CPU of `openfang mcp` until it has answered `initialize` and ended."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING})
    environ = {**os.environ, "OPENFANG_HOME": str(home)}
    seconds: list[float] = []
    for _ in range(ROUNDS):
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "openfang", "mcp"],
            input=f"{line}\n".encode(),
            capture_output=True,
            env=environ,
            check=True,
        )
        after = os.times()
        assert b'"protocolVersion"' in done.stdout, done
        used = after.children_user - before.children_user
        seconds.append(used + after.children_system - before.children_system)
    return Figure("`openfang mcp` answers initialize", min(seconds), "s", 0.3)


async def figures(folder: Path) -> list[Figure]:
    found: list[Figure] = []
    with web() as port:
        servers = (
            stdio_entry("echo"),
            http_entry("web", port),
            stdio_entry("many", "many", "500"),
            _SEARCH,
            _WHOLE,
        )
        with daemon(folder / "mcp-served", "".join(servers)) as (target, _):
            upstream = 0.0
            async for what, figure in _calls(target):
                found.append(figure)
                upstream = figure.value if what == "a stdio upstream" else upstream
            found.append(await _searched(target))
            found.append(_greeting_over_stdio(folder / "mcp-served"))
            found.append(await _idle_sessions(target))
    found += [figure async for figure in _rivals(folder, upstream)]
    return found
