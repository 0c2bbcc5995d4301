"""Durable runs on several nodes: what one costs, and how long a dead node's are left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import anyio

from bench.a2a import agent, message, request, send_many
from bench.daemon import serving
from bench.figures import Figure
from bench.nodes import NODES, homes, postgres, value_of
from bench.sizes import MORE, Scales
from bench.wire import exchange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.daemon import Target

RUNS = 300
CALLERS = 10
LONGEST = 60.0
_ECHO = "async def run(message, context):\n    return message\n"
_LONG = "import asyncio\nasync def run(message, context):\n    await asyncio.sleep(600)\n"
_OPEN = (
    "SELECT MIN(node) FROM audit AS a WHERE event = 'tool_invocation_start' AND NOT EXISTS ("
    "SELECT 1 FROM audit WHERE event = 'tool_invocation_end' AND call_id = a.call_id)"
)


async def _runs(nodes: Sequence[Target]) -> None:
    async with anyio.create_task_group() as group:
        for number in range(CALLERS):
            node = nodes[number % len(nodes)]
            group.start_soon(send_many, node, "/a2a/agents/echoes", RUNS // CALLERS)


async def _takeover(nodes: Sequence[Target], url: str) -> float:
    """Kill the node that works on a run; seconds until its calls are ended by another one."""
    node = nodes[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    sent = {**message(0), "configuration": {"returnImmediately": True}}
    await exchange(reader, writer, request(node, "/a2a/agents/sleeps", "SendMessage", sent))
    writer.close()
    worker = await _other_than(url, None)
    os.kill(nodes[NODES.index(worker)].pid, signal.SIGKILL)
    began = time.monotonic()
    await _other_than(url, worker)
    return time.monotonic() - began


async def _other_than(url: str, before: str | None) -> str:
    """Wait until calls are open on another node than before, or on none."""
    with anyio.fail_after(LONGEST):
        while (found := await value_of(url, _OPEN)) == before:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.05)
    return found


async def _measured(nodes: Sequence[Target], url: str, pid: int) -> list[Figure]:
    for node in nodes:
        await send_many(node, "/a2a/agents/echoes", 10)
    scales = [Scales(node, url, pid) for node in nodes]
    before = sum(node.cpu for node in nodes)
    taken = await scales[0].weigh(RUNS, lambda: _runs(nodes))
    cost = (sum(node.cpu for node in nodes) - before) / RUNS
    beside = f"{cost * 1e6:,.0f} us of {len(nodes)} nodes, {taken.server:,.0f} us of Postgres a run"
    runs = Figure("durable runs a second of CPU", 1 / cost, "/s", 50, at_most=False, beside=beside)
    seconds = await _takeover(nodes, url)
    return [runs, Figure("a killed node's calls are ended after", seconds, "s", 15)]


def figures(folder: Path) -> list[Figure]:
    """Measure two nodes, of which one does not live to see the end."""
    folder.mkdir()
    with ExitStack() as held:
        url, pid = held.enter_context(postgres(folder / "postgres"))
        places = homes(folder, url, MORE)[:2]
        for home in places:
            agent(home, "echoes", _ECHO)
            agent(home, "sleeps", _LONG)
        nodes = [held.enter_context(serving(home)) for home in places]
        return asyncio.run(_measured(nodes, url, pid))
