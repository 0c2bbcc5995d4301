"""Who sends slowly, little or compressed: it costs them their connection, and others nothing."""

from __future__ import annotations

import gzip
import resource
import select
import socket
import time
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import pytest
from tests.faults.answers import replies
from tests.faults.daemon import NO_LIMITS, SECONDS, Daemon, make_home, read, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C12.2")

CROWD = 1000
HALF_A_HEAD = b"GET /api/status HTTP/1.1\r\nHost: localh"
HALF_A_BODY = (
    b"POST /api/tools/system_time/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n"
    b"Content-Length: 1000\r\n\r\nhalf"
)
POSTS = ("/api/tools/system_time/call", "/api/keys", "/api/audit/sql", "/api/config/reload")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that gives senders little time, which the tests of this module share."""
    config = f"[server]\nhead_secs = 0.4\nbody_secs = 1.6\nidle_secs = 3.2\n{NO_LIMITS}"
    with serving(make_home(tmp_path_factory.mktemp("slow") / "home", config)) as running:
        yield running


def rest(client: socket.socket) -> bytes:
    """Read until the server hangs up."""
    data = b""
    with suppress(ConnectionError):
        while more := client.recv(65_536):
            data += more
    return data


def test_a_head_a_body_and_the_next_request_have_so_much_time_each(daemon: Daemon) -> None:
    body = HALF_A_BODY % daemon.key.encode()
    whole = daemon.request("GET", "/api/health")
    told = {"head": HALF_A_HEAD, "body": body, "idle": whole}
    with ExitStack() as stack:
        clients: dict[int, tuple[str, socket.socket]] = {}
        watch = select.poll()
        for name, sent in told.items():
            client = stack.enter_context(socket.create_connection(daemon.address, SECONDS))
            client.sendall(sent)
            if name == "idle":
                assert client.recv(65_536).startswith(b"HTTP/1.1 200 OK")
            watch.register(client, select.POLLIN)
            clients[client.fileno()] = name, client
        ends: list[tuple[str, list[int]]] = []
        while clients:
            for handle, _ in watch.poll(SECONDS * 1000):
                watch.unregister(handle)
                name, client = clients.pop(handle)
                ends.append((name, [reply.status for reply in replies(rest(client))]))
    assert ends == [("head", [408]), ("body", [408]), ("idle", [])]


def test_a_compressed_body_is_refused_before_it_is_unpacked(daemon: Daemon) -> None:
    member = gzip.compress(bytes(16_777_216))
    bomb = member * 64  # a gigabyte
    before = daemon.memory()
    for path in POSTS:
        for name in ("gzip", "x-gzip", "deflate", "br", "gzip, identity"):
            answer = daemon.ask("POST", path, bomb, {"Content-Encoding": name})
            assert (answer.status, answer.rule) == (415, "content_encoding")
    assert daemon.memory() - before < 8_000_000
    assert daemon.healthy()


def test_a_connection_outlives_a_body_that_was_refused(daemon: Daemon) -> None:
    with closing(daemon.connect()) as connection:
        headers = daemon.headers({"Content-Encoding": "gzip"})
        connection.request("POST", POSTS[0], bytes(200_000), headers)
        assert read(connection).status == 415
        connection.request("POST", POSTS[0], "{}", daemon.headers())
        assert read(connection).json["outcome"] == "ok"


def crowd(daemon: Daemon, stack: ExitStack, size: int) -> list[socket.socket]:
    """Connect so many who send half of something, and then nothing more."""
    body = HALF_A_BODY % daemon.key.encode()
    clients: list[socket.socket] = []
    for number in range(size):
        client = stack.enter_context(socket.create_connection(daemon.address, SECONDS))
        client.sendall((HALF_A_HEAD, body, b"")[number % 3])
        clients.append(client)
    return clients


def present(clients: list[socket.socket]) -> list[socket.socket]:
    """Those whom nobody has told anything."""
    watch = select.poll()
    for client in clients:
        watch.register(client, select.POLLIN)
    told = {handle for handle, _ in watch.poll(0)}
    return [client for client in clients if client.fileno() not in told]


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have as many connections as a test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CROWD + 1000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_slow_senders_keep_nobody_out(tmp_path: Path) -> None:
    config = f"[server]\nhead_secs = 4\nbody_secs = 4\n{NO_LIMITS}"
    home = make_home(tmp_path / "home", config)
    with serving(home) as daemon, ExitStack() as stack:
        daemon.call("system_time")
        before = daemon.memory()
        with closing(daemon.connect()) as friend:
            clients = crowd(daemon, stack, CROWD)
            answers: list[int] = []
            for _ in range(50):
                # On a connection of one's own, and on one that was there before.
                answers.append(daemon.call("system_time").status)
                friend.request("GET", "/api/health")
                answers.append(read(friend).status)
            assert answers == [200] * 100
            assert len(present(clients)) > CROWD // 2
        assert daemon.memory() - before < 50_000_000
        until = time.monotonic() + SECONDS
        while left := present(clients):
            watch = select.poll()  # `select` takes no handle above 1,023
            watch.register(left[0], select.POLLIN)
            watch.poll(1000 * max(0.0, until - time.monotonic()))
            assert time.monotonic() < until
        statuses = {reply.status for client in clients for reply in replies(rest(client))}
        assert statuses <= {408, 503}
        assert 408 in statuses
        assert daemon.healthy()
    assert home.complaints() == []


def test_whoever_waits_longest_makes_room_for_the_next(tmp_path: Path) -> None:
    config = f"[server]\nconnections = 3\n{NO_LIMITS}"
    with serving(make_home(tmp_path / "home", config)) as daemon, ExitStack() as stack:
        clients = crowd(daemon, stack, 6)
        assert daemon.healthy()
        assert [reply.status for reply in replies(rest(clients[0]))] == [503]
        assert clients[5] in present(clients)
