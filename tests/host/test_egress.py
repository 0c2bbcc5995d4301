from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from tests.host import inside_egress
from tests.host.alone import check_alone
from tests.host.confining import Ground, executable
from tests.host.proxied import Names, Server, get, hello, opened, serving
from tests.node import NODE, NPM

from openfang.host.egress import (
    PROXY_VARIABLES,
    Closed,
    EgressLimits,
    EgressRules,
    Failed,
    Opened,
    Refused,
    open_egress,
    proxy_variables,
)
from openfang.host.process import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from openfang.host.egress import Egress

pytestmark = pytest.mark.requirement("C3.9", "C16.2")

# Servers of these tests listen on the loopback, under names that only the test's resolver knows.
RULES = EgressRules(allow_private=True)
NAMES = ("a.example", "registry.example")


def names() -> Names:
    return Names({name: [["127.0.0.1"]] for name in NAMES})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "egress.sock"


@pytest.mark.needs("unshare", "ip")
def test_the_egress_keeps_its_promises_in_a_network_of_its_own(tmp_path: Path) -> None:
    check_alone(inside_egress, tmp_path)


# What goes through


async def test_a_tunnel_carries_every_byte_both_ways_and_counts_them(path: Path) -> None:
    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(-1)
        writer.write(data[::-1])
        await writer.drain()

    sent = os.urandom(3_000_000)
    async with (
        serving(reverse) as server,
        opened(path, names(), rules=RULES) as way,
        way.connected() as (reader, writer),
    ):
        writer.write(f"CONNECT a.example:{server.port} HTTP/1.1\r\n\r\n".encode() + sent[:10])
        answered = await reader.readuntil(b"\r\n\r\n")
        assert answered == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(sent[10:])
        writer.write_eof()
        with anyio.fail_after(30):
            assert await reader.read(-1) == sent[::-1]
    opens, closed = way.visits
    assert opens == Opened(host="a.example", port=server.port, address="127.0.0.1")
    assert isinstance(closed, Closed)
    assert (closed.sent, closed.received) == (len(sent), len(sent))


async def test_a_request_is_written_anew_without_what_was_between_the_two(path: Path) -> None:
    seen: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with serving(note) as server, opened(path, names(), rules=RULES) as way:
        url = server.url("a.example", "/p/a%20th?q=1#fragment")
        answer = await way.say(
            get(
                url,
                *("Proxy-Authorization: Basic c2VjcmV0", "Proxy-Connection: keep-alive"),
                *("Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "TE: trailers"),
                *("Authorization: Bearer token", "Accept: */*", "Upgrade: h2c"),
            )
        )
        assert answer.startswith(b"HTTP/1.1 204")
    assert seen == [
        f"GET /p/a%20th?q=1 HTTP/1.1\r\nHost: a.example:{server.port}\r\n"
        "authorization: Bearer token\r\naccept: */*\r\nConnection: close\r\n\r\n".encode()
    ]
    told = repr(way.visits)
    assert "a.example" in told
    for secret in ("c2VjcmV0", "token", "/p/", "q=1"):
        assert secret not in told


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_arrives_whole_in_either_framing(path: Path, *, chunked: bool) -> None:
    body = b"0123456789" * 20_000
    seen: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert (b"Transfer-Encoding: chunked" in head) is chunked
        if not chunked:
            seen.append(await reader.readexactly(len(body)))
        while chunked and (size := int(await reader.readline(), 16)):
            seen.append(await reader.readexactly(size))
            await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with serving(note) as server, opened(path, names(), rules=RULES) as way:
        how = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
        head = get(server.url("a.example"), how).replace("GET", "POST").encode()
        framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        assert (await way.say(head + framed)).endswith(b"ok")
    assert b"".join(seen) == body


async def test_a_second_request_on_a_connection_is_not_passed_on(path: Path) -> None:
    requests = 0
    second = asyncio.Event()

    async def keep_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        while await reader.read(65536):
            requests += 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        second.set()

    async with serving(keep_open) as server, opened(path, names(), rules=RULES) as way:
        async with way.connected() as (reader, writer):
            writer.write(get(server.url("a.example")).encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(get(server.url("registry.example")).encode())
            with anyio.fail_after(30):
                assert await reader.read() == b""
        with anyio.fail_after(30):
            await second.wait()
    assert requests == 1


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"CONNECT a.example HTTP/1.1\r\n\r\n",
        b"CONNECT a.example/x:80 HTTP/1.1\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: " + b"x" * 200_000,
        b"GET http://a.example/ HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX : y\r\n\r\n",
    ],
)
async def test_what_is_not_a_proper_request_reaches_nobody(path: Path, said: bytes) -> None:
    async with opened(path, names(), rules=RULES) as way:
        with anyio.fail_after(30):
            async with way.connected() as (reader, writer):
                writer.write(said)
                assert int((await reader.readline()).split()[1]) in {400, 403}
    assert [type(visit) for visit in way.visits] == [Refused]


async def test_a_server_that_does_not_listen_is_a_failure_and_not_a_refusal(path: Path) -> None:
    async with serving(hello) as server:
        pass
    async with opened(path, names(), rules=RULES) as way:
        assert await way.tunnel("a.example", server.port) == 502
    (visit,) = way.visits
    assert isinstance(visit, Failed)
    assert (visit.host, visit.port) == ("a.example", server.port)


# Bounds


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_connections_are_bounded_and_one_that_ends_makes_room(path: Path) -> None:
    limits = EgressLimits(connections=2)
    async with serving(hello) as server, opened(path, names(), rules=RULES, limits=limits) as way:
        async with way.connected(), way.connected():
            assert await way.status(get(server.url("a.example"))) == 503
        assert Refused(rule="too_many") in way.visits
        with anyio.fail_after(30):
            while await way.status(get(server.url("a.example"))) != 200:
                await anyio.lowlevel.checkpoint()


async def test_a_client_that_says_nothing_or_half_a_thing_is_let_go(path: Path) -> None:
    async with opened(path, limits=EgressLimits(head_seconds=0.1)) as way:
        with anyio.fail_after(30):
            for words in (b"", b"CONNECT a.exa"):
                async with way.connected() as (reader, writer):
                    writer.write(words)
                    assert b" 408 " in await reader.read()


@pytest.mark.parametrize(
    "limits", [EgressLimits(idle_seconds=0.2), EgressLimits(total_seconds=0.2)]
)
async def test_a_tunnel_that_is_idle_or_old_ends(path: Path, limits: EgressLimits) -> None:
    async with serving(silent) as server, opened(path, names(), rules=RULES, limits=limits) as way:
        with anyio.fail_after(30):
            assert await way.say(f"CONNECT a.example:{server.port} HTTP/1.1\r\n\r\n")
    assert [type(visit) for visit in way.visits] == [Opened, Closed]


async def test_a_resolver_that_never_answers_refuses(path: Path) -> None:
    never = asyncio.Event()

    async def no_answer(host: str, port: int) -> list[str]:
        await never.wait()
        return [host, str(port)]

    limits = EgressLimits(dial_seconds=0.1)
    async with open_egress(RULES, noted=print, limits=limits, unix_socket=path, resolve=no_answer):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"CONNECT a.example:80 HTTP/1.1\r\n\r\n")
        with anyio.fail_after(30):
            assert b" 403 " in await reader.read()
        writer.close()


async def test_the_end_of_the_egress_ends_its_connections(path: Path) -> None:
    with anyio.fail_after(30):
        async with serving(silent) as server:
            async with opened(path, names(), rules=RULES) as way:
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(f"CONNECT a.example:{server.port} HTTP/1.1\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
    assert isinstance(way.visits[-1], Closed)
    assert not await to_thread.run_sync(path.exists)


async def test_what_fails_under_an_open_egress_is_told_as_it_is(path: Path) -> None:
    with pytest.raises(LaunchFailed):
        async with opened(path):
            raise LaunchFailed("no such program")
    assert not await to_thread.run_sync(path.exists)


async def test_the_socket_is_its_owners_and_can_lie_deep(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    await to_thread.run_sync(folder.mkdir)
    async with opened(folder / "egress.sock"):
        mode = (await to_thread.run_sync((folder / "egress.sock").stat)).st_mode
        assert mode & 0o777 == 0o600


# Children: which programs take this way


@asynccontextmanager
async def way_out(ground: Ground, door: str) -> AsyncGenerator[tuple[Egress, list[object]]]:
    """Open the egress in both of its forms."""
    visits: list[object] = []
    unix_socket = ground.make().unix_socket if door == "bridged" else None
    async with open_egress(
        RULES, noted=visits.append, unix_socket=unix_socket, resolve=names()
    ) as egress:
        yield egress, visits


def by_python(server: Server) -> tuple[str, ...]:
    script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
    return (sys.executable, "-c", script, server.url("a.example"))


def by_curl(server: Server) -> tuple[str, ...]:
    return ("curl", "--silent", "--show-error", server.url("a.example"))


def by_curls_tunnel(server: Server) -> tuple[str, ...]:
    return ("curl", "--silent", "--show-error", "--proxytunnel", server.url("a.example"))


@pytest.mark.needs("bwrap", "curl")
@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize(
    ("door", "program"),
    [
        ("handed", by_python),
        ("handed", by_curl),
        ("handed", by_curls_tunnel),
        ("bridged", by_python),
        ("bridged", by_curls_tunnel),
    ],
)
async def test_a_sandboxed_program_reaches_a_host_through_the_egress_alone(
    tmp_path: Path, door: str, program: Callable[[Server], tuple[str, ...]]
) -> None:
    ground = Ground(root=tmp_path)
    async with serving(hello) as server, way_out(ground, door) as (egress, visits):
        with anyio.fail_after(20):
            finished = await ground.run(*program(server), egress=egress)
            assert finished.stdout.strip() == b"hello", finished.stderr
            direct = await ground.run(
                *("curl", "--silent", "--show-error", "--noproxy", "*", server.url()),
                egress=egress,
            )
            refused = await ground.run("curl", "--silent", "http://unknown.example/", egress=egress)
        assert direct.exit_code == 7, "the loopback of the sandbox is its own"
        assert b"unresolved" in refused.stdout
        assert server.visitors == 1
    assert Refused(rule="unresolved", host="unknown.example", port=80) in visits


@pytest.mark.needs("bwrap", "curl")
async def test_each_start_hands_over_a_way_of_its_own(tmp_path: Path) -> None:
    ground = Ground(root=tmp_path)
    async with serving(hello) as server, way_out(ground, "handed") as (egress, _):
        for _ in range(3):
            finished = await ground.run(*by_curl(server), egress=egress)
            assert finished.stdout == b"hello"


async def registry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as both kinds of package registry do."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    page = b'<a href="thing-1.2.3.tar.gz">thing-1.2.3.tar.gz</a>'
    kind = "text/html"
    if "/simple/" not in head:
        kind = "application/json"
        version = {"name": "thing", "version": "1.2.3"}
        page = json.dumps(
            {"name": "thing", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
        ).encode()
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(page)}\r\n"
        "Connection: close\r\n\r\n".encode()
        + page
    )


@pytest.mark.needs("bwrap")
async def test_the_package_managers_take_the_way_out(tmp_path: Path) -> None:
    ground = Ground(root=tmp_path)
    async with serving(registry) as server, way_out(ground, "handed") as (egress, visits):
        url = server.url("registry.example", "/").rstrip("/")
        for argv in (
            (NODE, NPM, "view", "--registry", url, "thing", "version"),
            (
                *(PYTHON, "-m", "pip", "index", "versions", "thing", "--isolated"),
                *("--index-url", f"{url}/simple", "--trusted-host", "registry.example"),
                "--disable-pip-version-check",
            ),
        ):
            with anyio.fail_after(30):
                finished = await ground.run(*argv, egress=egress)
            assert b"1.2.3" in finished.stdout, finished.stderr
    hosts = {visit.host for visit in visits if isinstance(visit, Opened)}
    assert hosts == {"registry.example"}


PYTHON = f"{sys.base_prefix}/bin/python3"  # ours has no pip of its own
FETCH = """
const [major, minor] = process.versions.node.split(".").map(Number);
const knows = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
const say = text => console.log(knows, text);
fetch(process.argv[1]).then(answer => answer.text()).then(say, () => say("no"));
"""


@pytest.mark.needs("bwrap")
async def test_nodes_own_fetch_takes_it_in_versions_that_can(tmp_path: Path) -> None:
    """Older ones reach nothing at all: the way out cannot be walked around."""
    ground = Ground(root=tmp_path)
    async with serving(hello) as server, way_out(ground, "handed") as (egress, _):
        finished = await ground.run(NODE, "-e", FETCH, server.url("a.example"), egress=egress)
        expected = b"true hello\n" if finished.stdout.startswith(b"true") else b"false no\n"
        assert finished.stdout == expected, finished.stderr


def test_the_variables_come_in_both_spellings_and_spare_the_childs_own_servers() -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        assert PROXY_VARIABLES[name] == PROXY_VARIABLES[name.lower()]
    assert PROXY_VARIABLES["HTTPS_PROXY"] == "http://127.0.0.1:61088"
    assert "127.0.0.1" in PROXY_VARIABLES["NO_PROXY"].split(",")
    assert proxy_variables(EgressRules()) == PROXY_VARIABLES


def test_who_may_reach_our_loopback_is_led_there_and_not_to_its_own() -> None:
    spared = {"NO_PROXY", "no_proxy"}
    assert PROXY_VARIABLES.keys() - proxy_variables(RULES).keys() == spared


@pytest.mark.needs("bwrap", "curl")
async def test_a_server_of_the_childs_own_is_reached_without_the_egress(tmp_path: Path) -> None:
    script = """
import http.server, threading, subprocess
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/word"
print(subprocess.run(["curl", "--silent", url], capture_output=True).stdout.decode())
"""
    ground = Ground(root=tmp_path)
    await to_thread.run_sync(executable, ground.folder / "home" / "word", "mine")
    async with way_out(ground, "handed") as (egress, visits):
        finished = await ground.run(
            *(sys.executable, "-c", script), cwd=ground.folder / "home", egress=egress
        )
    assert (finished.stdout.strip(), visits) == (b"mine", []), finished.stderr
