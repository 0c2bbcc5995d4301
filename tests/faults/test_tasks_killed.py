"""`kill -9` in the middle of tasks: none that was acknowledged is lost, and each one ends."""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import Daemon, nobody_reads, serving
from tests.faults.dialects import (
    DIALECTS,
    RPC1,
    TARGET,
    Dialect,
    Sending,
    state_of,
)
from tests.faults.tasks import (
    ENABLED,
    PUSHED,
    Peer,
    home_with_agents,
    reading,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# `make soak` kills more often.
KILLS = int(os.environ.get("SOAK_KILLS", "6"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
CLIENTS = 4
MOST = 30
SOON = 50.0
FINAL = frozenset({"completed", "failed", "canceled", "rejected"})
CONFIG = f"{ENABLED}max_tasks = 1_000_000\n{PUSHED}"
UNFINISHED = "SELECT id FROM tasks WHERE final = 0"
STREAMING = [dialect for dialect in DIALECTS if dialect.stream]

pytestmark = [
    pytest.mark.requirement("C5.6"),
    pytest.mark.timeout(KILLS * 60),
    pytest.mark.needs("bwrap"),
]


@dataclass(slots=True)
class Known:
    """What clients were told of tasks: which there are, and how those are that have ended."""

    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    ended: dict[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(slots=True)
class Work:
    """Several clients that send messages in every way until the node is killed."""

    daemon: Daemon
    known: Known
    random: Random
    kill_after: int
    gone: Event = field(default_factory=Event)
    _sent: int = 0
    _lock: Lock = field(default_factory=Lock)

    def run(self) -> None:
        with ThreadPoolExecutor(CLIENTS) as clients:
            for done in [clients.submit(self._client) for _ in range(CLIENTS)]:
                done.result()
        assert self.gone.is_set()

    def _client(self) -> None:
        # What was sent when the daemon died is not answered: neither yes nor no.
        peer, unanswered = Peer(self.daemon), suppress(OSError, http.client.HTTPException)
        with unanswered:
            while not self.gone.is_set():
                with self._lock:
                    way, dialect = self.random.choice(WAYS), self.random.choice(STREAMING)
                way(self, peer, dialect)
                self._count()

    def _count(self) -> None:
        with self._lock:
            self._sent += 1
            last = self._sent == self.kill_after
            moment = self.random.uniform(0, 0.1)
        if last:
            self.gone.wait(moment)
            self.gone.set()
            self.daemon.tell(signal.SIGKILL)

    def waits(self, peer: Peer, dialect: Dialect) -> None:
        """Send, and wait for the end of it."""
        self._told(peer, "echo", peer.send(Sending(), dialect))

    def waits_not(self, peer: Peer, dialect: Dialect) -> None:
        """Send, and be told that it was taken."""
        self._told(peer, "echo", peer.send(Sending(waits=False), dialect))

    def is_notified(self, peer: Peer, _: Dialect) -> None:
        """Send, and have somebody told who is not there."""
        self._told(peer, "echo", peer.send(Sending(push=TARGET, waits=False)))

    def plans(self, peer: Peer, dialect: Dialect) -> None:
        """Send to an agent that looks for a tool."""
        said = Sending(agent="planner", text="what time is it?")
        self._told(peer, "planner", peer.send(said, dialect))

    def is_asked(self, peer: Peer, _: Dialect) -> None:
        """Send to one that asks back; every other time somebody answers."""
        task = peer.send(Sending(agent="asker"))
        self._told(peer, "asker", task)
        if int(task["id"][-1], 16) % 2:
            self._told(peer, "asker", peer.send(Sending(agent="asker", task=task["id"])))

    def streams(self, peer: Peer, dialect: Dialect) -> None:
        """Send, and be told all that happens."""
        assert dialect.stream
        with peer.events(dialect.stream(Sending())) as told:
            ids = [_task(event)["id"] for event in islice(told, 1)]
            self.known.acknowledged |= dict.fromkeys(ids, "echo")
            deque(told, 0)
        for task in ids:
            self._look(peer, "echo", task)

    def _told(self, peer: Peer, agent: str, task: Mapping[str, Any]) -> None:
        self.known.acknowledged[task["id"]] = agent
        if state_of(task) in FINAL:
            self._look(peer, agent, task["id"])

    def _look(self, peer: Peer, agent: str, task: str) -> None:
        answer = peer.of_task("get", task, agent)
        assert RPC1.state(answer) == "completed", answer
        self.known.ended[task] = answer.body


WAYS = (Work.waits, Work.waits_not, Work.streams, Work.is_notified, Work.plans, Work.is_asked)


def _task(told: Mapping[str, Any]) -> dict[str, Any]:
    """The task that a stream begins with."""
    found = told.get("result", told)
    return found.get("task", found)


def resubscribe(peer: Peer, tasks: Iterable[tuple[str, str]]) -> None:
    """Whoever comes back for a task hears of its end, or that it has ended or asks."""
    with ThreadPoolExecutor(8) as clients:
        for done in [clients.submit(_resubscribe, peer, *task) for task in tasks]:
            done.result()


def _resubscribe(peer: Peer, task: str, agent: str) -> None:
    answer = peer.of_task("subscribe", task, agent)
    if answer.headers["content-type"].startswith("text/event-stream"):
        assert b"TASK_STATE_" in answer.body.rpartition(b"data: ")[2], answer
    else:
        assert RPC1.code(answer) == -32004, answer


def settle(peer: Peer, known: Known, tasks: Mapping[str, str]) -> None:
    """See that each ends by itself soon, with a reason if it failed."""
    waiting, ends = dict(tasks), time.monotonic() + SOON
    while waiting:
        late = time.monotonic() > ends
        for task, agent in list(waiting.items()):
            answer = peer.of_task("get", task, agent)
            state = RPC1.state(answer)
            assert state in FINAL or not late, answer
            if state in FINAL:
                assert state != "failed" or _reason(RPC1.task(answer)), answer
                known.ended[task] = answer.body
                del waiting[task]


def _reason(task: Mapping[str, Any]) -> str:
    return task["status"]["message"]["parts"][0]["text"]


def check(peer: Peer, known: Known) -> None:
    """See after a start that what has ended is as it was, and that all else ends."""
    left = {task: agent for task, agent in known.acknowledged.items() if task not in known.ended}
    resubscribe(peer, left.items())
    settle(peer, known, left)
    for task, before in known.ended.items():
        assert peer.of_task("get", task, known.acknowledged[task]).body == before
    assert peer.daemon.ask("GET", "/api/audit/verify").json["intact"]


def test_every_acknowledged_task_is_there_and_comes_to_an_end(tmp_path: Path) -> None:
    home, known = home_with_agents(tmp_path / "home", CONFIG), Known()
    random = Random(SEED)  # noqa: S311 - so that the same moments come again
    for kill in range(KILLS):
        with serving(home) as daemon:
            assert daemon.healthy()
            check(Peer(daemon), known)
            with reading(Peer(daemon), f"pipe-{kill}") as (task, writing):
                known.acknowledged[task] = "reader"
                Work(daemon, known, random, random.randrange(1, MOST)).run()
                assert daemon.ended() == -signal.SIGKILL
                assert nobody_reads(writing)
        assert home.rows(UNFINISHED)
    with serving(home) as daemon:
        assert daemon.healthy()
        check(Peer(daemon), known)
    assert home.rows(UNFINISHED) == []
    assert {len(outcomes) for outcomes in home.endings().values()} == {1}
    assert home.verified()["intact"]
    assert home.complaints() == []
