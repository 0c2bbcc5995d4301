"""Requests that are wrong in every way: each is answered or cut off, and nothing breaks."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.faults.answers import EVENTS, Reply, replies
from tests.faults.daemon import NO_LIMITS, Daemon, make_home, serving
from tests.faults.mutations import Batch, Fuzz

from openfang.edges.api.table import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C12.2"), pytest.mark.timeout(600)]

# `make fuzz` goes on with other requests, each round on a new home, until one of both is reached.
ROUND = 10_000
ROUNDS = int(os.environ.get("FUZZ_REQUESTS", ROUND)) // ROUND
MINUTES = float(os.environ.get("FUZZ_MINUTES", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CONFIG = f"""
log_level = "warning"
[server]
head_secs = 1
body_secs = 1
idle_secs = 2
[tools]
disabled = ["web_fetch"]
{NO_LIMITS}
"""
CONNECTIONS = 32
HANGS_AFTER = 40.0
GROWTH = 48_000_000
# More at once than wait in turn: the only reason for which it may send anybody away.
BUSY = {"overloaded"}
BEGAN = time.monotonic()
STREAM = f"content-type: {EVENTS}".encode()


@dataclass(slots=True)
class Attack:
    """Many connections side by side, each with a batch after the other."""

    daemon: Daemon
    fuzz: Fuzz
    answered: int = 0
    statuses: set[int] = field(default_factory=set[int])

    async def run(self, until: int) -> None:
        """Go on until so many requests have been answered."""
        async with anyio.create_task_group() as group:
            for _ in range(CONNECTIONS):
                group.start_soon(self._send, until)

    async def _send(self, until: int) -> None:
        while self.answered < until:
            batch = self.fuzz.batch()
            try:
                with anyio.fail_after(HANGS_AFTER):
                    data = await self._exchange(batch)
                for reply in replies(data, head_only=batch.head_only):
                    self._judge(reply, batch)
            except BaseException as error:
                error.add_note(f"sent: {batch.pieces!r:.5000}")
                raise

    async def _exchange(self, batch: Batch) -> bytes:
        reader, writer = await asyncio.open_connection(*self.daemon.address)
        try:
            with suppress(ConnectionError):
                for piece in batch.pieces:
                    writer.write(piece)
                    await writer.drain()
            return b"" if batch.hangs_up else await _until_closed(reader)
        finally:
            writer.transport.abort()

    def _judge(self, reply: Reply, batch: Batch) -> None:
        self.answered += 1
        self.statuses.add(reply.status)
        if reply.status >= 400 or reply.status == 202:
            rule = "" if batch.head_only else reply.problem["rule"]
            assert reply.status < 500 or rule in BUSY, reply


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    """Read to the end; a stream of events has none."""
    data = bytearray()
    with suppress(ConnectionError):
        while more := await reader.read(1_000_000):
            data += more
            if STREAM in data[-len(more) - len(STREAM) :]:
                break
    return bytes(data)


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that must be as sound at the end as it was at the beginning."""
    if time.monotonic() - BEGAN > MINUTES * 60:
        pytest.skip("the time is over")
    with serving(make_home(tmp_path / "home", CONFIG)) as daemon:
        yield daemon
        assert daemon.process.poll() is None
        assert daemon.healthy()
    assert daemon.ended() == 0
    home = daemon.home
    assert home.complaints() == []
    assert home.verified()["intact"]
    assert {len(outcomes) for outcomes in home.endings().values()} <= {1}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["home", "home.log"]


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
async def test_whatever_is_sent_is_answered_or_cut_off(attacked: Daemon, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - so that the same requests come again
    attack = Attack(attacked, Fuzz(attacked.key, random))
    await attack.run(ROUND // 5)
    before = attacked.memory()
    await attack.run(ROUND)
    assert attacked.memory() - before < GROWTH
    assert attack.statuses >= {200, 201, 202, 400, 401, 404, 405, 408, 413, 415, 421, 422, 429}
    metrics = attacked.ask("GET", "/metrics").body.decode()
    assert [one.path for one in ENDPOINTS if f'route="{one.path}"' not in metrics] == []


def test_what_once_broke_it_is_refused(attacked: Daemon) -> None:
    for query in (rb"SELECT \u0000", rb"SELECT 1; \u0000"):
        answer = attacked.ask("POST", "/api/audit/sql", b'{"query": "%b"}' % query)
        assert (answer.status, answer.rule) == (422, "query")
    for command in (b"[[]]", b"[1]", b"5", b"{}", b"null", b'["a", null]'):
        body = b'{"arguments": {"command": %b}}' % command
        answer = attacked.ask("POST", "/api/tools/shell_exec/explain", body)
        verdicts = {gate["gate"]: gate["verdict"] for gate in answer.json["gates"]}
        assert (answer.json["outcome"], verdicts["arguments"]) == ("deny", "deny")
        assert "not_reached" not in verdicts.values()
