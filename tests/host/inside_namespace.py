"""Tests of the HTTP client that `test_http.py` runs where there is no network but the loopback.

There, `PUBLIC` and the metadata address are really on the loopback device: what must be reached
answers, what must not be reached would answer too, and would be seen.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import tracemalloc
import zlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.host.proxied import Names

from openfang.core.errors import CallTimedOut
from openfang.host.http import FetchFailed, HttpClient, Request, Response
from openfang.host.resolve import Dial
from openfang.safety.urls import AddressRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

pytestmark = pytest.mark.requirement("C3.9")

PUBLIC = "93.184.215.14"
PUBLIC6 = "2606:2800:220:1::1"
METADATA = "169.254.169.254"
PRIVATE = "10.9.8.7"
Handler: TypeAlias = "Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]"


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


@dataclass
class Server:
    """A real server on one address; it notes every request."""

    address: str
    port: int
    seen: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])

    def url(self, path: str = "/", *, host: str = "") -> str:
        return f"http://{host or self.address}:{self.port}{path}"


@asynccontextmanager
async def serving(
    handler: Handler, address: str = PUBLIC, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    server = Server(address, 0)

    async def noting(request: web.BaseRequest) -> web.StreamResponse:
        server.seen.append(request)
        return await handler(request)

    runner = web.ServerRunner(web.Server(noting), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, 0, ssl_context=tls)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


async def hello(request: web.BaseRequest) -> web.Response:
    return web.Response(text=f"hello {request.path_qs}", headers={"Connection": "close"})


def redirect(to: str, status: int = 302) -> Handler:
    async def handler(request: web.BaseRequest) -> web.Response:
        location = to.replace("{path}", request.path)
        return web.Response(status=status, headers={"Location": location})

    return handler


def get(url: str, **changes: object) -> Request:
    request = Request(url=url, allow_hosts=("*",), timeout=5)
    return replace(request, **changes)  # pyright: ignore[reportArgumentType] - named in each test


async def fetch(request: Request, names: Names | None = None) -> Response:
    async with HttpClient(resolve=names or Names({})) as client:
        return await client.fetch(request)


async def refused(request: Request, names: Names | None = None) -> str:
    """Give the rule that refuses a request."""
    with anyio.fail_after(30), pytest.raises(AddressRefused) as refusal:
        await fetch(request, names)
    return refusal.value.rule


async def test_a_public_host_is_reached_by_its_name() -> None:
    names = Names({"example.com": [[PUBLIC]]})
    async with serving(hello) as server:
        answer = await fetch(get(server.url("/a?b=c#d", host="example.com")), names)
    assert (answer.status, answer.body, answer.truncated) == (200, b"hello /a?b=c", False)
    assert answer.url == server.url("/a?b=c", host="example.com")
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert server.seen[0].headers["Host"] == f"example.com:{server.port}"
    assert names.asked == {"example.com": 1}


async def test_addresses_of_both_families_are_reached_without_a_resolver() -> None:
    for address in (PUBLIC, PUBLIC6):
        async with serving(hello, address) as server:
            shown = f"[{address}]" if ":" in address else address
            assert (await fetch(get(server.url(host=shown)))).status == 200


@pytest.mark.parametrize("address", ["127.0.0.1", METADATA, PRIVATE, "::1"])
async def test_a_name_of_a_special_address_is_refused(address: str) -> None:
    async with serving(hello, address) as server:
        names = Names({"example.com": [[address]]})
        assert await refused(get(server.url(host="example.com")), names)
        mapped = Names({"example.com": [[f"::ffff:{address}"]]}) if "." in address else names
        assert await refused(get(server.url(host="example.com")), mapped)
        assert server.seen == []


@pytest.mark.parametrize("host", ["127.0.0.1", METADATA, PRIVATE, "[::1]", "[::ffff:127.0.0.1]"])
async def test_a_special_address_is_refused(host: str) -> None:
    names = Names({})
    async with serving(hello, "::1" if host == "[::1]" else host.strip("[]f:")) as server:
        assert await refused(get(server.url(host=host)), names)
        assert server.seen == []
    assert not names.asked


async def test_a_name_with_one_good_and_one_bad_answer_is_refused() -> None:
    async with serving(hello) as server:
        for answers in ([PUBLIC, "127.0.0.1"], [PUBLIC, METADATA], ["127.0.0.1", PUBLIC]):
            assert await refused(
                get(server.url(host="example.com")), Names({"example.com": [answers]})
            )
        assert server.seen == []


async def test_a_name_that_rebinds_is_refused_the_second_time() -> None:
    names = Names({"example.com": [[PUBLIC], ["127.0.0.1"]]})
    async with serving(hello) as server, serving(hello, "127.0.0.1") as inner:
        async with HttpClient(resolve=names) as client:
            first = await client.fetch(get(server.url(host="example.com")))
            assert first.status == 200
            assert names.asked["example.com"] == 1
            with pytest.raises(AddressRefused):
                await client.fetch(get(inner.url(host="example.com")))
        assert inner.seen == []


async def test_a_redirect_to_a_name_that_rebinds_is_refused() -> None:
    names = Names({"example.com": [[PUBLIC], [METADATA]]})
    async with serving(hello, METADATA) as inner:
        async with serving(redirect(inner.url(host="example.com"))) as server:
            assert await refused(get(server.url(host="example.com")), names) == "metadata"
        assert inner.seen == []


async def test_each_connection_asks_the_resolver_exactly_once() -> None:
    """A second question between check and connection would be the gap for a rebinding answer."""
    names = Names({"example.com": [[PUBLIC], [METADATA]]})
    async with serving(hello) as server:
        assert (await fetch(get(server.url(host="example.com")), names)).status == 200
    assert names.asked["example.com"] == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706433:{port}/",
        "http://127.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://user@127.0.0.1:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "\\\\127.0.0.1\\x",
    ],
)
async def test_a_redirect_into_the_inside_is_refused(location: str) -> None:
    names = Names({"localhost": [["127.0.0.1"]]})
    async with serving(hello, "127.0.0.1") as inner:
        async with serving(redirect(location.replace("{port}", str(inner.port)))) as server:
            assert await refused(get(server.url()), names)
            assert len(server.seen) == 1
        assert inner.seen == []


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    async def countdown(request: web.BaseRequest) -> web.Response:
        left = int(request.path[1:])
        if left == 0:
            return web.Response(text="there")
        return web.Response(status=302, headers={"Location": f"/{left - 1}"})

    async with serving(countdown) as server:
        answer = await fetch(get(server.url("/5")))
        assert (answer.body, answer.url) == (b"there", server.url("/0"))
        with pytest.raises(FetchFailed):
            await fetch(get(server.url("/6")))


async def test_a_redirect_is_an_answer_to_who_does_not_follow() -> None:
    async with serving(hello) as other, serving(redirect(other.url(), 307)) as first:
        request = get(first.url(), method="POST", body=b"words", follow=False)
        answer = await fetch(request)
        assert (answer.status, answer.header("location")) == (307, other.url())
        async with HttpClient() as client, client.stream(request) as streaming:
            assert streaming.status == 307
        assert other.seen == []


CREDENTIALS = {
    "Authorization": "Bearer x",
    "X-Api-Key": "k",
    "Cookie": "a=b",
    "Accept": "text/plain",
}


async def test_credentials_do_not_follow_to_another_origin() -> None:
    async with serving(hello) as other, serving(redirect(other.url("/there"))) as first:
        assert (await fetch(get(first.url(), headers=CREDENTIALS))).status == 200
    assert first.seen[0].headers["Authorization"] == "Bearer x"
    for name in ("Authorization", "X-Api-Key", "Cookie"):
        assert name not in other.seen[0].headers
    assert other.seen[0].headers["Accept"] == "text/plain"


async def test_credentials_stay_with_their_origin() -> None:
    async def once(request: web.BaseRequest) -> web.Response:
        moved = request.path == "/"
        return web.Response(
            status=307 if moved else 200, headers={"Location": "/b"} if moved else {}
        )

    async with serving(once) as server:
        answer = await fetch(get(server.url(), headers=CREDENTIALS, method="POST", body=b"payload"))
        assert answer.status == 200
    assert [request.headers["Authorization"] for request in server.seen] == ["Bearer x"] * 2
    assert [request.method for request in server.seen] == ["POST", "POST"]


async def test_a_body_does_not_follow_to_another_origin() -> None:
    async with serving(hello) as other:
        async with serving(redirect(other.url(), 307)) as first:
            rule = await refused(get(first.url(), method="POST", body=b"secret"))
        assert rule == "redirected_body"
        async with serving(redirect(other.url(), 303)) as first:
            sent = get(first.url(), method="POST", body=b"secret", headers={"Content-Type": "a/b"})
            assert (await fetch(sent)).status == 200
    assert [(seen.method, seen.content_length) for seen in other.seen] == [("GET", None)]
    assert "Content-Type" not in other.seen[0].headers


async def test_only_granted_hosts_are_reached_also_by_redirect() -> None:
    names = Names({"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]})
    async with serving(hello) as other, serving(redirect(other.url(host="b.example"))) as first:
        for grants in ((), ("b.example",), ("a.example",)):
            request = get(first.url(host="a.example"), allow_hosts=grants)
            assert await refused(request, names) == "not_granted"
        assert other.seen == []
        allowed = get(first.url(host="a.example"), allow_hosts=("*.example",))
        assert (await fetch(allowed, names)).status == 200


async def test_allow_private_reaches_loopback_and_private_but_never_metadata() -> None:
    names = Names({"inner.example": [["127.0.0.1"]], "meta.example": [[METADATA]]})
    async with serving(hello, "127.0.0.1") as inner, serving(hello, METADATA) as metadata:
        for host in ("127.0.0.1", "inner.example"):
            answer = await fetch(get(inner.url(host=host), allow_private=True), names)
            assert answer.status == 200
        for host in (METADATA, "meta.example", f"[::ffff:{METADATA}]"):
            assert await refused(get(metadata.url(host=host), allow_private=True), names)
        async with serving(redirect(metadata.url()), "127.0.0.1") as moving:
            assert await refused(get(moving.url(), allow_private=True)) == "metadata"
        assert metadata.seen == []
    async with serving(hello, PRIVATE) as private:
        assert (await fetch(get(private.url(), allow_private=True))).status == 200


async def test_a_connection_opened_under_the_looser_rule_never_serves_the_stricter_one() -> None:
    async def kept_alive(_: web.BaseRequest) -> web.Response:
        return web.Response(text="open")

    names = Names({"inner.example": [["127.0.0.1"]]})
    async with serving(kept_alive, "127.0.0.1") as inner, HttpClient(resolve=names) as client:
        url = inner.url(host="inner.example")
        await client.fetch(get(url, allow_private=True))
        with pytest.raises(AddressRefused):
            await client.fetch(get(url))
        assert len(inner.seen) == 1


@pytest.mark.parametrize("answers", [None, [], ["not-an-address"], ["fe80::1%lo"]])
async def test_a_name_that_does_not_resolve_to_addresses_is_refused(
    answers: list[str] | None,
) -> None:
    names = Names({} if answers is None else {"example.com": [answers]})
    assert await refused(get("http://example.com/", allow_private=True), names)


async def test_the_systems_own_resolver_is_checked_too() -> None:
    async with serving(hello, "127.0.0.1") as inner, HttpClient() as client:
        with pytest.raises(AddressRefused) as refusal:
            await client.fetch(get(inner.url(host="localhost")))
        assert refusal.value.rule == "loopback"
        with pytest.raises(AddressRefused) as refusal:
            await client.fetch(get("http://no-such-name.invalid/"))
        assert refusal.value.rule == "unresolved"
        assert inner.seen == []


def test_the_socket_itself_refuses_what_nobody_checked() -> None:
    for address, allow_private in (("127.0.0.1", False), (METADATA, True)):
        with pytest.raises(AddressRefused):
            Dial(allow_private)((socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80)))


async def test_a_packed_bomb_is_cut_at_the_limit_without_being_unpacked() -> None:
    bomb = gzip.compress(bytes(32_000_000))
    squeezed = zlib.compress(bytes(32_000_000))
    assert len(bomb) < 100_000

    async def handler(request: web.BaseRequest) -> web.Response:
        kind = request.path[1:]
        body = {"gzip": bomb, "deflate": squeezed}[kind]
        return web.Response(body=body, headers={"Content-Encoding": kind})

    async with serving(handler) as server:
        for kind in ("gzip", "deflate"):
            tracemalloc.start()
            try:
                answer = await fetch(get(server.url(f"/{kind}"), limit=1_000_000))
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert (answer.truncated, len(answer.body)) == (True, 1_000_000)
            assert peak < 8_000_000


async def test_a_body_over_the_limit_is_cut_and_the_rest_is_not_read() -> None:
    sent = 0
    stopped = anyio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while sent < 64_000_000:
                await answer.write(bytes(100_000))
                sent += 100_000
        finally:
            stopped.set()
        return answer

    async with serving(endless) as server:
        answer = await fetch(get(server.url(), limit=250_000))
        with anyio.fail_after(30):
            await stopped.wait()
    assert (answer.truncated, answer.body) == (True, bytes(250_000))
    assert sent < 32_000_000


async def test_a_body_of_exactly_the_limit_is_whole() -> None:
    async def handler(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with serving(handler) as server:
        assert not (await fetch(get(server.url(), limit=1000))).truncated
        assert (await fetch(get(server.url(), limit=999))).truncated


async def test_the_deadline_covers_silence_a_dribble_a_redirect_and_the_resolver() -> None:
    never = anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/silence":
            await never.wait()
        if request.path == "/redirect":
            return web.Response(status=302, headers={"Location": "/silence"})
        answer = web.StreamResponse()
        await answer.prepare(request)
        while not never.is_set():
            await answer.write(b"x")
            with anyio.move_on_after(0.01):
                await never.wait()
        return answer

    async def no_answer(host: str, port: int) -> Sequence[str]:
        await never.wait()
        return [host, str(port)]

    async with serving(handler) as server:
        with anyio.fail_after(30):
            for path in ("/silence", "/dribble", "/redirect"):
                with pytest.raises(CallTimedOut):
                    await fetch(get(server.url(path), timeout=0.2))
            async with HttpClient(resolve=no_answer) as client:
                with pytest.raises(CallTimedOut):
                    await client.fetch(get("http://example.com/", timeout=0.2))


@asynccontextmanager
async def saying(data: bytes) -> AsyncGenerator[str]:
    """Serve these bytes to whoever connects, and close."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, PUBLIC, 0)
    async with server:
        yield f"http://{PUBLIC}:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not http\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope",
    ],
)
async def test_what_is_not_a_bounded_answer_in_http_fails(data: bytes) -> None:
    async with saying(data) as url:
        with anyio.fail_after(30), pytest.raises(FetchFailed) as failed:
            await fetch(get(url))
    assert failed.value.code == "fetch_failed"


async def test_a_server_that_does_not_listen_fails_by_name() -> None:
    with pytest.raises(FetchFailed, match=PUBLIC):
        await fetch(get(f"http://{PUBLIC}:9/"))


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("get", {}),
        ("GET / HTTP/1.1\r\nX:", {}),
        ("GET", {"Host": "other.example"}),
        ("GET", {"content-length": "5"}),
        ("GET", {"Transfer-Encoding": "chunked"}),
        ("GET", {"Proxy-Authorization": "x"}),
        ("GET", {"X": "a\r\nY: b"}),
        ("GET", {"X Y": "a"}),
        ("GET", {"X": "a\0"}),
    ],
)
async def test_a_request_that_could_smuggle_another_is_not_sent(
    method: str, headers: dict[str, str]
) -> None:
    async with serving(hello) as server:
        with pytest.raises(FetchFailed):
            await fetch(get(server.url(), method=method, headers=headers))
        assert server.seen == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(hello, "127.0.0.1") as proxy, serving(hello) as server:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        assert (await fetch(get(server.url()))).status == 200
        assert (len(proxy.seen), len(server.seen)) == (0, 1)


async def test_cookies_are_not_kept() -> None:
    async def setting(_: web.BaseRequest) -> web.Response:
        return web.Response(headers={"Set-Cookie": "a=b; Path=/"})

    async with serving(setting) as server, HttpClient(resolve=Names({})) as client:
        for _ in range(2):
            await client.fetch(get(server.url()))
    assert all("Cookie" not in request.headers for request in server.seen)
    assert all(request.headers["User-Agent"].startswith("OpenFang/") for request in server.seen)


async def test_a_large_body_is_sent_whole() -> None:
    async def count(request: web.BaseRequest) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    async with serving(count) as server:
        answer = await fetch(get(server.url(), method="PUT", body=bytes(900_000)))
    assert answer.body == b"900000"


async def streamed(request: Request, names: Names | None = None) -> tuple[int, bytes]:
    async with HttpClient(resolve=names or Names({})) as client, client.stream(request) as answer:
        return answer.status, await answer.whole(1_000_000)


async def test_a_stream_is_held_to_the_same_addresses() -> None:
    names = Names({"example.com": [[PUBLIC], [METADATA]], "inner.example": [["127.0.0.1"]]})
    async with serving(hello) as server, serving(hello, METADATA) as metadata:
        url = server.url(host="example.com")
        assert await streamed(get(url), names) == (200, b"hello /")
        for request in (
            get(metadata.url(host="example.com"), allow_private=True),
            get(metadata.url(), allow_private=True),
            get(server.url(host="inner.example")),
            get("http://metadata.google.internal/"),
            get(url, allow_hosts=("other.example",)),
        ):
            with pytest.raises(AddressRefused):
                await streamed(request, names)
        async with serving(redirect(metadata.url()), "127.0.0.1") as moving:
            with pytest.raises(AddressRefused):
                await streamed(get(moving.url(), allow_private=True))
        assert metadata.seen == []


async def test_a_stream_follows_no_redirect_that_would_change_the_request() -> None:
    async with serving(hello) as other:
        for status in (301, 302, 303):
            async with serving(redirect(other.url(), status)) as server:
                with pytest.raises(FetchFailed):
                    await streamed(get(server.url(), method="POST", body=b"x"))
        async with serving(redirect(other.url(), 308)) as server:
            with pytest.raises(AddressRefused):
                await streamed(get(server.url(), method="POST", body=b"x"))
        assert other.seen == []
    async with serving(redirect("{path}/")) as server:
        with pytest.raises(FetchFailed):
            await streamed(get(server.url()))


async def test_to_leave_a_stream_is_to_hang_up() -> None:
    stopped = anyio.Event()

    async def dribble(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"X-Twice": "a"})
        answer.headers.add("X-Twice", "b")
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"x" * 1000)
                await asyncio.sleep(0.01)
        finally:
            stopped.set()

    async with serving(dribble) as server, HttpClient(resolve=Names({})) as client:
        async with client.stream(get(server.url())) as answer:
            assert (await answer.some()).startswith(b"x")
            assert list(answer.headers("x-twice")) == ["a", "b"]
            assert (answer.header("x-twice"), answer.header("x-none")) == ("a", None)
        with anyio.fail_after(30):
            await stopped.wait()
        stopped = anyio.Event()
        with pytest.raises(FetchFailed, match="5000 bytes"):
            async with client.stream(get(server.url())) as answer:
                await answer.whole(5000)


async def test_a_stream_that_was_read_to_its_end_gives_its_connection_back() -> None:
    async def peer(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        return web.Response(text=str(request.transport.get_extra_info("peername")))

    seen: set[bytes] = set()
    async with serving(peer) as server, HttpClient(resolve=Names({})) as client:
        for _ in range(2):
            async with client.stream(get(server.url())) as answer:
                seen.add(await answer.whole(1000))
    assert len(seen) == 1


async def test_a_stream_that_breaks_off_fails() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"
    async with saying(cut) as url:
        with anyio.fail_after(30), pytest.raises(FetchFailed):
            await streamed(get(url))


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A certificate for `pinned.example`, as its server and as its client see it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pinned.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("pinned.example")]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "both.pem").write_bytes(pem + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


async def test_tls_speaks_to_the_name_and_not_to_the_pinned_address(
    certificates: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    theirs, ours = certificates
    asked: list[str | None] = []

    def note(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        asked.append(name)

    theirs.sni_callback = note
    names = Names({"pinned.example": [[PUBLIC]], "other.example": [[PUBLIC]]})
    async with serving(hello, tls=theirs) as server, HttpClient(resolve=names, tls=ours) as client:
        url = server.url(host="pinned.example").replace("http:", "https:")
        assert (await client.fetch(get(url))).status == 200
        assert asked == ["pinned.example"]
        assert server.seen[0].headers["Host"] == f"pinned.example:{server.port}"
        with pytest.raises(FetchFailed):
            await client.fetch(get(url.replace("pinned", "other")))
    async with serving(hello, tls=theirs) as server, HttpClient(resolve=names) as client:
        with pytest.raises(FetchFailed):
            await client.fetch(get(server.url(host="pinned.example").replace("http:", "https:")))
        assert server.seen == []
