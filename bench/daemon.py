"""The daemon: CPU of its process for each governed call over HTTP, beside a bare echo."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from bench.figures import Figure, cpu_of_process

if TYPE_CHECKING:
    from collections.abc import Generator

CALLS = 5_000
ROUNDS = 3
LISTENERS = 200
STREAMS_OF_A_KEY = 20
LISTEN_SECONDS = 4
RATE = 200
_RAISED = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"
_BODY = b'{"arguments": {}}'


@dataclass(frozen=True, slots=True)
class Target:
    """A process that listens on loopback."""

    pid: int
    port: int
    key: str = ""

    @property
    def cpu(self) -> float:
        """User and system seconds so far."""
        return cpu_of_process(self.pid)

    @property
    def megabytes(self) -> float:
        """What it holds in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def request(self, path: str, method: str = "POST") -> bytes:
        body = _BODY if method == "POST" else b""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@contextmanager
def daemon(
    home: Path, config: str = "", *, made: bool = False, module: str = "openfang"
) -> Generator[tuple[Target, float]]:
    """A daemon on a new home, and the CPU that it took until it was healthy."""
    home.mkdir(exist_ok=made)
    (home / "config.toml").write_text(config + _RAISED)
    init = [sys.executable, "-m", "openfang", "init"]
    environ = {**os.environ, "OPENFANG_HOME": str(home)}
    subprocess.run(init, env=environ, check=True, stdout=subprocess.DEVNULL)
    with serving(home, module) as target:
        yield target, target.cpu


@contextmanager
def serving(home: Path, module: str = "openfang") -> Generator[Target]:
    """A daemon on a home that is there, as soon as it is healthy."""
    command = [sys.executable, "-m", module, "start", "--listen", "127.0.0.1:0"]
    environ = {**os.environ, "OPENFANG_HOME": str(home)}
    file = home / "daemon.json"
    file.unlink(missing_ok=True)
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not file.exists():
            assert process.poll() is None, f"the daemon of {home} ended by itself"
            time.sleep(0.02)
        known = json.loads(file.read_text())
        key = (home / "key").read_text().strip()
        try:
            yield Target(process.pid, int(known["listen_addr"].rpartition(":")[2]), key)
        finally:
            process.terminate()


@contextmanager
def echo() -> Generator[Target]:
    """The baseline."""
    command = [sys.executable, "-m", "bench.echo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Target(process.pid, int(process.stdout.readline()))
        process.kill()


async def calls(target: Target, count: int, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    request = target.request(path)
    for _ in range(count):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        start = head.lower().index(b"content-length: ") + 16
        await reader.readexactly(int(head[start : head.index(b"\r", start)]))
    writer.close()


async def round_of(target: Target, callers: int, path: str) -> tuple[float, float]:
    """Microseconds of CPU for each call, and calls for each second of its CPU."""
    before, began = target.cpu, time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(calls, target, CALLS // callers, path)
    used = (target.cpu - before) / CALLS
    return used * 1e6, CALLS / (time.perf_counter() - began)


async def _listen(target: Target, seen: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(target.request("/api/events", "GET"))
    while piece := await reader.read(65_536):
        seen[0] += piece.count(b"event: call")


def auditors(target: Target, count: int) -> Generator[Target]:
    """Keys that may see everything: one alone may not have so many streams."""
    headers = {"Authorization": f"Bearer {target.key}", "Content-Type": "application/json"}
    for number in range(count):
        with closing(HTTPConnection("127.0.0.1", target.port)) as connection:
            body = json.dumps({"name": f"listener-{number}", "role": "auditor"})
            connection.request("POST", "/api/keys", body, headers)
            yield replace(target, key=json.load(connection.getresponse())["secret"])


async def _listening(target: Target) -> tuple[float, int]:
    """The share of a core that listeners cost, at so many calls a second; and what they saw."""
    alone = together = await _at_rate(target)
    seen = [0]
    async with anyio.create_task_group() as tasks:
        for auditor in auditors(target, LISTENERS // STREAMS_OF_A_KEY):
            for _ in range(STREAMS_OF_A_KEY):
                tasks.start_soon(_listen, auditor, seen)
        await anyio.sleep(1.0)
        together = await _at_rate(target)
        tasks.cancel_scope.cancel()
    return together - alone, seen[0]


async def _at_rate(target: Target) -> float:
    before, began = target.cpu, time.perf_counter()
    for number in range(LISTEN_SECONDS * 10):
        await calls(target, RATE // 10, "/api/tools/system_time/call")
        await anyio.sleep(max(0.0, began + (number + 1) / 10 - time.perf_counter()))
    return (target.cpu - before) / (time.perf_counter() - began) * 100


async def figures(folder: Path) -> list[Figure]:
    with daemon(folder / "first"):
        pass  # it leaves behind the bytecode that every later start finds
    with daemon(folder / "served") as (target, started), echo() as bare:
        idle = target.megabytes
        found = [
            Figure("daemon: start until healthy", started, "s", 1.0),
            Figure("daemon: idle memory", idle, "MB", 80),
        ]
        best = 0.0
        for callers, goal in ((50, 300), (1, 400)):
            costs, baselines = list[float](), list[float]()
            for _ in range(ROUNDS):
                cost, rate = await round_of(target, callers, "/api/tools/system_time/call")
                baseline, _ = await round_of(bare, callers, "/echo")
                costs.append(cost)
                baselines.append(baseline)
                best = max(best, rate)
            beside = f"a bare echo costs {min(baselines):.0f} us in the same run"
            name = f"POST /api/tools/ID/call, {callers} caller(s)"
            found.append(Figure(name, min(costs), "us", goal, beside=beside))
        beside = f"{best:,.0f} calls/s with the clients on the same machine"
        rate = 1e6 / found[-2].value
        found.append(
            Figure("calls a second on one core", rate, "/s", 2_500, at_most=False, beside=beside)
        )
        share, seen = await _listening(target)
        beside = f"{seen:,} events received"
        name = f"{LISTENERS} listeners at {RATE} calls/s"
        found.append(Figure(name, share, "%", 20, beside=beside))
    return found
