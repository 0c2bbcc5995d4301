"""`kill -9` in the middle of calls: nothing that was answered is lost, all else is ended."""

from __future__ import annotations

import http.client
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from threading import Event
from typing import TYPE_CHECKING

import pytest
from tests.faults.daemon import (
    Daemon,
    Home,
    in_flight,
    make_home,
    nobody_reads,
    read,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# `make soak` kills more often.
KILLS = int(os.environ.get("SOAK_KILLS", "3"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
CALLS = 1000
CLIENTS = 8

pytestmark = [
    pytest.mark.requirement("C7.13", "C13.1", "C12.1"),
    pytest.mark.timeout(KILLS * 200),
]


@dataclass(frozen=True, slots=True)
class Work:
    """Calls with an effect that can be seen afterwards, made by several clients side by side."""

    daemon: Daemon
    kill_after: int
    numbers: Iterator[int]
    killed: Event = field(default_factory=Event)
    answered: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])

    def run(self) -> None:
        with ThreadPoolExecutor(CLIENTS) as clients:
            for done in [clients.submit(self._client) for _ in range(CLIENTS)]:
                done.result()
        assert self.killed.is_set()

    def _client(self) -> None:
        # What was sent when the daemon died is not answered: neither yes nor no.
        unanswered = suppress(OSError, http.client.HTTPException)
        with closing(self.daemon.connect()) as connection, unanswered:
            while not self.killed.is_set():
                self._call(connection, next(self.numbers))

    def _call(self, connection: http.client.HTTPConnection, number: int) -> None:
        tool = ("file_write", "memory_store")[number % 2]
        arguments = (
            {"path": f"{number}", "content": f"text {number}"},
            {"key": f"{number}", "value": f"text {number}"},
        )[number % 2]
        body = json.dumps({"arguments": arguments})
        connection.request("POST", f"/api/tools/{tool}/call", body, self.daemon.headers())
        answer = read(connection).json
        assert answer["outcome"] == "ok"
        self.answered[answer["call_id"]] = (tool, number)
        if len(self.answered) >= self.kill_after and not self.killed.is_set():
            self.killed.set()
            self.daemon.tell(signal.SIGKILL)


def effects(home: Home) -> set[tuple[str, int]]:
    """What the calls have left behind."""
    folder = home.path / "workspaces" / "key-admin"
    files = [file for file in folder.iterdir() if file.name.isdigit()]
    assert [file for file in files if file.read_text() != f"text {file.name}"] == []
    memory = home.rows("SELECT name, value FROM memory")
    assert [name for name, value in memory if value != f'"text {name}"'] == []
    return {("file_write", int(file.name)) for file in files} | {
        ("memory_store", int(name)) for name, _ in memory
    }


def test_nothing_that_was_answered_is_lost_and_all_else_is_ended(tmp_path: Path) -> None:
    home, numbers = make_home(tmp_path / "home"), count()
    random = Random(SEED)  # noqa: S311 - so that the same moments come again
    answered: dict[str, tuple[str, int]] = {}
    for kill in range(KILLS):
        with serving(home) as daemon:
            work = Work(daemon, random.randrange(1, CALLS - CLIENTS), numbers)
            with in_flight(daemon, f"pipe-{kill}") as (_, writing):
                work.run()
                assert daemon.ended() == -signal.SIGKILL
                assert nobody_reads(writing)
        answered |= work.answered
        left = json.loads((home.path / "daemon.json").read_text())
        assert left["pid"] == daemon.process.pid
        assert json.loads(home.run("status", "--json").stdout)["running"] is False
        open_calls = {call for call, outcomes in home.endings().items() if not outcomes}
        assert open_calls
        with serving(home) as again:
            assert again.healthy()
            found = json.loads((home.path / "daemon.json").read_text())
            assert found["pid"] == again.process.pid
            endings = home.endings()
            assert [endings[call] for call in open_calls] == [["interrupted"]] * len(open_calls)
            assert again.ask("GET", "/api/audit/verify").json["intact"]
    endings = home.endings()
    assert {len(outcomes) for outcomes in endings.values()} == {1}
    assert {endings[call][0] for call in answered} == {"ok"}
    assert set(answered.values()) <= effects(home)
    assert home.verified()["intact"]
    assert home.complaints() == []
