"""Thousands of calls: what they took is given back."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.faults.daemon import Daemon, make_home, serving

if TYPE_CHECKING:
    from pathlib import Path

# `make soak` makes more calls.
CALLS = int(os.environ.get("SOAK_CALLS", "5000"))
CONNECTIONS = 20
WARM_UP = CALLS // 2
# What a call may leave behind, and what caches and the allocator may keep.
BYTES_A_CALL = 10
SLACK = 6_000_000
SECONDS = 300 + CALLS // 20

pytestmark = [pytest.mark.requirement("C12.2", "C7.13"), pytest.mark.timeout(2 * SECONDS)]

KINDS: tuple[tuple[str, str, object, int], ...] = (
    ("POST", "/api/tools/system_time/call", {}, 200),
    ("POST", "/api/tools/memory_store/call", {"arguments": {"key": "k", "value": "v" * 500}}, 200),
    ("POST", "/api/tools/memory_recall/call", {"arguments": {"key": "k"}}, 200),
    ("POST", "/api/tools/file_write/call", {"arguments": {"path": "f", "content": "text"}}, 200),
    ("POST", "/api/tools/file_read/call", {"arguments": {"path": "no"}}, 200),
    ("POST", "/api/tools/no_such_tool/call", {}, 404),
    ("POST", "/api/tools/memory_store/call", {"arguments": {}}, 422),
    ("POST", "/api/tools/file_write/explain", {"arguments": {"path": "f", "content": "text"}}, 200),
    ("GET", "/api/status", None, 200),
    ("GET", "/api/tools", None, 200),
)


@dataclass(slots=True)
class Soak:
    """Clients that call one after the other; now and then one connects anew."""

    daemon: Daemon
    left: int
    requests: list[tuple[bytes, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        self.requests = [
            (self._written(method, path, body), b"HTTP/1.1 %d " % status)
            for method, path, body, status in KINDS
        ]

    def _written(self, method: str, path: str, body: object) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        return self.daemon.request(method, path, body=content)

    async def run(self) -> None:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(CONNECTIONS):
                    group.start_soon(self._client)

    async def _client(self) -> None:
        while self.left > 0:
            reader, writer = await asyncio.open_connection(*self.daemon.address)
            for _ in range(100):
                self.left -= 1
                request, expected = self.requests[self.left % len(self.requests)]
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(expected), head
                length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
            writer.close()
            await writer.wait_closed()


def loop_tasks(daemon: Daemon) -> float:
    metrics = daemon.ask("GET", "/metrics").body.decode()
    return float(metrics.partition("\nopenfang_loop_tasks ")[2].partition("\n")[0])


async def test_calls_leave_nothing_behind(tmp_path: Path) -> None:
    home = await to_thread.run_sync(make_home, tmp_path / "home")
    with serving(home, anew=True) as daemon:
        files, tasks = daemon.files(), loop_tasks(daemon)
        await Soak(daemon, WARM_UP).run()
        before = daemon.memory()
        await Soak(daemon, CALLS - WARM_UP).run()
        assert daemon.healthy()
        metrics = daemon.ask("GET", "/metrics").body.decode()
        assert "openfang_calls_in_flight 0.0" in metrics
        assert "openfang_event_listeners 0.0" in metrics
        daemon.wait_for_files(files)
        # Whoever scrapes is one of them; a connection that ends now may be another.
        assert loop_tasks(daemon) <= tasks + 1
        # The loop, the log, the writer, and as many helpers as there were calls at once.
        assert daemon.threads() <= CONNECTIONS + 8
        assert daemon.memory() - before < CALLS * BYTES_A_CALL + SLACK
    assert daemon.ended() == 0
    assert home.complaints() == []
    assert set(map(len, home.endings().values())) == {1}
    assert home.verified()["intact"]
