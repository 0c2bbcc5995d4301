"""What is left behind: memory, files, tasks, threads and children before and after many calls."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.daemon import daemon
from bench.figures import Figure
from bench.mcp import http_entry, stdio_entry, web
from bench.wire import TEXT, Served, cpu_of_calls

if TYPE_CHECKING:
    from collections.abc import Generator

    from bench.daemon import Target

CALLS = int(os.environ.get("LASTING_CALLS", "200000"))
CALLERS = 10


@dataclass(frozen=True, slots=True)
class _Held:
    """What a daemon holds while nobody calls."""

    megabytes: float
    files: tuple[str, ...]
    threads: int
    children: int
    tasks: int

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.0f} MB, {len(self.files)} files, {self.tasks} tasks, "
            f"{self.threads} threads, {self.children} children"
        )


async def _held(target: Target) -> _Held:
    process = Path(f"/proc/{target.pid}")
    threads = [*(process / "task").iterdir()]
    return _Held(
        target.megabytes,
        tuple(_opened(process / "fd")),
        len(threads),
        sum(len((thread / "children").read_text().split()) for thread in threads),
        await _tasks(target),
    )


def _opened(descriptors: Path) -> Generator[str]:
    """What is open, without the numbers of sockets and pipes."""
    for descriptor in descriptors.iterdir():
        with suppress(FileNotFoundError):
            yield str(descriptor.readlink()).partition(":[")[0]


async def _tasks(target: Target) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    request = target.request("/metrics", "GET").replace(
        b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"
    )
    writer.write(request)
    text = (await reader.read()).decode()
    writer.close()
    return int(float(text.partition("\nopenfang_loop_tasks ")[2].partition("\n")[0]))


async def _calls(target: Target, count: int) -> None:
    """A third each: a built-in, a server over stdio, one over HTTP."""
    ours = Served(target=target, modern=True)
    for tool in ("system_time", "mcp_echo_get_echo", "mcp_web_get_echo"):
        called = replace(ours, tool=tool, arguments={} if tool == "system_time" else TEXT)
        await cpu_of_calls(called, CALLERS, count // 3)


async def figures(folder: Path) -> list[Figure]:
    with (
        web() as port,
        daemon(folder / "lasting", stdio_entry("echo") + http_entry("web", port)) as (target, _),
    ):
        await _calls(target, CALLS // 10)
        before = await _held(target)
        await _calls(target, CALLS - CALLS // 10)
        after = await _held(target)
    grown = (after.megabytes / before.megabytes - 1) * 100
    files = Counter(after.files) - Counter(before.files)
    fewer = Counter(before.files) - Counter(after.files)
    more = files.total() - fewer.total() + (after.tasks - before.tasks)
    more += (after.threads - before.threads) + (after.children - before.children)
    beside = f"{before} after {CALLS // 10:,} calls; {after} after {CALLS:,}"
    return [
        Figure("memory grows by", grown, "%", 10, beside=beside),
        Figure("files, tasks, threads and children more", more, "", 0, beside=" ".join(files)),
    ]
