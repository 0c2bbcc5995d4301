"""One row of what calls cost by this interpreter: run it by two of them in turns."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import anyio

from bench.daemon import daemon, round_of
from bench.mcp import stdio_entry
from bench.path import cpu_of_calls, many_tools
from bench.wire import TEXT, Served
from bench.wire import cpu_of_calls as cpu_over_mcp
from openfang.testing import open_test_app

CALLS = 5_000
ROUNDS = 3
_POST = "/api/tools/system_time/call"
_TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "a built-in": ("system_time", {}),
    "a stdio upstream": ("mcp_echo_get_echo", TEXT),
}


async def row(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    async with open_test_app(folder / "path", sources=many_tools(100)) as app:
        for callers in (1, 50):
            found[f"in process, {callers} caller(s)"] = await cpu_of_calls(app, callers)
    with daemon(folder / "served", stdio_entry("echo")) as (target, _):
        for callers in (1, 50):
            rounds = [(await round_of(target, callers, _POST))[0] for _ in range(ROUNDS)]
            found[f"POST, {callers} caller(s)"] = min(rounds)
        for name, (tool, arguments) in _TOOLS.items():
            served = Served(target=target, modern=True, tool=tool, arguments=arguments)
            await cpu_over_mcp(served, 10, CALLS // 10)
            rounds = [await cpu_over_mcp(served, 10, CALLS) for _ in range(ROUNDS)]
            found[f"/mcp to {name}"] = min(rounds)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="openfang-interpreter-") as name:
        found = anyio.run(row, Path(name), backend_options={"use_uvloop": True})
    print(sys.version.split()[0], *(f"{name}: {cost:.0f} us" for name, cost in found.items()))


if __name__ == "__main__":
    main()
