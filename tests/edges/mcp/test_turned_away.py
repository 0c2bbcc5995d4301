"""What a key has open ends with the key, over a real socket; what a token began does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.issuer import AUDIENCE, issuer
from tests.edges.live import live
from tests.edges.mcp.talking import (
    META,
    Stream,
    edge_of,
    greet,
    modern_headers,
    request,
    until,
)
from tests.edges.mcp.teller import Teller

from openfang.edges.mcp.context import Talk
from openfang.edges.mcp.ports import Place
from openfang.edges.mcp.sessions import Sessions
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C4.4", "C18.1")

TRUSTED = '[auth.issuer]\nurl = "{url}"\naudience = "{audience}"\nallow_private = true\n'
TOKEN: dict[str, Any] = {"progressToken": "p"}
WAIT: dict[str, Any] = {"name": "mcp_teller_tell_and_wait", "arguments": {}}
LISTENING: dict[str, Any] = {"_meta": META, "notifications": {"toolsListChanged": True}}


@pytest.fixture
def teller() -> Teller:
    return Teller()


@pytest.fixture
async def node(tmp_path: Path, teller: Teller) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", sources=[teller]) as running:
        yield running


async def revoke_and_change(node: Live, teller: Teller) -> None:
    """End the key `brief`, and at once change what it listened for."""
    assert (await node.ask("DELETE", "/api/keys/brief")).status == 200
    teller.put_another()
    node.app.add(teller)


async def test_a_session_is_told_nothing_more_and_ends_with_its_key(
    node: Live, teller: Teller
) -> None:
    session = await greet(node, key=await node.key("brief"))
    idle = await greet(node, key=session.key)
    other = await greet(node)
    asking = {**WAIT, "_meta": TOKEN}
    async with (
        session.listening() as standing,
        session.asking("tools/call", asking) as asked,
    ):
        await teller.begun.wait()
        await revoke_and_change(node, teller)
        with anyio.fail_after(30):
            assert await standing.rest() == []
            assert (await asked.rest())[-1]["error"]["code"] == -32603
            await teller.cancelled.wait()
            await until(lambda: len(edge_of(node).sessions) == 1)
    assert (await idle.post(request("ping"))).status == 401
    assert (await other.ask("ping"))["result"] == {}


async def test_a_subscription_is_told_nothing_more_and_ends_with_its_key(
    node: Live, teller: Teller
) -> None:
    headers = node.headers(
        await node.key("brief"), modern_headers("subscriptions/listen", LISTENING)
    )
    body = request("subscriptions/listen", LISTENING)
    async with node.web.post(node.at("/mcp"), json=body, headers=headers) as response:
        stream = Stream(response)
        await stream.message()
        await revoke_and_change(node, teller)
        with anyio.fail_after(30):
            (last,) = await stream.rest()
    assert last["result"]["resultType"] == "complete"


@pytest.mark.parametrize("era", ["modern", "plain"])
async def test_a_request_that_stands_alone_is_cancelled_with_its_key(
    node: Live, teller: Teller, era: str
) -> None:
    params: dict[str, Any] = {**WAIT, "_meta": META} if era == "modern" else WAIT
    said = modern_headers("tools/call", params) if era == "modern" else {}
    headers = node.headers(await node.key("brief"), said)
    answers: list[Any] = []

    async def ask() -> None:
        body = request("tools/call", params)
        async with node.web.post(node.at("/mcp"), json=body, headers=headers) as response:
            answers.append(await response.json())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await teller.begun.wait()
            await revoke_and_change(node, teller)
        await teller.cancelled.wait()
    assert answers[0]["error"]["code"] == -32603
    assert len(edge_of(node).staying) == 0


def test_a_session_whose_key_has_ended_is_over_though_it_was_just_used() -> None:
    sessions = Sessions(ManualClock())
    sessions.open("key:a", Place(), Talk())
    ended = sessions.open("key:b", Place(), Talk(), lambda: False)
    assert sessions.expired() == [ended]


async def test_a_session_goes_on_with_the_token_that_takes_the_place_of_one_that_expired(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    with issuer() as mint:
        config = TRUSTED.format(url=mint.url, audience=AUDIENCE)
        async with live(tmp_path / "home", config=config, clock=clock) as node:
            now = clock.time_ns() // 1_000_000_000
            session = await greet(node, key=mint.sign(iat=now, exp=now + 60))
            clock.advance(600)
            assert (await session.post(request("ping"))).status == 401
            await edge_of(node).sweep()
            session.key = mint.sign(iat=now + 600, exp=now + 660)
            assert (await session.ask("ping"))["result"] == {}
