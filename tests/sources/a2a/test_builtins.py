"""`a2a_discover` and `a2a_send`: by their effect, their refusal and bad input."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import web
from tests.app.a2a.test_peers import Person, config, entry
from tests.sources.a2a.sdk_peer import sdk_peer
from tests.sources.a2a.web_peers import SeedPeer, modern_card, serving

from openfang.core.calls import Caller, Grants
from openfang.core.errors import InvalidArguments, PolicyViolation
from openfang.core.labels import Labels
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.2", "C5.8")
PRIVATE = "[tools.web_fetch]\nallow_private = true\n"


@asynccontextmanager
async def offered(folder: Path, text: str = "") -> AsyncGenerator[OpenApp]:
    with anyio.fail_after(30):
        async with open_test_app(folder, config=PRIVATE + (text or config())) as app:
            yield app


def bounded(app: OpenApp, host: str) -> Caller:
    return replace(app.caller, grants=Grants(tools=("builtin:a2a_*",), network=(host,)))


async def test_a_card_is_read_and_shown(tmp_path: Path) -> None:
    async with sdk_peer() as peer, offered(tmp_path) as app:
        result = await app.call("a2a_discover", url=peer.url)
    assert "Echo agent" in result.text
    assert "Echo: Says it again" in result.text
    assert result.structured["skills"][0]["id"] == "echo"
    assert result.labels & Labels.UNTRUSTED_AGENT


async def test_a_message_reaches_an_agent_by_its_address(tmp_path: Path) -> None:
    async with sdk_peer() as peer, serving(SeedPeer()) as old, offered(tmp_path) as app:
        result = await app.call("a2a_send", url=peer.url, message="hello")
        other = await app.call("a2a_send", url=f"{old}/a2a", message="hello")
        asked = await app.call("a2a_send", url=peer.url, message="ask")
        task, context = asked.structured["task"], asked.structured["context"]
        answered = await app.call(
            "a2a_send", url=peer.url, message="red", task=task, context=context
        )
    assert (result.text, other.text) == ("You said hello", "HELLO")
    assert result.labels & Labels.EXTERNAL_NETWORK
    assert "Which colour?" in asked.text
    assert answered.text == "so it is red"


async def test_a_message_reaches_a_peer_by_its_name_with_the_grant_for_that(
    tmp_path: Path,
) -> None:
    async with sdk_peer() as peer, offered(tmp_path, config(entry("echo", peer.url))) as app:
        result = await app.call("a2a_send", peer="echo", message="hello")
        call = app.make("a2a_send", {"peer": "echo", "message": "hello"}, caller=bounded(app, "*"))
        refused = await app.invoke(call)
    assert result.text == "You said hello"
    assert (refused.is_error, "Unknown tool: a2a:echo" in refused.text) == (True, True)
    assert len(peer.agent.heard) == 1


async def test_one_that_is_slow_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    released = anyio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        del request
        await released.wait()
        return web.Response(status=503)

    async with sdk_peer() as peer, serving(slow) as url:
        text = config(entry("echo", peer.url), entry("slow", url))
        async with offered(tmp_path, text) as app:
            with anyio.fail_after(30):
                result = await app.call("a2a_send", peer="echo", message="hello")
            released.set()
    assert result.text == "You said hello"


async def test_one_that_was_never_reached_says_so_to_who_may_call_it(tmp_path: Path) -> None:
    async with offered(tmp_path, config(entry("gone", "http://127.0.0.1:9"))) as app:
        failed = await app.call("a2a_send", peer="gone", message="hello")
        arguments = {"peer": "gone", "message": "hello"}
        hidden = await app.invoke(app.make("a2a_send", arguments, caller=bounded(app, "*")))
    assert "The agent gone was not reached yet: " in failed.text
    assert "127.0.0.1:9" in failed.text
    assert "Unknown tool: a2a:gone" in hidden.text


@pytest.mark.requirement("C1.6")
async def test_a_stranger_asks_in_the_name_of_its_address(tmp_path: Path) -> None:
    person = Person({"action": "accept", "content": {"answer": "blue"}})
    async with sdk_peer() as peer, offered(tmp_path) as app:
        peer.card |= {"name": "bank"}  # a peer may be called so here
        call = app.make("a2a_send", {"url": peer.url, "message": "ask"}, client=person)
        assert (await app.invoke(call)).text == "so it is blue"
        asked = [one.context for one in await app.events() if "client:" in str(one.context)]
    assert {one["caller"] for one in asked if "caller" in one} == {f"a2a:{peer.url}"}


NO_PARTS = (
    {"foo": 1},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "file", "name": "a"},
    {"type": "file", "name": "a", "data": "!!! no base64"},
    {"type": "file", "name": "a", "data": "AAE"},
)


async def test_parts_that_make_no_sense_are_not_sent(tmp_path: Path) -> None:
    async with sdk_peer() as peer, offered(tmp_path, config(entry("echo", peer.url))) as app:
        await app.call("a2a_send", peer="echo", message="hello")
        for part in NO_PARTS:
            with pytest.raises(InvalidArguments, match=r"parts\[0\]"):
                await app.call("a2a:echo", parts=[part])
        good = [{"type": "data", "data": {"n": 1}}, {"type": "file", "name": "a", "data": "AAE="}]
        await app.call("a2a:echo", message="hello", parts=good)
    assert len(peer.agent.heard) == 2


async def test_an_address_that_is_not_granted_is_not_asked(tmp_path: Path) -> None:
    async with sdk_peer() as peer, offered(tmp_path) as app:
        for tool, more in (("a2a_discover", {}), ("a2a_send", {"message": "hello"})):
            caller = bounded(app, "example.com")
            call = app.make(tool, {"url": peer.url, **more}, caller=caller)
            with pytest.raises(PolicyViolation, match="network grants"):
                await app.invoke(call)
    assert peer.hits == []


async def test_a_card_leads_nobody_beyond_the_grants(tmp_path: Path) -> None:
    async with sdk_peer() as trap, sdk_peer() as peer, offered(tmp_path) as app:
        peer.card = modern_card(peer.url, where=f"{trap.url}/rpc".replace("127.0.0.1", "localhost"))
        caller = bounded(app, "127.0.0.1")
        call = app.make("a2a_send", {"url": peer.url, "message": "hello"}, caller=caller)
        result = await app.invoke(call)
    assert result.is_error
    assert "granted" in result.text
    assert trap.agent.headers == []


async def test_a_private_address_is_refused_without_the_switch(tmp_path: Path) -> None:
    async with sdk_peer() as peer, open_test_app(tmp_path, config=config()) as app:
        result = await app.call("a2a_discover", url=peer.url)
    assert result.is_error
    assert "allow_private" in result.text
    assert peer.hits == []


@pytest.mark.requirement("C2.5")
async def test_both_are_disabled_while_a2a_is(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        for tool, more in (("a2a_discover", {}), ("a2a_send", {"message": "x"})):
            with pytest.raises(PolicyViolation, match="Tool is disabled"):
                await app.call(tool, url="http://127.0.0.1:1", **more)


async def test_bad_input_is_told_in_words(tmp_path: Path) -> None:
    async with offered(tmp_path) as app:
        with pytest.raises(InvalidArguments):
            await app.call("a2a_discover")
        nobody = await app.call("a2a_send", message="x")
        nowhere = await app.call("a2a_discover", url="ftp://x")
        away = await app.call("a2a_discover", url="http://127.0.0.1:1")
    assert "either the url" in nobody.text
    assert "not an http or https URL" in nowhere.text
    assert (away.is_error, "127.0.0.1:1" in away.text) == (True, True)
