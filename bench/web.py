"""The web page: CPU of the daemon for each page of a long log, and for pages that are open live."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import anyio
from anyio import to_thread

from bench.daemon import Target, auditors, calls, daemon
from bench.figures import Figure

if TYPE_CHECKING:
    from pathlib import Path

CALLS = 100_000
CALLERS = 50
TIMES = 10
LIVE = 100
RATE = 100
SECONDS = 8
_OF_A_KEY = 20
_TOOL = "/api/tools/system_time/call"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_PAGES = (
    "/", "/?r=24h", "/calls", "/calls?verdict=deny", "/calls?q=nothing-has-this",
    "/calls?caller=key:nobody", "/approvals", "/tools", "/tools/builtin:system_time", "/agents",
    "/tasks", "/servers", "/policy", "/audit", "/audit?text=nothing-has-this", "/keys", "/settings",
)  # fmt: skip


class Signed:
    """A browser that is signed in."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cookie = ""
        body = self.get("/login").decode()
        found = re.search(r'name="token" value="([0-9a-f]+)"', body)
        assert found
        form = urlencode({"token": found[1], "key": target.key})
        with closing(HTTPConnection("127.0.0.1", target.port, timeout=30)) as connection:
            headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", **_FORM}
            connection.request("POST", "/login", form, headers)
            answer = connection.getresponse()
            assert answer.status == 303, answer.read()
            self.cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def get(self, path: str) -> bytes:
        headers = {"Accept": "text/html", "Cookie": self.cookie}
        with closing(HTTPConnection("127.0.0.1", self.target.port, timeout=60)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (path, answer.status, body[:200])
            return body


async def _fill(target: Target) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(calls, target, CALLS // CALLERS, _TOOL)


def _cost(signed: Signed, path: str) -> float:
    """Milliseconds of CPU for a page, once everything that it needs was loaded."""
    signed.get(path)
    before = signed.target.cpu
    for _ in range(TIMES):
        signed.get(path)
    return (signed.target.cpu - before) / TIMES * 1000


def _one_call(target: Target) -> str:
    with closing(HTTPConnection("127.0.0.1", target.port, timeout=30)) as connection:
        headers = {"Authorization": f"Bearer {target.key}", "Content-Type": "application/json"}
        connection.request("POST", _TOOL, '{"arguments": {}}', headers)
        return json.load(connection.getresponse())["call_id"]


async def _watch(signed: Signed, seen: list[int]) -> None:
    stream = await anyio.connect_tcp("127.0.0.1", signed.target.port)
    head = f"GET /calls/live HTTP/1.1\r\nHost: 127.0.0.1:{signed.target.port}\r\n"
    async with stream:
        await stream.send(f"{head}Accept: text/html\r\nCookie: {signed.cookie}\r\n\r\n".encode())
        async for piece in stream:
            seen[0] += piece.count(b"data: <tr")


async def _at_rate(target: Target) -> float:
    before, began = target.cpu, time.perf_counter()
    for number in range(SECONDS * 10):
        await calls(target, RATE // 10, _TOOL)
        await anyio.sleep(max(0.0, began + (number + 1) / 10 - time.perf_counter()))
    return (target.cpu - before) / (time.perf_counter() - began) * 100


async def _live(target: Target) -> tuple[float, int]:
    """The share of a core that open pages cost, and how many rows they got."""
    alone = together = await _at_rate(target)
    seen = [0]
    async with anyio.create_task_group() as tasks:
        for auditor in auditors(target, LIVE // _OF_A_KEY):
            signed = await to_thread.run_sync(Signed, auditor)
            for _ in range(_OF_A_KEY):
                tasks.start_soon(_watch, signed, seen)
        await anyio.sleep(2.0)
        together = await _at_rate(target)
        tasks.cancel_scope.cancel()
    return together - alone, seen[0]


async def figures(folder: Path) -> list[Figure]:
    with daemon(folder / "web") as (target, _):
        await _fill(target)
        early = await to_thread.run_sync(_one_call, target)
        idle = target.megabytes
        signed = await to_thread.run_sync(Signed, target)
        before = target.cpu
        await to_thread.run_sync(signed.get, "/")
        first = (target.cpu - before) * 1000
        pages = (*_PAGES, f"/calls/{early}")
        costs = dict[str, float]()
        for path in pages:
            costs[path] = await to_thread.run_sync(_cost, signed, path)
            print(f"     {path:<40}{costs[path]:>8.1f} ms", flush=True)
        worst = max(costs, key=lambda path: costs[path])
        more = target.megabytes - idle
        share, seen = await _live(target)
    return [
        Figure("web: a page of 100,000 calls, the dearest", costs[worst], "ms", 50, beside=worst),
        Figure("web: the first page, with all that it loads", first, "ms", 1000),
        Figure("web: memory once pages were shown", more, "MB", 40),
        Figure(f"web: {LIVE} live pages at {RATE} calls/s", share, "%", 5, beside=f"{seen:,} rows"),
    ]
