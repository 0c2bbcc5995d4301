"""From where a request may come: names and pages of the node; and headers that are sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.live import live

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C12.2")

OURS = ["localhost", "LOCALHOST", "localhost:1", "127.0.0.1", "127.0.0.1:50051", "[::1]", "[::1]:8"]
FOREIGN = [
    "rebound.example",
    "localhost.rebound.example",
    "127.0.0.1.nip.example",
    "localhost.",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0.0.0.0",  # noqa: S104 - a name that is refused
    "192.168.0.1",
    "[::]",
    "[::ffff:127.0.0.1]",
    "::1",
    "[::1",
    "user@localhost",
    "user:password@localhost",
    "localhost@rebound.example",
    "localhost:99999",
    "localhost:x",
    "localhost:-1",
    "localhost:80:80",
    "localhost,rebound.example",
    "localhost rebound.example",
    "localhost/rebound.example",
    "localhost\\rebound.example",
    "localhost?",
    "localhost#",
    "localh\xf6st",
    "*",
    "",
]


async def status_of(node: Live, host: str, *headers: str, path: str = "/api/version") -> int:
    client = await node.client()
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {node.admin}"]
    request = "\r\n".join([*lines, *headers, "", ""]).encode("latin-1")
    return (await client.ask(request)).status


async def test_only_names_of_the_node_are_served(node: Live) -> None:
    assert {host: await status_of(node, host) for host in OURS} == dict.fromkeys(OURS, 200)
    told = {host: await status_of(node, host) for host in FOREIGN}
    assert told == dict.fromkeys(FOREIGN, 421)


async def test_a_foreign_name_gets_nothing_not_even_what_is_public(node: Live) -> None:
    assert await status_of(node, "rebound.example", path="/api/health") == 421
    reply = await (await node.client()).ask(
        node.request("GET", "/api/status", host="rebound.example")
    )
    assert reply.problem["rule"] == "host"
    assert "public_url" in reply.problem["way_out"]


async def test_a_request_without_a_host_is_refused(node: Live) -> None:
    for version, rule in (("1.0", "host"), ("1.1", "bad_request")):
        request = f"GET /api/health HTTP/{version}\r\n\r\n".encode()
        reply = await (await node.client()).ask(request)
        assert (reply.status, reply.problem["rule"]) == (400, rule)


async def test_the_absolute_form_names_the_same_host(node: Live) -> None:
    for target, status in (("http://localhost/api/health", 200), ("http://evil/api/health", 400)):
        reply = await (await node.client()).ask(node.request("GET", target))
        assert (target, reply.status) == (target, status)


async def test_pages_of_the_node_may_use_it_and_no_others(node: Live) -> None:
    port = node.address[1]
    ours = [
        f"http://localhost:{port}",
        f"http://127.0.0.1:{port}",
        f"http://[::1]:{port}",
        f"HTTP://LocalHost:{port}",
    ]
    foreign = [
        "null",
        "",
        "*",
        "http://rebound.example",
        f"http://rebound.example:{port}",
        f"https://localhost:{port}",
        "http://localhost",
        f"http://localhost:{port + 1}",
        f"http://localhost:{port}.rebound.example",
        f"http://localhost.:{port}",
        f"http://localhost:{port}@rebound.example",
        f"http://user@localhost:{port}",
        f"http://localhost:{port}/",
        f"http://localhost:{port}/page",
        f"http://localhost:{port}?x",
        f"http://localhost:{port} http://rebound.example",
        f"localhost:{port}",
        f"//localhost:{port}",
        f"ws://localhost:{port}",
        "file://",
        "chrome-extension://abcdefgh",
        f"http://localh\xf6st:{port}",
    ]
    for origins, status in ((ours, 200), (foreign, 403)):
        told = {
            origin: await status_of(node, "localhost", f"Origin: {origin}") for origin in origins
        }
        assert told == dict.fromkeys(origins, status)


async def test_a_page_that_has_the_key_is_still_a_foreign_page(node: Live) -> None:
    headers = {"Origin": "http://rebound.example"}
    reply = await node.post("/api/keys", {"name": "stolen"}, headers=headers)
    assert reply.told == (403, "origin")
    assert "Access-Control-Allow-Origin" not in reply.headers
    names = [key["name"] for key in (await node.get("/api/keys")).json["keys"]]
    assert names == ["admin"]


@pytest.mark.parametrize(
    ("public_url", "origins"),
    [
        ("https://fang.example", {"https://fang.example": 200, "http://fang.example": 403}),
        ("https://fang.example:443/base", {"https://fang.example": 200}),
        ("http://Fang.example:80", {"http://fang.example": 200, "https://fang.example": 403}),
        (
            "https://fang.example:8443",
            {"https://fang.example:8443": 200, "https://fang.example": 403},
        ),
    ],
)
async def test_the_public_address_is_a_name_and_a_page_of_the_node(
    tmp_path: Path, public_url: str, origins: dict[str, int]
) -> None:
    config = f'public_url = "{public_url}"\n'
    async with live(tmp_path / "home", config=config) as node:
        for host in ("fang.example", "fang.example:8443", "FANG.EXAMPLE", "localhost"):
            assert await status_of(node, host) == 200
        assert await status_of(node, "other.example") == 421
        for origin, status in origins.items():
            told = await status_of(node, "fang.example", f"Origin: {origin}")
            assert (origin, told) == (origin, status)


async def test_on_the_other_loopback_address_too(tmp_path: Path) -> None:
    async with live(tmp_path / "home", host="::1", config='api_listen = "[::1]:0"\n') as node:
        assert await status_of(node, f"[::1]:{node.address[1]}") == 200
        assert await status_of(node, "[::2]") == 421


SURE = [
    "Authorization: Bearer of_other",
    "X-Api-Key: of_other",
    "X-Admin-Token: oft_other",
    "Origin: null",
    "Content-Type: text/plain",
    "Content-Encoding: identity",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "X-OpenStarry-Trace-ID: a",
    "OpenFang-Chain: a",
    "Last-Event-ID: 1",
    "Prefer: wait=1",
]


async def test_a_header_that_must_be_sure_is_refused_twice(node: Live) -> None:
    for header in SURE:
        doubled = [header] if header.startswith("Authorization") else [header, header]
        reply = await (await node.client()).ask(node.request("GET", "/api/version", *doubled))
        assert (header, reply.status) == (header, 400)
        assert reply.problem["rule"] == "doubled_header"


async def test_two_hosts_are_no_host(node: Live) -> None:
    request = node.request("GET", "/api/version", "Host: rebound.example")
    reply = await (await node.client()).ask(request)
    assert (reply.status, reply.problem["rule"]) == (400, "bad_request")


async def test_other_headers_may_come_twice(node: Live) -> None:
    request = node.request("GET", "/api/version", "Accept: a/b", "Accept: c/d", "Via: x", "Via: y")
    assert (await (await node.client()).ask(request)).status == 200


async def test_the_address_that_was_connected_to_needs_no_name(tmp_path: Path) -> None:
    async with live(tmp_path, host="127.0.0.2") as node:
        assert await status_of(node, "127.0.0.2") == 200
        assert await status_of(node, "127.0.0.3") == 421
