"""Clients that go away: in the middle of a call, of an answer, of a request."""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import (
    SECONDS,
    Daemon,
    in_flight,
    make_home,
    nobody_reads,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytestmark = pytest.mark.requirement("C12.2", "C7.13")

ABORT = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that the tests of this module share, with a plan that lets programs run."""
    with serving(make_home(tmp_path_factory.mktemp("gone") / "home")) as running:
        yield running
    assert running.home.complaints() == []


@contextmanager
def events(daemon: Daemon) -> Generator[Iterator[dict[str, Any]]]:
    """What happens from now on, as it is told to whoever listens."""
    with closing(daemon.connect()) as connection:
        connection.request("GET", "/api/events", headers=daemon.headers())
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 1000\n"

        def told() -> Iterator[dict[str, Any]]:
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

        yield told()


def ending(told: Iterator[dict[str, Any]], tool: str) -> str:
    """Wait until a call of this tool has ended, and say how."""
    for event in told:
        if event.get("event_type") == "tool_invocation_end" and event["tool"] == tool:
            return event["outcome"]
    raise AssertionError("the stream ended first")


def abort(client: socket.socket) -> None:
    """Hang up without a word of goodbye."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    client.close()


@pytest.mark.parametrize("way", ["politely", "abruptly"])
def test_a_client_that_hangs_up_in_the_middle_of_a_call_cancels_it(
    daemon: Daemon, way: str
) -> None:
    with events(daemon) as told, in_flight(daemon, way) as (client, writing):
        client.close() if way == "politely" else abort(client)
        assert ending(told, "builtin:shell_exec") == "cancelled"
        assert nobody_reads(writing)
    assert daemon.healthy()


def test_clients_that_hang_up_in_the_middle_of_an_answer_leave_nothing_behind(
    daemon: Daemon,
) -> None:
    folder = daemon.home.path / "workspaces" / "key-admin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "large").write_bytes(os.urandom(4_000_000))
    body = json.dumps({"arguments": {"path": "large"}}).encode()
    request = daemon.request("POST", "/api/tools/file_read/call", body=body)
    files = daemon.files()
    with events(daemon) as told:
        for _ in range(10):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(SECONDS)
            client.connect(daemon.address)
            client.sendall(request)
            assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")
            abort(client)
            assert ending(told, "builtin:file_read") == "ok"
    daemon.wait_for_files(files)


def test_clients_that_hang_up_in_the_middle_of_a_request_leave_nothing_behind(
    daemon: Daemon,
) -> None:
    files = daemon.files()
    request = daemon.request("POST", "/api/keys", body=b'{"name": "half-made"}')
    for size in range(1, len(request), 7):
        with socket.create_connection(daemon.address, SECONDS) as client:
            client.sendall(request[:size])
            if size % 2:
                abort(client)
    daemon.wait_for_files(files)
    names = [key["name"] for key in daemon.ask("GET", "/api/keys").json["keys"]]
    assert "half-made" not in names
