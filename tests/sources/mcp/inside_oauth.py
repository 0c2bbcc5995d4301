"""Tests that `test_oauth.py` runs where there is no network but the loopback.

There, public, private and metadata addresses are really on the loopback device: what must not be
reached would answer, and would be seen.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.conformance.auth import Agreeable, Memory
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC
from tests.sources.mcp.conftest import US, Ear
from tests.sources.mcp.peers.authority import Authority, Protected, authority
from tests.sources.mcp.peers.web import Modern, serving

from openfang.sources.mcp.oauth.sign_in import SignIns
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.spec import Http, ServerSpec
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C3.9")


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


async def problem(url: str, *, allow_private: bool) -> str:
    sign_ins = SignIns(vault=Memory(), consent=Agreeable())
    reach = Reach(client=US, capabilities={}, complained=print, sign_ins=sign_ins)
    reached = Http(url=url, allow_private=allow_private)
    with anyio.fail_after(60), pytest.raises(Lost) as lost:
        async with reach(ServerSpec(name="guarded", reached=reached), Ear()):
            pass
    return lost.value.reason


@asynccontextmanager
async def watched(address: str) -> AsyncGenerator[tuple[str, Modern]]:
    """A server that nobody should reach."""
    trap = Modern()
    async with serving(trap, address) as url:
        yield url, trap
    assert trap.seen == []


@pytest.mark.parametrize(
    ("address", "allow_private"), [(METADATA, False), (METADATA, True), (PRIVATE, False)]
)
async def test_metadata_at_a_refused_address_are_not_asked_for(
    address: str, *, allow_private: bool
) -> None:
    peer = Protected(Authority())
    async with watched(address) as (trap, _), serving(peer, PUBLIC) as url:
        peer.metadata_url = trap
        reason = await problem(url, allow_private=allow_private)
    assert address in reason
    assert "refused range" in reason
    assert ("allow_private" in reason) is (address == PRIVATE)


@pytest.mark.parametrize("place", ["registration_endpoint", "token_endpoint"])
async def test_no_code_and_no_client_reach_a_refused_address(place: str) -> None:
    with authority() as mind:
        async with watched(METADATA) as (trap, _), serving(Protected(mind)) as url:
            mind.metadata[place] = trap
            reason = await problem(url, allow_private=True)
    assert METADATA in reason
    assert mind.tokens == []


async def test_no_browser_is_sent_to_a_refused_address() -> None:
    with authority() as mind:
        async with watched(METADATA) as (trap, _), serving(Protected(mind)) as url:
            mind.metadata["authorization_endpoint"] = trap
            reason = await problem(url, allow_private=True)
    assert METADATA in reason


async def test_nothing_is_asked_without_encryption_on_the_internet() -> None:
    with authority(PUBLIC) as mind:
        async with serving(Protected(mind), PUBLIC) as url:
            reason = await problem(url, allow_private=False)
    assert "is not https" in reason
    assert mind.asked == []
