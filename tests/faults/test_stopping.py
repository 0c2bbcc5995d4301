"""SIGTERM under load: what was begun is answered and on record, and the log is sealed."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.faults.answers import EVENTS, Reply, replies
from tests.faults.daemon import (
    NO_LIMITS,
    SECONDS,
    Daemon,
    Home,
    in_flight,
    make_home,
    nobody_reads,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.13", "C12.2", "C13.1")

CLIENTS = 50
STREAMS = 5
BEFORE = 300


@dataclass(slots=True)
class Load:
    """Clients that call without pause, each on one connection, until they are sent away."""

    daemon: Daemon
    numbers: Iterator[int] = field(default_factory=count)
    answered: set[str] = field(default_factory=set[str])
    refused: set[str] = field(default_factory=set[str])
    unanswered: set[str] = field(default_factory=set[str])
    listening: int = 0
    streams: list[bytes] = field(default_factory=list[bytes])
    busy: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(STREAMS):
                    group.start_soon(self._listen)
                for _ in range(CLIENTS):
                    group.start_soon(self._client)
                await self.busy.wait()
                self.daemon.tell(signal.SIGTERM)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(*self.daemon.address)
        writer.write(self.daemon.request("GET", "/api/events"))
        told = await reader.readuntil(b"event: call")
        self.listening += 1
        self._go_on()
        self.streams.append(told + await reader.read())
        writer.close()

    def _go_on(self) -> None:
        if len(self.answered) >= BEFORE and self.listening == STREAMS:
            self.busy.set()

    async def _client(self) -> None:
        reader, writer = await asyncio.open_connection(*self.daemon.address)
        while True:
            name = f"call {next(self.numbers)}"
            body = json.dumps({"arguments": {"key": name, "value": name}}).encode()
            try:
                writer.write(self.daemon.request("POST", CALL, body=body))
                reply = await _answer(reader)
            except ConnectionError:
                reply = None
            if reply is None or reply.status != 200:
                (self.unanswered if reply is None else self.refused).add(name)
                writer.close()
                return
            assert json.loads(reply.body)["outcome"] == "ok"
            self.answered.add(name)
            self._go_on()


CALL = "/api/tools/memory_store/call"
QUESTIONS = "SELECT id FROM approvals"


async def _answer(reader: asyncio.StreamReader) -> Reply | None:
    """Read one whole answer, or find out that there is none; half of one is an error."""
    head = await reader.readline()
    if not head:
        return None
    head += await reader.readuntil(b"\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length: ")
    body = await reader.readexactly(int(length.partition(b"\r\n")[0]))
    (reply,) = replies(head + body)
    return reply


def sealed(home: Home) -> bool:
    """Whether the last record is the one that was signed last, in both places."""
    last = home.rows("SELECT MAX(seq) FROM audit")
    lines = (home.path / "checkpoints" / "checkpoints.jsonl").read_text().splitlines()
    return (
        last == home.rows("SELECT MAX(seq) FROM checkpoints") == [(json.loads(lines[-1])["seq"],)]
    )


async def test_under_load_every_call_is_answered_or_was_never_begun(tmp_path: Path) -> None:
    home = await to_thread.run_sync(make_home, tmp_path / "home")
    with serving(home) as daemon:
        load = Load(daemon)
        await load.run()
        assert daemon.ended() == 0
    begun = home.rows(
        "SELECT json_extract(payload, '$.arguments.key') FROM audit "
        "WHERE event = 'tool_invocation_start'"
    )
    assert {name for (name,) in begun} == load.answered
    assert len(load.refused | load.unanswered) == CLIENTS
    assert set(map(tuple, home.endings().values())) == {("ok",)}
    assert {name for (name,) in home.rows("SELECT name FROM memory")} == load.answered
    assert len(load.streams) == STREAMS
    for stream in load.streams:
        (reply,) = replies(stream)
        assert reply.headers["content-type"] == EVENTS
        assert reply.body.endswith(b"\r\n0\r\n\r\n")
    assert sealed(home)
    assert home.verified()["intact"]
    assert not (home.path / "daemon.json").exists()
    assert home.complaints() == []


def test_a_call_that_outlasts_the_drain_is_cancelled_and_a_question_stays_open(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "home", f"[server]\ndrain_secs = 0.5\n{NO_LIMITS}")
    with serving(home) as daemon, ExitStack() as stack:
        client, writing = stack.enter_context(in_flight(daemon, "pipe"))
        waits = stack.enter_context(socket.create_connection(daemon.address, SECONDS))
        body = json.dumps({"arguments": {"command": ["true"]}}).encode()
        call = daemon.request("POST", "/api/tools/shell_exec/call", "Prefer: wait=600", body=body)
        waits.sendall(call)
        while not home.rows(QUESTIONS):
            assert daemon.healthy()
        daemon.tell(signal.SIGTERM)
        # The one has begun, and is told so; the other can be made again when somebody has answered.
        (begun,), (asked,) = replies(_rest(client)), replies(_rest(waits))
        assert (begun.status, begun.headers["openfang-failure"]) == (200, "cancelled")
        assert (asked.status, asked.problem["approval"]) == (202, home.rows(QUESTIONS)[0][0])
        assert nobody_reads(writing)
        assert daemon.ended() == 0
    assert list(home.endings().values()) == [["cancelled"]]
    assert sealed(home)
    assert home.verified()["intact"]
    assert home.complaints() == []


def _rest(client: socket.socket) -> bytes:
    data = b""
    while more := client.recv(65_536):
        data += more
    return data
