"""Tasks that are cancelled, or left alone by who sent them: what runs ends, or goes on, as said."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import SECONDS, nobody_reads, serving
from tests.faults.dialects import (
    DIALECTS,
    REST03,
    REST1,
    RPC03,
    RPC1,
    SEED,
    SEED_RPC,
    Sending,
    state_of,
)
from tests.faults.slow_web import slow_web
from tests.faults.tasks import (
    ENABLED,
    Peer,
    freeze_plan,
    home_with_agents,
    opened,
    pipe_for_reader,
    reading,
)
from tests.faults.test_hang_up import ending, events
from tests.faults.test_mcp import processes, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.daemon import Daemon
    from tests.faults.dialects import Asked, Dialect
    from tests.faults.slow_web import SlowWeb

pytestmark = [pytest.mark.requirement("C5.7"), pytest.mark.needs("bwrap")]

SLOW = Path(__file__).with_name("slow_peer.py")
SOON = 30.0
SERVERS = """
[[mcp_servers]]
name = "slow"
trust = "high"
risk = "LOW"
transport = {{ type = "stdio", command = "{python}", args = ["-I", "-S", "{slow}"] }}
[[mcp_servers]]
name = "web"
trust = "high"
risk = "LOW"
allow_private = true
transport = {{ type = "http", url = "{url}" }}
"""
ENDED = {"seed": 409, "seed-rpc": -32002, "0.3": -32002, "1.0": -32002, "1.0 rest": 400}
OPEN = {"01", "08"}  # established, and closed by the other side only
STREAMING = [dialect for dialect in DIALECTS if dialect.stream]
TOO_MUCH = b"x" * 10_000_001


@pytest.fixture(scope="module")
def web() -> Iterator[SlowWeb]:
    with slow_web() as running:
        yield running


@pytest.fixture(scope="module")
def peer(web: SlowWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A node that the tests of this module share, and its administrator."""
    servers = SERVERS.format(python=sys.executable, slow=SLOW, url=web.url)
    home = home_with_agents(tmp_path_factory.mktemp("tasks") / "home", ENABLED + servers)
    with serving(home) as daemon:
        freeze_plan(daemon)
        until(lambda: set(daemon.ask("GET", "/api/mcp/health").json.values()) == {"healthy"})
        yield Peer(daemon)
    assert home.complaints() == []
    assert home.verified()["intact"]


def under_way(peer: Peer, tool: str) -> str:
    """Begin a task whose agent calls this tool."""
    return peer.send(Sending(agent="caller", text=tool, waits=False))["id"]


def cancelled(peer: Peer, task: str, agent: str, dialect: Dialect = RPC1) -> None:
    """Cancel it; once more, and the dialect says that it has ended."""
    answer = peer.of_task("cancel", task, agent, dialect)
    assert dialect.state(answer) == "canceled", answer


@pytest.mark.parametrize("dialect", [SEED, RPC03, RPC1, REST1], ids=lambda one: one.name)
def test_to_cancel_a_task_ends_the_program_that_its_agent_runs(
    peer: Peer, dialect: Dialect
) -> None:
    name = f"pipe-{dialect.name.replace(' ', '-')}"
    with events(peer.daemon) as told, reading(peer, name) as (task, writing):
        assert processes(name)
        cancelled(peer, task, "reader", dialect)
        began = time.monotonic()
        assert nobody_reads(writing)
        until(lambda: not processes(name))
        assert ending(told, "builtin:shell_exec") == "cancelled"
        assert ending(told, "agent:reader") == "cancelled"
        assert time.monotonic() - began < SOON
    assert dialect.state(peer.of_task("get", task, "reader", dialect)) == "canceled"


def test_to_cancel_a_task_ends_the_call_of_a_server_and_what_comes_late_changes_nothing(
    peer: Peer,
) -> None:
    before = int(seen(peer.daemon))
    with events(peer.daemon) as told:
        task = under_way(peer, "mcp:slow:wait")
        started(told, "mcp:slow:wait")
        cancelled(peer, task, "caller")
        began = time.monotonic()
        assert ending(told, "mcp:slow:wait") == "cancelled"
        until(lambda: int(seen(peer.daemon)) == before + 1)  # by now the late answer is here
        assert time.monotonic() - began < SOON
    history = peer.of_task("history", task, dialect=SEED).json["history"]
    assert [one["status"] for one in history] == ["submitted", "working", "cancelled"]
    assert state_of(RPC1.task(peer.of_task("get", task, "caller"))) == "canceled"


def seen(daemon: Daemon) -> str:
    """How many calls the server was told to end."""
    return daemon.call("mcp:slow:seen").json["content"][0]["text"]


def started(told: Iterator[dict[str, Any]], tool: str) -> None:
    """Wait until a call of this tool has begun."""
    for event in told:
        if event.get("event_type") == "tool_invocation_start" and event["tool"] == tool:
            return


def test_to_cancel_a_task_hangs_up_on_an_upstream(peer: Peer, web: SlowWeb) -> None:
    with events(peer.daemon) as told:
        task = under_way(peer, "mcp:web:wait")
        assert web.asked.wait(SECONDS)
        assert not web.left.is_set()
        cancelled(peer, task, "caller", SEED_RPC)
        assert web.left.wait(SOON)
        assert ending(told, "mcp:web:wait") == "cancelled"


def test_to_cancel_a_task_that_asks_ends_it(peer: Peer) -> None:
    task = peer.send(Sending(agent="asker"))["id"]
    with events(peer.daemon) as told:
        cancelled(peer, task, "asker")
        assert ending(told, "agent:asker") == "cancelled"
    answer = peer.ask(RPC1.send(Sending(agent="asker", task=task)))
    assert RPC1.code(answer) == -32004


@pytest.mark.requirement("C5.2", "C5.3")
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_to_cancel_what_has_ended_is_the_dialects_own_error(peer: Peer, dialect: Dialect) -> None:
    task = peer.send(Sending(), dialect)["id"]
    answer = peer.of_task("cancel", task, dialect=dialect)
    assert dialect.code(answer) == ENDED.get(dialect.name, 400), answer
    assert dialect.state(peer.of_task("get", task, dialect=dialect)) == "completed"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_a_caller_that_hangs_up_does_not_stop_its_task(peer: Peer, dialect: Dialect) -> None:
    leaves(peer, dialect.send, f"gone-{dialect.name.replace(' ', '-')}")


@pytest.mark.parametrize("dialect", STREAMING, ids=lambda one: one.name)
def test_a_caller_that_leaves_a_stream_does_not_stop_its_task(peer: Peer, dialect: Dialect) -> None:
    assert dialect.stream
    leaves(peer, dialect.stream, f"left-{dialect.name.replace(' ', '-')}")


def leaves(peer: Peer, way: Callable[[Sending], Asked], name: str) -> None:
    """Send, hang up while the agent is at work, and see that it comes to its end."""
    pipe = pipe_for_reader(peer.daemon.home, name)
    asked = way(Sending(agent="reader", text=name, context=name))
    with closing(peer.daemon.connect()) as connection:
        body = json.dumps(asked.body)
        connection.request(asked.method, asked.path, body, peer.headers(asked))
        writing = opened(pipe)
        port = connection.sock.getsockname()[1]
        assert is_connected(peer.daemon, port)
        connection.sock.shutdown(socket.SHUT_RDWR)
    until(lambda: not is_connected(peer.daemon, port))
    assert [state_of(task) for task in listed(peer, name)] == ["working"]
    os.close(writing)
    until(lambda: [state_of(task) for task in listed(peer, name)] == ["completed"])


def is_connected(daemon: Daemon, port: int) -> bool:
    """Whether the daemon has not noticed yet that somebody at this port hung up."""
    ours, theirs = f":{daemon.address[1]:04X}", f":{port:04X}"
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(
        here.endswith(ours) and there.endswith(theirs) and state in OPEN
        for _, here, there, state, *_ in lines
    )


def listed(peer: Peer, context: str) -> list[dict[str, Any]]:
    assert RPC1.listed
    return RPC1.task(peer.ask(RPC1.listed("reader", context)))["tasks"]


@pytest.mark.requirement("C5.6")
def test_a_message_that_is_sent_many_times_at_once_is_one_task(peer: Peer) -> None:
    said = Sending(id="the same")
    with ThreadPoolExecutor(8) as clients:
        done = [clients.submit(peer.send, said, one) for one in (RPC03, RPC1, REST03, REST1) * 4]
    assert len({one.result()["id"] for one in done}) == 1
    assert peer.daemon.home.rows("SELECT state FROM tasks WHERE message = ?", (said.id,)) == [
        ("completed",)
    ]


@pytest.mark.requirement("C5.3", "C7.5")
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_more_than_ten_megabytes_are_refused_and_nothing_is_kept(
    peer: Peer, dialect: Dialect
) -> None:
    count = "SELECT COUNT(*), (SELECT COUNT(*) FROM task_events) FROM tasks"
    before = peer.daemon.home.rows(count)
    asked = dialect.send(Sending())
    answer = peer.daemon.ask(asked.method, asked.path, TOO_MUCH, asked.headers)
    assert answer.status == 413, answer
    assert peer.daemon.home.rows(count) == before
    assert dialect.state(peer.ask(dialect.send(Sending()))) == "completed"
