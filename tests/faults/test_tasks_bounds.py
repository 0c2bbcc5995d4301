"""How many tasks are kept and for how long: a full store, a full disk, and a clock that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint
from tests.edges.a2a.seeding import ENABLED as SEED_ENABLED
from tests.edges.a2a.seeding import texts, write_agents
from tests.edges.demo import Demo
from tests.edges.live import live
from tests.faults.daemon import serving
from tests.faults.dialects import (
    DIALECTS,
    RPC1,
    SEED,
    SEED_RPC,
    Dialect,
    Sending,
    state_of,
)
from tests.faults.tasks import (
    ENABLED,
    Peer,
    home_with_agents,
)
from tests.faults.test_disk import in_a_namespace

from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.requirement("C5.6"), pytest.mark.needs("bwrap")]

MOST = 5
FULL = {"seed": 503, "seed-rpc": -32000, "0.3": -32000, "1.0": -32000}
DISK = Path(__file__).with_name("tasks_on_a_small_disk.py")
A_DAY = 86_400
EXPIRED = "The task expired: nothing happened to it for 24 h."


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    home = home_with_agents(tmp_path / "home", f"{ENABLED}max_tasks = {MOST}\n")
    with serving(home) as daemon:
        yield Peer(daemon)
    assert home.complaints() == []
    assert home.verified()["intact"]


def found(peer: Peer, tasks: list[str], agent: str = "echo") -> list[str]:
    """Which of these are there; all dialects agree on it."""
    seen = {
        dialect.name: [task for task in tasks if _is_there(peer, task, agent, dialect)]
        for dialect in DIALECTS
    }
    assert len({tuple(there) for there in seen.values()}) == 1, seen
    return seen["1.0"]


def _is_there(peer: Peer, task: str, agent: str, dialect: Dialect) -> bool:
    code = dialect.code(peer.of_task("get", task, agent, dialect))
    assert code in {0, 404, -32001}
    return code == 0


def test_the_oldest_finished_task_goes_first_and_one_that_is_under_way_never(peer: Peer) -> None:
    asking = peer.send(Sending(agent="asker", id="first"))["id"]
    done = [peer.send(Sending(id=f"m{number}"))["id"] for number in range(MOST)]
    assert found(peer, done) == done[1:]
    assert found(peer, [asking], "asker") == [asking]
    assert peer.send(Sending(id="m2"))["id"] == done[2]
    assert found(peer, done) == done[1:]
    waiting = [asking, *(peer.send(Sending(agent="asker"))["id"] for _ in range(MOST - 1))]
    assert found(peer, done) == []
    for dialect in DIALECTS:
        answer = peer.ask(dialect.send(Sending()))
        assert dialect.code(answer) == FULL.get(dialect.name, 503), answer
        assert b"5 tasks are kept at most" in answer.body
    assert peer.ask(SEED.send(Sending())).rule == "tasks_full"
    assert peer.send(Sending(agent="asker", id="first"))["id"] == asking
    assert found(peer, waiting, "asker") == waiting
    answered = peer.send(Sending(agent="asker", task=waiting[1]), SEED_RPC)
    assert state_of(answered) == "completed"
    new = peer.send(Sending())["id"]
    assert found(peer, waiting, "asker") == [waiting[0], *waiting[2:]]
    assert RPC1.state(peer.of_task("get", new)) == "completed"


@pytest.mark.needs("unshare", "mount")
@pytest.mark.requirement("C7.10")
def test_on_a_full_disk_no_task_begins_and_what_ends_then_is_written_later(tmp_path: Path) -> None:
    seen = in_a_namespace("full", tmp_path, DISK)
    assert seen == {
        "before": "completed",
        "refused": {
            "seed": 503,
            "seed-rpc": -32000,
            "0.3": -32000,
            "1.0": -32000,
            "0.3 rest": 503,
            "1.0 rest": 503,
        },
        "by_halves": [],
        "meanwhile": ["working", "working"],
        "ended": [
            "TASK_STATE_FAILED",
            "The call ran, but its ending could not be recorded: audit unav",
        ],
        "after": "completed",
        "intact": True,
        "endings": [1],
        "broken": False,
    }


async def test_a_task_to_which_nothing_happens_for_a_day_is_given_up(tmp_path: Path) -> None:
    clock, demo, home = ManualClock(), Demo(), tmp_path / "home"
    await to_thread.run_sync(write_agents, home)
    async with live(home, config=SEED_ENABLED, clock=clock, sources=[demo.source]) as node:
        asked = RPC1.send(Sending(agent="waiter", waits=False))
        sent = await node.post(asked.path, asked.body, headers=asked.headers)
        path = f"/a2a/tasks/{sent.json['result']['task']['id']}"
        with anyio.fail_after(20):
            await demo.begun.wait()
            for seconds in (A_DAY - 60, 59):
                clock.advance(seconds)
                node.app.parts.timers.wake()  # by itself it looks at the clock now and then
                assert (await node.get(path)).json["status"] == "working"
            clock.advance(1)
            node.app.parts.timers.wake()
            while (task := (await node.get(path)).json)["status"] == "working":
                await checkpoint()
        assert task["status"] == "failed"
        assert texts(task)[-1] == ("agent", EXPIRED)
        demo.released.set()
        assert (await node.get(path)).json == task
    assert demo.cancelled.is_set()
