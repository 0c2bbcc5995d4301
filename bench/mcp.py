"""MCP servers behind the path: CPU of our process for each call, and how failures are borne.

Beside each figure stand the same calls without us (our transport alone) and by the SDK's client.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from bench.figures import Figure, Stopwatch, cpu_seconds
from bench.path import many_tools
from openfang.core.calls import Call
from openfang.core.errors import CallFailed
from openfang.core.ids import Kind
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.source import McpSource

CALLS = 3_000
ROUNDS = 3
MANY_CALLS = 100_000
BIG = 32_000_000
SERVERS = 50
_ROOT = Path(__file__).parent.parent
_TEXT = "x" * 100


# What comes from the open world, or from a server that is trusted less, a session may not hand on
# unasked: calls are measured here, not questions.
def stdio_entry(name: str, *arguments: str) -> str:
    script = str(_ROOT / "bench" / "mcp_stdio.py")
    args = json.dumps([script, *arguments])
    return (
        f'[[mcp_servers]]\nname = "{name}"\ntrust = "high"\n'
        f'[mcp_servers.transport]\ntype = "stdio"\ncommand = "{sys.executable}"\nargs = {args}\n'
    )


def http_entry(name: str, port: int) -> str:
    return (
        f'[[mcp_servers]]\nname = "{name}"\nallow_private = true\ntrust = "high"\n'
        f'[mcp_servers.transport]\ntype = "http"\nurl = "http://127.0.0.1:{port}/mcp"\n'
    )


@contextmanager
def web() -> Generator[int]:
    command = [sys.executable, "-m", "bench.mcp_web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@asynccontextmanager
async def _connected(folder: Path, config: str) -> AsyncGenerator[OpenApp]:
    async with open_test_app(folder, config=config) as app:
        assert app.parts.servers
        await app.parts.servers.settled()
        yield app


def _source(app: OpenApp, name: str) -> McpSource:
    assert app.parts.servers
    return app.parts.servers.running[name]


async def _cpu(callers: int, work: Callable[[], Awaitable[object]], calls: int = CALLS) -> float:
    """Microseconds of CPU of this process for each call, the best of three rounds."""

    async def several() -> None:
        for _ in range(calls // callers):
            await work()

    rounds: list[float] = []
    for _ in range(ROUNDS):
        before = cpu_seconds()
        async with anyio.create_task_group() as tasks:
            for _ in range(callers):
                tasks.start_soon(several)
        rounds.append((cpu_seconds() - before) / calls * 1e6)
    return min(rounds)


def _governed(app: OpenApp, tool: str, **arguments: object) -> Callable[[], Awaitable[object]]:
    context = app.make(tool, {}).context

    def make() -> Awaitable[object]:
        call = Call(tool=tool, caller=app.caller, arguments=arguments, context=context)
        return app.parts.pipeline.invoke(call)

    return make


async def _sdk_cpu(target: object, mode: str) -> float:
    """The same calls by the SDK's own client."""
    from mcp import Client  # noqa: PLC0415 - it takes seconds, and is only compared with

    async with Client(target, mode=mode) as client:  # pyright: ignore[reportArgumentType]

        async def call() -> None:
            await client.call_tool("get_echo", {"text": _TEXT})

        return await _cpu(10, call, CALLS // 3)


async def _echo(folder: Path) -> AsyncGenerator[Figure]:
    from mcp import StdioServerParameters  # noqa: PLC0415 - as above

    script = str(_ROOT / "bench" / "mcp_stdio.py")
    parameters = StdioServerParameters(command=sys.executable, args=[script])
    with web() as port:
        ways = (
            ("stdio", stdio_entry("echo"), 350, parameters, "legacy"),
            (
                "2026-07-28 HTTP",
                http_entry("echo", port),
                800,
                f"http://127.0.0.1:{port}/mcp",
                "auto",
            ),
        )
        for number, (way, config, goal, target, mode) in enumerate(ways):
            sdk = await _sdk_cpu(target, mode)
            async with _connected(folder / f"echo-{number}", config) as app:
                connection = _source(app, "echo")._connection
                assert connection

                async def direct(connection: Connection = connection) -> None:
                    await connection.call("get_echo", {"text": _TEXT})

                alone = await _cpu(10, direct)
                for callers in (1, 10):
                    call = _governed(app, "mcp:echo:get_echo", text=_TEXT)
                    cost = await _cpu(callers, call)
                    beside = f"without us {alone:.0f} us, the SDK's client {sdk:.0f} us"
                    name = f"governed call over {way}, {callers} caller(s)"
                    yield Figure(name, cost, "us", goal, beside=beside)


async def _boot(folder: Path) -> Figure:
    """How long the good servers take, beside one that hangs, and without it."""
    seconds: list[float] = []
    for hanging in (False, True):
        good = "".join(stdio_entry(f"s{number}") for number in range(SERVERS - 1))
        config = (stdio_entry("hangs", "hang") if hanging else "") + good
        async with open_test_app(folder / f"boot-{hanging}", config=config) as app:
            servers = app.parts.servers
            assert servers
            with Stopwatch() as watch:
                servers.want()
                for number in range(SERVERS - 1):
                    assert await servers.reached(f"s{number}")
            seconds.append(watch.seconds)
    alone, beside = seconds
    words = f"{beside:.2f} s beside one that hangs, {alone:.2f} s without"
    name = f"{SERVERS - 1} servers ready beside a hanging one, more"
    return Figure(name, (beside / alone - 1) * 100, "%", 20, beside=words)


def _pid(folder: Path, name: str) -> int:
    """The child of ours whose command line names this home's server."""
    marker = str(folder).encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            environ = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes()
            if marker in environ and b"mcp_stdio" in command and b"bwrap" not in command:
                return int(entry.name)
    raise LookupError(name)


async def _killed(folder: Path) -> AsyncGenerator[Figure]:
    async with _connected(folder / "killed", stdio_entry("dies")) as app:
        source = _source(app, "dies")
        before, failed, watch = source._connection, anyio.Event(), Stopwatch()

        async def call() -> None:
            with suppress(CallFailed):
                await _governed(app, "mcp:dies:get_nothing")()
            failed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.sleep(0.3)
            with watch:
                os.kill(_pid(folder / "killed", "dies"), signal.SIGKILL)
                await failed.wait()
        yield Figure("a call to a killed server fails after", watch.seconds * 1e3, "ms", 100)
        with watch:
            while source._connection in (None, before):  # noqa: ASYNC110 - measured, not waited for
                await anyio.sleep(0.005)
        yield Figure("it is back after", watch.seconds, "s", 2)


async def _big(folder: Path) -> Figure:
    async with _connected(folder / "big", stdio_entry("echo")) as app:
        connection = _source(app, "echo")._connection
        assert connection
        with Stopwatch() as watch:
            await connection.call("get_big", {"bytes": BIG})
    return Figure("a result of 32 MB in one line", watch.seconds, "s", 1)


def _megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _memory(folder: Path) -> Figure:
    async with _connected(folder / "memory", stdio_entry("echo")) as app:
        call = _governed(app, "mcp:echo:get_echo", text=_TEXT)

        async def several() -> None:
            for _ in range(MANY_CALLS // 10 // 10):
                await call()

        seen: list[float] = []
        for _ in range(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(several)
            seen.append(_megabytes())
    beside = f"{seen[0]:.0f} MB after 10,000 calls, {seen[-1]:.0f} MB after {MANY_CALLS:,}"
    return Figure("memory grows by", (seen[-1] / seen[0] - 1) * 100, "%", 10, beside=beside)


async def _snapshot(folder: Path) -> AsyncGenerator[Figure]:
    sources = many_tools(10_000)
    async with _connected(folder / "snapshot", stdio_entry("echo")) as app:
        call = _governed(app, "mcp:echo:get_echo", text=_TEXT)
        before = await _cpu(10, call)
        for source in sources:
            app.add(source)
        with Stopwatch() as watch:
            app.parts.add(Kind.MCP, sources[-1])
        yield Figure("10,000 tools of 100 servers: a new snapshot", watch.seconds * 1e3, "ms", 100)
        after = await _cpu(10, call)
        beside = f"{after:.0f} us, {before:.0f} us with 3 tools"
        yield Figure(
            "a call among them costs more by", (after / before - 1) * 100, "%", 10, beside=beside
        )


async def figures(folder: Path) -> list[Figure]:
    found = [figure async for figure in _echo(folder)]
    found += [figure async for figure in _killed(folder)]
    found.append(await _boot(folder))
    found.append(await _big(folder))
    found += [figure async for figure in _snapshot(folder)]
    found.append(await _memory(folder))
    return found
