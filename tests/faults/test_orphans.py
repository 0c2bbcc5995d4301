"""`kill -9` of a daemon with many servers: nothing that they started is left."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.faults.daemon import NO_LIMITS, make_home, serving
from tests.host.confining import marked
from tests.peers.servers import Server

if TYPE_CHECKING:
    from tests.faults.daemon import Daemon

pytestmark = [
    pytest.mark.requirement("C3.8", "C16.1"),
    pytest.mark.needs("bwrap"),
    pytest.mark.timeout(200),
]
SERVERS = 20
# A server with a grandchild that leaves its session and forgets its environment.
KEPT = """
import os, runpy, subprocess, sys
peer, word = sys.argv[1:3]
subprocess.Popen(
    [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()", word],
    start_new_session=True, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
)
sys.argv = [peer, "get_note"]
runpy.run_path(peer, run_name="__main__")
"""
PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "errands.py"


def entries(word: str) -> str:
    return "\n".join(
        Server(
            name=f"s{number}",
            command=sys.executable,
            args=("-I", "-S", "-c", KEPT, str(PEER), word),
            keys={"sandbox": "required", "network": number % 2 == 0},
        ).entry
        for number in range(SERVERS)
    )


def connected(daemon: Daemon) -> bool:
    health = daemon.ask("GET", "/api/mcp/health").json
    return list(health.values()) == ["healthy"] * SERVERS


def wait_until_connected(daemon: Daemon) -> None:
    deadline = time.monotonic() + 120
    while not connected(daemon):
        assert time.monotonic() < deadline


def test_no_descendant_of_twenty_servers_is_left_when_the_daemon_is_killed(tmp_path: Path) -> None:
    word = f"family-{uuid4().hex}"
    with serving(make_home(tmp_path / "home", f"{NO_LIMITS}\n{entries(word)}")) as daemon:
        wait_until_connected(daemon)
        # bubblewrap, the first process inside, the server, and what it started: twenty times.
        assert len(marked(word)) >= 4 * SERVERS
        daemon.tell(signal.SIGKILL)
        assert daemon.ended() == -signal.SIGKILL
        killed = time.monotonic()
        while left := marked(word):
            assert time.monotonic() - killed < 10, f"{len(left)} are left"
