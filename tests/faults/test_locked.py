"""A database that another program holds: what needs a record is refused, the rest goes on."""

from __future__ import annotations

import json
import select
import socket
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.answers import replies
from tests.faults.daemon import NO_LIMITS, SECONDS, Daemon, make_home, serving
from tests.faults.dialects import RPC1, Sending
from tests.faults.tasks import home_with_agents

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.10")

READS = (
    "/api/health",
    "/api/status",
    "/api/tools",
    "/api/keys",
    "/api/approvals",
    "/api/audit",
    "/api/audit/verify",
    "/metrics",
)
CLOSE = "Connection: close"


@contextmanager
def locked(file: Path) -> Generator[None]:
    """Hold the database as another program does in the middle of a change."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=SECONDS)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def sent(daemon: Daemon, stack: ExitStack, request: bytes) -> socket.socket:
    """Send a request on a connection of its own, and do not wait for the answer."""
    client = stack.enter_context(socket.create_connection(daemon.address, SECONDS))
    client.sendall(request)
    return client


def rest(client: socket.socket) -> bytes:
    """Read to the end."""
    data = b""
    while more := client.recv(65_536):
        data += more
    return data


def answer(client: socket.socket) -> tuple[int, str]:
    """The status, and the rule of a problem."""
    (reply,) = replies(rest(client))
    return reply.status, reply.problem["rule"] if reply.status >= 400 else ""


def unanswered(clients: list[socket.socket]) -> bool:
    return not select.select(clients, [], [], 0)[0]


def recorded(daemon: Daemon, question: str, user: str) -> list[bytes]:
    """Requests that must be on record, whatever comes of them: one for each way to write."""

    def ask(method: str, path: str, body: bytes, key: str = daemon.key) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        return f"{head}{CLOSE}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    store = b'{"arguments": {"key": "k", "value": 1}}'
    return [
        ask("POST", "/api/config/reload", b"{}"),
        ask("POST", "/api/tools/system_time/call", b"{}"),
        ask("POST", "/api/tools/memory_store/call", store),
        ask("POST", "/api/tools/shell_exec/call", b'{"arguments": {"command": ["true"]}}'),
        ask("POST", "/api/tools/no_such_tool/call", b"{}"),
        ask("POST", f"/api/approvals/{question}", b'{"answer": "approve"}'),
        ask("POST", "/api/keys", b'{"name": "one-more"}'),
        ask("POST", "/api/specs", b'{"name": "plan", "content": "a plan"}'),
        ask("DELETE", "/api/keys/user", b""),
        ask("GET", "/api/keys", b"", user),
        ask("GET", "/api/status", b"", "not-a-key"),
    ]


def test_while_another_program_holds_the_database_nothing_waits_that_needs_no_record(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "home", NO_LIMITS)
    with serving(home) as daemon, ExitStack() as stack:
        asked = daemon.call("shell_exec", command=["echo", "once"])
        assert (asked.status, asked.rule) == (202, "spec_not_frozen")
        user: dict[str, Any] = daemon.ask("POST", "/api/keys", {"name": "user"}).json
        requests = recorded(daemon, asked.json["approval"], user["secret"])
        before = home.rows("SELECT COUNT(*) FROM audit")
        with locked(home.path / "openfang.db"):
            (home.path / "config.toml").write_text(f"{NO_LIMITS}[loops]\nwarn = 4\n")
            waiting: list[socket.socket] = []
            for request in requests:
                waiting.append(sent(daemon, stack, request))
                # Answered behind it, and before it: nothing stands still.
                assert daemon.healthy()
                assert unanswered(waiting)
            assert [daemon.ask("GET", path).status for path in READS] == [200] * len(READS)
            assert unanswered(waiting)
            answers = [answer(client) for client in waiting]
            assert {status for status, _ in answers} == {503}
            assert {rule for _, rule in answers} == {"audit_unavailable"}
            assert home.rows("SELECT COUNT(*) FROM audit") == before
        assert daemon.call("memory_recall", key="k").json["outcome"] == "error"
        again = [answer(sent(daemon, stack, request)) for request in requests]
        assert [status for status, _ in again] == [
            200, 200, 200, 202, 404, 200, 201, 201, 200, 401, 401,
        ]  # fmt: skip
        assert daemon.ask("GET", "/api/audit/verify").json["intact"]
    assert daemon.ended() == 0
    assert "Traceback" not in home.log.read_text()
    assert home.verified()["intact"]


def test_a_daemon_ends_cleanly_while_another_program_holds_the_database(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    with serving(home) as daemon:
        assert daemon.call("system_time").status == 200
        with locked(home.path / "openfang.db"):
            daemon.process.terminate()
            assert daemon.ended() == 0
    assert home.verified()["intact"]
    assert list(home.endings().values()) == [["ok"]]


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C5.6")
def test_a_stream_that_cannot_begin_before_the_node_ends_is_told_so(tmp_path: Path) -> None:
    home = home_with_agents(tmp_path / "home")
    assert RPC1.stream
    asked = RPC1.stream(Sending())
    with serving(home) as daemon, ExitStack() as stack:
        headers = [f"{name}: {value}" for name, value in asked.headers.items()]
        body = json.dumps(asked.body).encode()
        request = daemon.request("POST", asked.path, *headers, CLOSE, body=body)
        assert daemon.healthy()
        with locked(home.path / "openfang.db"):
            client = sent(daemon, stack, request)
            assert daemon.healthy()
            daemon.process.terminate()
            (reply,) = replies(rest(client))
        assert daemon.ended() == 0
    assert reply.status == 503
    assert json.loads(reply.body)["error"]["data"]["rule"] == "stopping"
    assert home.verified()["intact"]
