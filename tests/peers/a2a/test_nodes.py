"""Two of our own nodes speak with each other in every dialect, also when one is killed."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pytest
from tests.a2a_spec.speaking import Speaker
from tests.cluster.housed import startable
from tests.faults.daemon import SECONDS
from tests.peers.a2a.front import DIALECTS, SEED, Front, front
from tests.peers.a2a.house import furnished, met

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.faults.daemon import Answered, Home
    from tests.peers.a2a.house import House

pytestmark = pytest.mark.requirement("C5.8", "C5.9")

# In the seed's dialect whoever waits does not know the task before it has ended.
CURRENT = [dialect for dialect in DIALECTS if dialect != SEED]
PEER = """
[[a2a.external_agents]]
name = "{name}"
url = "{url}"
auth = "{auth}"
allow_private = true
trust = "high"
"""


def name_of(dialect: str) -> str:
    """The name that the other node has in this dialect."""
    return dialect.replace(".", "-").replace("+", "-").lower()


@dataclass(slots=True)
class Node:
    """One of the two: its address that stays, what starts it, and it while it runs."""

    front: Front
    start: Callable[[], House]
    house: House = field(init=False)

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.house = self.start()
        self.front.node = self.house.daemon.address

    def restart(self) -> None:
        """Kill it, and start it again."""
        self.front.node = None
        self.house.kill()
        self._start()

    def ask(self, dialect: str, message: str = "", **more: Any) -> Answered:
        """Let the other node's agent do something, and wait for it."""
        said = {"message": message} if message else {}
        return self.house.daemon.call(f"a2a:{name_of(dialect)}", **said, **more)

    def meet(self) -> None:
        """Wait until it knows the other in every dialect: nobody announces that."""
        for daemon in self.house.daemons:
            for dialect in DIALECTS:
                met(daemon, f"a2a:{name_of(dialect)}")

    def knows(self, tasks: set[str], count: int) -> None:
        """Wait until it has written down so many of the other's tasks: nobody announces that."""
        for _ in range(10 * SECONDS):
            kept = self.house.daemon.home.rows("SELECT task FROM peer_tasks")
            if len(tasks & {row[0] for row in kept}) >= count:
                return
            time.sleep(0.1)
        pytest.fail(f"Not all of {tasks} are known")


def introduced(home: Home, other: Front, key: str) -> None:
    """Tell a node of the other, once for each dialect."""
    with (home.path / "config.toml").open("a") as config:
        for dialect in DIALECTS:
            url = other.card(dialect)
            config.write(PEER.format(name=name_of(dialect), url=url, auth=key))


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, nodes_server: str
) -> Generator[tuple[Node, Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    with ExitStack() as stack:
        fronts = [stack.enter_context(front()) for _ in range(2)]
        homes = [furnished(folder / name) for name in ("one", "two")]
        introduced(homes[0], fronts[1], homes[1].key)
        introduced(homes[1], fronts[0], homes[0].key)
        starts = [stack.enter_context(startable(home, nodes_server)) for home in homes]
        one, two = (Node(*each) for each in zip(fronts, starts, strict=True))
        one.meet()
        two.meet()
        yield one, two


@pytest.fixture(params=["there", "back"])
def way(request: pytest.FixtureRequest, pair: tuple[Node, Node]) -> tuple[Node, Node]:
    """Who asks, and who is asked."""
    one, two = pair
    return (one, two) if request.param == "there" else (two, one)


def text(answer: Answered) -> str:
    assert answer.status == 200, answer.body
    return "\n".join(part["text"] for part in answer.json["content"] if part["type"] == "text")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_asks_the_other(way: tuple[Node, Node], dialect: str) -> None:
    asks, _ = way
    answer = asks.ask(dialect, "say good morning")
    assert text(answer) == "good morning"
    assert answer.json["structured"]["state"] == "completed"
    assert "untrusted_agent" in answer.json["labels"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_made_comes_along(way: tuple[Node, Node], dialect: str) -> None:
    asks, _ = way
    answer = asks.ask(dialect, "make tea")
    assert answer.json["structured"]["artifacts"] == ["note.txt", "table.json", "dot.bin"]
    assert text(answer).startswith("Made three.")
    blobs = [part["resource"] for part in answer.json["content"] if part["type"] == "resource"]
    assert "AAH/" in [blob.get("blob") for blob in blobs]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_is_handed_back_and_its_answer_on(way: tuple[Node, Node], dialect: str) -> None:
    asks, _ = way
    asked = asks.ask(dialect, "ask Which colour?")
    assert text(asked).startswith("Which colour?")
    assert asked.json["structured"]["state"] == "input-required"
    task = asked.json["structured"]["task"]
    assert text(asks.ask(dialect, "blue", task=task)) == "It is blue."


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_goes_wrong_there_is_said_here(way: tuple[Node, Node], dialect: str) -> None:
    asks, _ = way
    answer = asks.ask(dialect, "reject not for me")
    assert answer.json["outcome"] == "error"
    assert "not for me" in text(answer)


@pytest.mark.requirement("C5.7")
@pytest.mark.parametrize("dialect", CURRENT)
def test_who_gives_up_has_the_other_end_its_work(way: tuple[Node, Node], dialect: str) -> None:
    asks, asked = way
    name, daemon = new_id("hold"), asks.house.daemon
    body = json.dumps({"arguments": {"message": f"hold {name}"}}).encode()
    path = f"/api/tools/a2a:{name_of(dialect)}/call"
    with socket.create_connection(daemon.address, SECONDS) as client:
        client.sendall(daemon.request("POST", path, "Content-Type: application/json", body=body))
        asked.house.begun(name)
    asked.house.stopped(name)


def holding(asks: Node, asked: Node, calls: ThreadPoolExecutor) -> dict[str, Future[Answered]]:
    """Let one node ask the other in every dialect at once for something that takes long."""
    names = {dialect: new_id(dialect) for dialect in DIALECTS}
    answers = {
        dialect: calls.submit(asks.ask, dialect, f"hold {name}") for dialect, name in names.items()
    }
    for name in names.values():
        asked.house.begun(name)
    return answers


@pytest.mark.requirement("C5.6")
def test_who_asked_a_node_that_was_killed_is_told_how_it_ended(pair: tuple[Node, Node]) -> None:
    asks, asked = pair
    done = {dialect: asks.ask(dialect, f"say {dialect}") for dialect in DIALECTS}
    with ThreadPoolExecutor(len(DIALECTS)) as calls:
        answers = holding(asks, asked, calls)
        asked.restart()
        for dialect, answer in answers.items():
            ended = answer.result(SECONDS)
            assert ended.json["outcome"] == "error", (dialect, ended.body)
            if dialect in CURRENT:
                assert ended.json["structured"].get("state") == "failed", (dialect, ended.body)
                assert "was interrupted" in text(ended)
    for dialect, answer in done.items():
        again = asks.ask(dialect, task=answer.json["structured"]["task"])
        assert text(again) == dialect
        assert text(asks.ask(dialect, "say again")) == "again"


def was_cut(answer: Future[Answered]) -> bool:
    """Whether who waits was told that the node is gone: by it, or by the balancer before it."""
    gone = answer.exception(SECONDS)
    return isinstance(gone, OSError | HTTPException) if gone else answer.result().status == 502


@pytest.mark.requirement("C5.6")
def test_a_node_that_was_killed_finds_what_it_asked_for(pair: tuple[Node, Node]) -> None:
    asked, asks = pair
    with ThreadPoolExecutor(len(DIALECTS)) as calls:
        answers = holding(asks, asked, calls)
        tasks = Speaker(asked.house, "JSONRPC").ask("list", {"status": "TASK_STATE_WORKING"})
        asks.knows({one["id"] for one in tasks["tasks"]}, len(CURRENT))
        asks.restart()
        for answer in answers.values():
            assert was_cut(answer)
    asks.meet()
    held = {one["history"][0]["parts"][0]["text"]: one["id"] for one in tasks["tasks"]}
    assert len(held) == len(DIALECTS)
    for said, task in held.items():
        name = said.removeprefix("hold ")
        asked.house.release(name)
        dialect = name.rpartition("_")[0]
        # In the first dialect a peer names a task when it has ended: this one is nobody's.
        expected = "Holding. Let go." if dialect in CURRENT else f"No task {task} of yours at seed"
        assert text(asks.ask(dialect, task=task)) == expected
