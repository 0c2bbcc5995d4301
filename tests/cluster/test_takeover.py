"""A node that dies, is cut off or is only slow: what it left is seen to once, by one that lives."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.cluster.house import homes
from tests.cluster.kitchen import OPEN, TWICE, Kitchen, rows, send, state, until
from tests.cluster.wires import Wire
from tests.faults.daemon import nobody_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

pytestmark = [
    pytest.mark.requirement("C13.3", "C13.1", "C5.6"),
    pytest.mark.needs("bwrap"),
    pytest.mark.timeout(600),
]
TAKEN_OVER = 150.0
"""Ten times what it may take: `make bench-nodes` measures how long it does."""
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


@contextmanager
def restless(node: Node) -> Generator[None]:
    """Call a node meanwhile, whatever it answers: some call is always on its way."""
    stop = Event()

    def call() -> None:
        with node.client as client:
            while not stop.wait(0.001):
                with suppress(httpx.HTTPError):
                    client.post("/api/tools/system_time/call", json={"arguments": {}})

    with ThreadPoolExecutor(2) as callers:
        running = [callers.submit(call) for _ in range(2)]
        try:
            yield
        finally:
            stop.set()
        for one in running:
            one.result()


def open_calls(url: str) -> set[str]:
    return {call for (call,) in rows(url, OPEN)}


def assert_each_call_ended_once(node: Node, url: str) -> None:
    assert (open_calls(url), rows(url, TWICE)) == (set(), [])
    verified = node.cli("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True), verified.out


def test_what_a_killed_node_left_is_taken_over_by_one_other_whatever_their_clocks_say(
    make_home: Callable[[], Cli], empty_postgres: str, kitchen: Kitchen
) -> None:
    url = empty_postgres
    a, b, c = nodes = homes(kitchen.furnish(make_home), url, "abc", kitchen.config)
    with ExitStack() as held:
        for node, ahead in zip(nodes, (0, 10, -10), strict=True):
            held.callback(node.end)
            node.start(ahead)
        begun = send(b)
        with load(a, c) as answered:
            with kitchen.watched() as pipe:
                left = open_calls(url)
                assert len(left) >= 2
                b.kill()
                assert nobody_reads(pipe)
            until(lambda: not left & open_calls(url), TAKEN_OVER)
        assert all(answered)
        with kitchen.watched():
            assert state(a, begun) == state(c, begun) == "working"
        until(lambda: state(a, begun) == "completed")
        assert kitchen.heard == 2
        assert rows(url, "SELECT taken FROM agent_runs WHERE task <> ''") == [(1,)]
        until(lambda: rows(url, HEIRS) == [("b", True)])
        assert_each_call_ended_once(c, url)


@contextmanager
def on_a_wire(
    make_home: Callable[[], Cli], url: str, kitchen: Kitchen
) -> Generator[tuple[Node, Node, Wire]]:
    """Two nodes, of which the second reaches the database over a wire."""
    found = urlsplit(url)
    folder = parse_qs(found.query)["host"][0]
    socket = str(next(Path(folder).glob(".s.PGSQL.*[0-9]")))
    with ExitStack() as held:
        wire = held.enter_context(Wire(socket).running())
        through = f"postgresql://postgres@127.0.0.1:{wire.port}{found.path}"
        nodes = homes(kitchen.furnish(make_home), url, "ab", kitchen.config, {"b": through})
        for node in nodes:
            held.callback(node.end)
            node.start()
        yield nodes[0], nodes[1], wire


def ready(node: Node) -> tuple[int, str]:
    with node.client as client:
        answer = client.get("/api/ready")
        return answer.status_code, answer.json()["status"]


def member(url: str, node: str) -> tuple[str, bool]:
    """Which process a node has, and whether it has left."""
    query = f"SELECT process, left_at IS NOT NULL FROM members WHERE node = '{node}'"  # noqa: S608
    (found,) = rows(url, query)
    return found


@pytest.mark.parametrize("fault", ["cut off", "slow"])
def test_a_node_that_nobody_hears_stops_its_work_and_comes_back_as_another_process(
    make_home: Callable[[], Cli], empty_postgres: str, kitchen: Kitchen, fault: str
) -> None:
    url = empty_postgres
    with on_a_wire(make_home, url, kitchen) as (a, b, wire):
        assert b.process is not None
        begun, before = send(b), member(url, "b")
        with restless(b), kitchen.watched():
            left = open_calls(url)
            if fault == "slow":
                b.process.send_signal(signal.SIGSTOP)
            else:
                wire.cut()
                until(lambda: ready(b) == (503, "cut off from the database"))
            until(lambda: not left & open_calls(url), TAKEN_OVER)
            until(lambda: kitchen.heard == 2)
            assert state(a, begun) == "working"
            b.process.send_signal(signal.SIGCONT)
        until(lambda: state(a, begun) == "completed")
        wire.mend()
        until(lambda: member(url, "b")[0] != before[0] and ready(b) == (200, "ready"))
        assert (member(url, "b")[1], kitchen.heard) == (False, 2)
        assert b.call("system_time")["outcome"] == "ok"
        until(lambda: not open_calls(url))
        assert_each_call_ended_once(a, url)


def test_a_node_that_is_heard_again_before_anybody_took_over_goes_on_itself(
    make_home: Callable[[], Cli], empty_postgres: str, kitchen: Kitchen
) -> None:
    url = empty_postgres
    with on_a_wire(make_home, url, kitchen) as (a, b, wire):
        begun, before = send(b), member(url, "b")
        a.kill()  # nobody is left to take over
        with kitchen.watched():
            wire.cut()
            until(lambda: ready(b) == (503, "cut off from the database"))
            wire.mend()
            until(lambda: ready(b) == (200, "ready"))
            until(lambda: kitchen.heard == 2)  # what was stopped; the server heard of both
            assert state(b, begun) == "working"
        until(lambda: state(b, begun) == "completed")
        assert member(url, "b")[0] != before[0]
        until(lambda: not open_calls(url))
        assert_each_call_ended_once(b, url)
        ended = f"SELECT ended_at IS NOT NULL FROM processes WHERE id = '{before[0]}'"  # noqa: S608
        until(lambda: rows(url, ended) == [(True,)])
