"""Tests that `test_addresses.py` runs where there is no network but the loopback.

There, public, private and metadata addresses are really on the loopback device: what must not be
reached would answer, and would be seen.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import web
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC
from tests.sources.a2a.speaking import message, speaking, wired
from tests.sources.a2a.web_peers import modern_card, own_url, scripted, serving, task_json

from openfang.core.errors import SourceFailed
from openfang.core.tasks import TaskState
from openfang.sources.a2a.discover import discover

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C3.9", "C5.8")


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


@asynccontextmanager
async def watched(address: str) -> AsyncGenerator[str]:
    """A server that nobody should reach."""
    seen: list[str] = []

    async def trap(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.path)
        return web.json_response(modern_card(own_url(request)))

    async with serving(trap, address) as url:
        yield url
    assert seen == []


async def nobody(request: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError(request.path)


async def done(request: web.BaseRequest) -> web.StreamResponse:
    result = {"task": task_json("COMPLETED", history=[])}
    body = await request.json()
    if body["method"] == "GetTask":
        result = task_json("COMPLETED")
    return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})


@pytest.mark.parametrize(
    ("address", "allow_private"),
    [(METADATA, False), (METADATA, True), (PRIVATE, False), ("127.0.0.1", False)],
)
async def test_a_card_is_not_read_from_a_refused_address(
    address: str, *, allow_private: bool
) -> None:
    with anyio.fail_after(20):
        async with watched(address) as url, wired(url, allow_private=allow_private) as wire:
            with pytest.raises(SourceFailed, match="refused range"):
                await discover(wire)


@pytest.mark.parametrize(
    ("address", "allow_private"),
    [(METADATA, False), (METADATA, True), (PRIVATE, False), ("127.0.0.1", False)],
)
async def test_a_card_leads_no_message_to_a_refused_address(
    address: str, *, allow_private: bool
) -> None:
    with anyio.fail_after(20):
        async with watched(address) as trap, serving(scripted(nobody, where=trap), PUBLIC) as url:
            with pytest.raises(SourceFailed, match="refused range"):
                async with speaking(url, allow_private=allow_private):
                    pass


async def test_a_card_leads_to_another_host_by_https_only() -> None:
    other = "93.184.215.15"
    with anyio.fail_after(20):
        where = f"http://{other}:1/rpc"
        async with serving(scripted(nobody, where=where), PUBLIC) as url:
            with pytest.raises(SourceFailed, match="https"):
                async with speaking(url, allow_private=False):
                    pass


async def test_a_name_of_a_metadata_service_is_refused_before_it_is_looked_up() -> None:
    where = "https://metadata.google.internal/rpc"
    with anyio.fail_after(20):
        async with serving(scripted(nobody, where=where), PUBLIC) as url:
            with pytest.raises(SourceFailed, match="metadata service"):
                async with speaking(url, allow_private=True):
                    pass


async def test_a_public_peer_is_reached_without_any_switch() -> None:
    with anyio.fail_after(20):
        async with (
            serving(scripted(done), PUBLIC) as url,
            speaking(url, allow_private=False) as client,
        ):
            task = await client.send(message("hello"))
    assert task.state is TaskState.COMPLETED


async def test_a_peer_is_not_led_to_hosts_beyond_the_grants() -> None:
    with anyio.fail_after(20):
        async with watched(PRIVATE) as trap, serving(scripted(nobody, where=trap), PUBLIC) as url:
            with pytest.raises(SourceFailed, match="granted"):
                async with speaking(url, hosts=(PUBLIC,)):
                    pass
