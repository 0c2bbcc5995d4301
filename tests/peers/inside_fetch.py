"""Tests of `mcp-server-fetch` that `test_fetch.py` runs where there is no network but the loopback.

There a public address, a private one and the metadata address are really on the loopback device:
what must be reached answers, what must not be reached would answer too, and would be seen.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC
from tests.host.proxied import serving
from tests.peers import servers
from tests.peers.conftest import Node, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.host.proxied import Server

pytestmark = pytest.mark.requirement("C3.9", "C16.2")
PAGE = b"<html><head><title>A page</title></head><body><h1>Figs</h1><p>They are ripe.</p></body>"


@pytest.fixture(autouse=True, scope="module")
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page, and nothing that forbids robots to read it."""
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
    status, body = (404, b"") if path.endswith(b"/robots.txt") else (200, PAGE)
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)


class Names(asyncio.DatagramProtocol):
    """A name server that knows one name; `resolv.conf` leads here. No sandbox reaches it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        question = data[12 : data.index(b"\0", 12) + 5]
        known = question == NAME + b"\0\0\1\0\1"
        counts = (1).to_bytes(2) + known.to_bytes(2) + bytes(4)
        answer = b"\xc0\x0c\0\1\0\1" + bytes(4) + b"\0\4" + socket.inet_aton(PUBLIC)
        said = data[:2] + b"\x81\x80" + counts + question + (answer if known else b"")
        self.transport.sendto(said, addr)


NAME = b"\4figs\7example"


@pytest.fixture(scope="module")
async def _names() -> AsyncGenerator[None]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Names, ("127.0.0.1", 53))
    yield
    transport.close()


@pytest.fixture(scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Node]:
    kept = servers.fetch("fetch", "--allow-private-ips", sandbox="required")
    free = servers.fetch("free", "--allow-private-ips", sandbox="required", allow_private=True)
    async with running(tmp_path_factory.mktemp("node"), kept, free) as opened:
        yield opened


async def told(node: Node, name: str, there: Server, host: str = "") -> tuple[bool, str]:
    """Fetch a page, and give what came of it."""
    result = await node.act(f"{name}:fetch", url=there.url(host, "/figs"))
    return result.is_error, result.text


async def test_it_speaks_the_newest_revision(node: Node) -> None:
    assert [node.source(name).version for name in ("fetch", "free")] == [servers.MODERN] * 2
    names = [tool.name for tool in node.source("fetch").tools()]
    assert names == ["fetch", "resources/read", "prompts/get"]


@pytest.mark.usefixtures("_names")
@pytest.mark.parametrize("host", [PUBLIC, "figs.example"])
async def test_a_page_of_the_world_is_fetched_through_the_egress(node: Node, host: str) -> None:
    """Only we can find out what a name stands for, and only we go there."""
    async with serving(site, PUBLIC) as there:
        failed, text = await told(node, "fetch", there, host)
        assert (failed, "They are ripe." in text) == (False, True), text
        assert there.visitors == 2, "once for its robots.txt, once for the page"


@pytest.mark.parametrize("address", ["127.0.0.1", PRIVATE])
async def test_an_address_of_the_inside_needs_the_operators_word(node: Node, address: str) -> None:
    async with serving(site, address) as there:
        failed, text = await told(node, "fetch", there)
        assert failed, text
        assert there.visitors == 0
        failed, text = await told(node, "free", there)
        assert (failed, "They are ripe." in text) == (False, True), text
        assert there.visitors == 2


async def test_metadata_is_nobodys(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(site, METADATA) as there:
        for name in ("fetch", "free"):
            failed, text = await told(node, name, there)
            assert failed, text
        assert there.visitors == 0
    assert f"free was kept from {METADATA}: metadata" in caplog.text
