"""A node that dies, is cut off or is only slow: what it left is seen to once, by one that lives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import pytest
from tests.cluster.house import clustered
from tests.cluster.kitchen import OPEN, TWICE, Kitchen, rows, send, state, until
from tests.faults.daemon import nobody_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

pytestmark = [
    pytest.mark.requirement("C13.3", "C13.1", "C5.6"),
    pytest.mark.needs("bwrap"),
    pytest.mark.timeout(180),
]
TAKEN_OVER = 15.0
HEIRS = "SELECT node, ended_at IS NOT NULL FROM processes WHERE heir <> ''"


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


@contextmanager
def load(*nodes: Node) -> Generator[list[int]]:
    """Call these nodes meanwhile; afterwards there is how often each of them answered."""
    counts, stop = list[int](), Event()
    with ThreadPoolExecutor(len(nodes)) as callers:
        running = [callers.submit(_calls, node, stop) for node in nodes]
        try:
            yield counts
        finally:
            stop.set()
        counts += [one.result() for one in running]


def _calls(node: Node, stop: Event) -> int:
    count = 0
    with node.client as client:
        while not stop.wait(0.02):
            answer = client.post("/api/tools/system_time/call", json={"arguments": {}})
            assert answer.json()["outcome"] == "ok"
            count += 1
    return count


def open_calls(url: str) -> set[str]:
    return {call for (call,) in rows(url, OPEN)}


def assert_each_call_ended_once(node: Node, url: str) -> None:
    assert (open_calls(url), rows(url, TWICE)) == (set(), [])
    verified = node.cli("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True), verified.out


def test_what_a_killed_node_left_is_taken_over_by_one_other_while_they_work(
    make_home: Callable[[], Cli], empty_postgres: str, kitchen: Kitchen
) -> None:
    url, made = empty_postgres, kitchen.furnish(make_home)
    with clustered(made, url, "abc", kitchen.config) as cluster:
        begun = send(cluster["b"])
        with load(cluster["a"], cluster["c"]) as answered:
            with kitchen.watched() as pipe:
                left = open_calls(url)
                assert len(left) >= 2
                cluster.kill("b")
                assert nobody_reads(pipe)
            took = until(lambda: not left & open_calls(url), TAKEN_OVER)
        assert all(answered)
        with kitchen.watched():
            assert state(cluster["a"], begun) == state(cluster["c"], begun) == "working"
        until(lambda: state(cluster["a"], begun) == "completed")
        assert (took < TAKEN_OVER, kitchen.heard) == (True, 2)
        assert rows(url, "SELECT taken FROM agent_runs WHERE task <> ''") == [(1,)]
        until(lambda: rows(url, HEIRS) == [("b", True)])
        assert_each_call_ended_once(cluster["c"], url)
