"""A node with a hostile server and a good one side by side, and a watch on what that does to us."""

from __future__ import annotations

import json
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import alive

from openfang.core.errors import OpenFangError
from openfang.sources.mcp.pace import Pace
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from openfang.app.servers.running import Servers
    from openfang.core.ports import Clock
    from openfang.core.results import Result
    from openfang.sources.mcp.source import McpSource

HOSTILE = Path(__file__).parent / "peers" / "hostile.py"
GOOD = Path(__file__).parent / "peers" / "echo.py"
QUICK = Pace(breath=0.05, share=1.0, grace=0.05)
# Generous: other tests run on the same machine. What would break them takes many times as long.
LONGEST_STALL = 5.0
LONGEST_CALL = 30.0
MOST_MEMORY = 400 * 1024 * 1024


def entry(name: str, script: Path, *options: str, more: str = "", sandbox: str = "off") -> str:
    """One server of the configuration, whose tools are taken for harmless."""
    args = json.dumps(["-I", "-S", str(script), *options])
    reached = f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}'
    lines = (f'name = "{name}"', 'trust = "high"', 'risk = "LOW"', f'sandbox = "{sandbox}"')
    return "\n".join(("[[mcp_servers]]", *lines, more, reached, ""))


def hostile(*options: str, more: str = "timeout_secs = 20", name: str = "bad") -> str:
    return entry(name, HOSTILE, *options, more=more)


@dataclass
class Watched:
    """What was seen while something went wrong."""

    calls: int = 0
    slowest: float = 0.0
    stall: float = 0.0
    grown: int = 0


@dataclass
class Scene:
    """The node. The hostile server is called `bad`, the good one `good`."""

    app: OpenApp
    servers: Servers
    pids: set[int] = field(default_factory=set[int])

    @property
    def bad(self) -> McpSource:
        return self.servers.find("bad")

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        """Call the hostile server."""
        return await self.app.call(f"mcp:bad:{tool}", **arguments)

    async def fails(self, tool: str, /, **arguments: Any) -> OpenFangError:
        """Call the hostile server in vain; what is said names it, and a way out."""
        with pytest.raises(OpenFangError) as caught:
            await self.call(tool, **arguments)
        error = caught.value
        assert "bad" in error.message
        assert error.way_out
        assert len(error.message) < 2000
        assert error.message.isprintable()
        return error

    async def well(self, server: str = "bad") -> None:
        """The server answers, now or after it came back."""
        with anyio.fail_after(60):
            while True:
                try:
                    result = await self.app.call(f"mcp:{server}:echo", text="well")
                except OpenFangError:
                    await anyio.sleep(0.05)
                else:
                    assert result.text == "well"
                    return

    async def process(self, server: str = "bad") -> int:
        """The process that serves now; it has to be gone when all is over."""
        pid = int((await self.app.call(f"mcp:{server}:pid")).text)
        self.pids.add(pid)
        return pid

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[Watched]:
        """Keep calling the good server meanwhile, and measure what it and the loop suffer."""
        seen, before = Watched(), await to_thread.run_sync(memory)
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_calling, seen)
            group.start_soon(_keep_ticking, seen)
            called = seen.calls
            yield seen
            with anyio.fail_after(LONGEST_CALL):
                while seen.calls <= called:  # noqa: ASYNC110 - a call that began meanwhile
                    await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        seen.grown = await to_thread.run_sync(memory) - before
        assert seen.slowest < LONGEST_CALL
        assert seen.stall < LONGEST_STALL
        assert seen.grown < MOST_MEMORY

    async def _keep_calling(self, seen: Watched) -> None:
        while True:
            began = anyio.current_time()
            result = await self.app.call("mcp:good:echo", text=str(seen.calls))
            assert result.text == str(seen.calls)
            seen.slowest = max(seen.slowest, anyio.current_time() - began)
            seen.calls += 1
            await anyio.sleep(0.01)


async def _keep_ticking(seen: Watched) -> None:
    while True:
        began = anyio.current_time()
        await anyio.sleep(0.01)
        seen.stall = max(seen.stall, anyio.current_time() - began - 0.01)


def memory() -> int:
    """Bytes of memory that are ours."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^RssAnon:\s+([0-9]+) kB$", status, re.MULTILINE)
    assert found
    return int(found[1]) * 1024


async def until(seen: Callable[[], object]) -> None:
    """Look until it is so; what it waits for is not announced."""
    with anyio.fail_after(60):
        while not seen():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.01)


async def gone(pids: Iterable[int]) -> None:
    for pid in pids:
        assert not await to_thread.run_sync(alive, pid), pid


@asynccontextmanager
async def scene(
    folder: Path,
    *servers: str,
    config: str = "",
    pace: Pace = QUICK,
    clock: Clock | None = None,
    settle: bool = True,
) -> AsyncGenerator[Scene]:
    """Open a node with these servers and a good one; nothing of any of them is left after it."""
    text = "\n".join((config, *servers, entry("good", GOOD)))
    pids = set[int]()
    async with open_test_app(folder, config=text, clock=clock) as app:
        found = app.parts.servers
        assert found
        found.pace = pace
        with anyio.fail_after(100):
            if settle:
                await found.settled()
            yield Scene(app, found, pids)
    await gone(pids)
