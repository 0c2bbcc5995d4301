"""A server that must run once, while its nodes are stopped, cut off, drained and killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.cluster.balancer import balancing
from tests.cluster.house import Cluster, homes
from tests.cluster.test_singletons import Once, connected, once, until, where
from tests.cluster.wires import Wire
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

__all__ = ("once",)
pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(600)]
LIMITS = "[guard]\ntool_calls = 1_000_000\n[loops]\nblock = 1_000_000\n"


@dataclass(slots=True)
class Calls:
    """Calls that have an effect, each with a note of its own, at every node all the time."""

    nodes: list[Node]
    well: list[str] = field(default_factory=list[str])
    not_well: dict[str, str] = field(default_factory=dict[str, str])
    over: threading.Event = field(default_factory=threading.Event)

    def keep_calling(self, node: Node) -> None:
        number = 0
        while not self.over.wait(0.2):
            number += 1
            note = f"{node.name}-{number}"
            try:
                answer = node.call("mcp:once:add", note=note)
            except httpx.HTTPError as error:
                self.not_well[note] = f"the node itself: {error!r}"
                continue
            self.take(note, answer)

    def take(self, note: str, answer: Any) -> None:
        if answer.get("outcome") == "ok":
            self.well.append(note)
        else:
            content = answer.get("content")
            self.not_well[note] = content[0]["text"] if content else answer.get("detail", "")

    @contextmanager
    def running(self) -> Generator[Calls]:
        threads = [threading.Thread(target=self.keep_calling, args=(one,)) for one in self.nodes]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.over.set()
            for thread in threads:
                thread.join(60)


@contextmanager
def wired(
    make_home: Callable[[], Cli], url: str, config: str
) -> Generator[tuple[Cluster, dict[str, Wire]]]:
    """Run three nodes, each with a wire of its own to the database."""
    found = urlsplit(url)
    socket = f"{parse_qs(found.query)['host'][0]}/.s.PGSQL.5432"
    with ExitStack() as held:
        wires = {name: held.enter_context(Wire(socket).running()) for name in "abc"}
        reached = {
            name: f"postgresql://postgres@127.0.0.1:{wire.port}{found.path}"
            for name, wire in wires.items()
        }
        nodes = homes(make_home, url, "abc", config, reached)
        for node in nodes:
            held.callback(node.end)
            node.start()
        balancer = held.enter_context(balancing([node.address for node in nodes]))
        yield Cluster(nodes, url, balancer), wires


def moved(cluster: Cluster, former: str) -> str:
    """Wait until another node has it, and those that can be asked reach it there."""
    others = [node for node in cluster.nodes if node.name != former]
    found = until(150, lambda: {where(node) for node in others} - {"", former})
    until(150, lambda: {where(node) for node in others} == found)
    (holder,) = found
    return holder


def signalled(node: Node, number: signal.Signals) -> None:
    assert node.process
    os.kill(node.process.pid, number)


async def test_never_two_at_once_and_no_call_twice_whatever_becomes_of_the_nodes(
    make_home: Callable[[], Cli], empty_postgres: str, once: Once
) -> None:
    with wired(make_home, empty_postgres, f"{LIMITS}{once.config}") as (cluster, wires):
        first = connected(cluster)
        with Calls(cluster.nodes).running() as calls:
            signalled(cluster[first], signal.SIGSTOP)
            stopped = time.monotonic()
            second = moved(cluster, first)
            until(20, lambda: time.monotonic() - stopped > 15)
            signalled(cluster[first], signal.SIGCONT)

            wires[second].cut()
            third = moved(cluster, second)
            wires[second].mend()
            until(150, lambda: where(cluster[second]) == third)

            await run(empty_postgres, f"UPDATE members SET draining = 1 WHERE node = '{third}'")  # noqa: S608 - our own
            fourth = moved(cluster, third)  # it is alive, and gives it up all the same
            until(150, lambda: where(cluster[third]) == fourth)

            cluster.kill(fourth)
            moved(cluster, fourth)
        once.alone()
        assert len(once.lines("lives")) >= 5
        judged(calls, once, {first, second, third, fourth})


def judged(calls: Calls, once: Once, touched: set[str]) -> None:
    """Hold what was answered against what was done."""
    done = Counter(line.partition(" ")[2] for line in once.lines("calls"))
    assert [note for note, count in done.items() if count > 1] == [], "none was made twice"
    assert [note for note in calls.well if note not in done] == [], "what was answered was done"
    for note, why in calls.not_well.items():
        assert why, note
        in_doubt = "may have been" in why or "the node itself" in why or "cut off" in why
        assert note not in done or in_doubt or note.partition("-")[0] in touched, (note, why)
    assert len(calls.well) > 30, calls.not_well
