"""Agents that lie, flood, hang up and die: each harms nobody but itself, and is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import web
from tests.sources.a2a.speaking import Ear, message, speaking, wired
from tests.sources.a2a.web_peers import (
    Handler,
    answering,
    event,
    modern_card,
    own_url,
    scripted,
    serving,
    streaming,
    task_json,
)

from openfang.core.errors import SourceFailed
from openfang.core.tasks import TaskState
from openfang.sources.a2a.discover import discover

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.requirement("C5.8")
BIG = 11_000_000


async def failure(handler: Handler) -> str:
    """Say why no card was found."""
    with anyio.fail_after(20):
        async with serving(handler) as url, wired(url) as wire:
            with pytest.raises(SourceFailed) as failed:
                await discover(wire)
    return failed.value.message


async def sending(rpc: Handler, *, streams: bool = False) -> str:
    """Say why a message was not answered."""
    with anyio.fail_after(20):
        async with serving(scripted(rpc, streaming=streams)) as url, speaking(url) as client:
            with pytest.raises(SourceFailed) as failed:
                await client.send(message("hello"))
    return failed.value.message


CARDS = {
    "a page": ({"text": "<html>", "content_type": "text/html"}, "HTML"),
    "a page in disguise": ({"text": "<html>", "content_type": "application/json"}, "no JSON"),
    "a list": ({"text": "[]", "content_type": "application/json"}, "no JSON object"),
    "an error": ({"status": 500, "text": "{}", "content_type": "application/json"}, "status 500"),
    "too much": ({"body": b" " * BIG, "content_type": "application/json"}, "more than 1000000"),
    "too many": (
        {"body": b"[" + b"1," * 60_000 + b"1]", "content_type": "application/json"},
        "more than 50000 tokens",
    ),
    "a card of nobody": ({"text": '{"a": 1}', "content_type": "application/json"}, "no address"),
    "a locked door": ({"status": 401}, "wants credentials"),
}


@pytest.mark.parametrize("kind", CARDS)
async def test_what_is_no_card_is_told_in_words(kind: str) -> None:
    answer, why = CARDS[kind]
    assert why in await failure(answering(**answer))


async def test_a_card_that_is_too_deep_is_none() -> None:
    deep = '{"url": "http://x", "x": ' + "[" * 100 + "]" * 100 + "}"
    assert "deeper" in await failure(answering(text=deep, content_type="application/json"))


async def test_a_redirect_to_somebody_else_is_not_followed() -> None:
    seen: list[str] = []

    async def trap(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.path)
        return web.json_response(modern_card(own_url(request)))

    async with serving(trap) as there:
        moved = {"Location": f"{there}/.well-known/agent-card.json"}
        for why in (
            await failure(answering(status=302, headers=moved)),
            await sending(answering(status=307, headers=moved)),
        ):
            assert f"redirects to {there}/.well-known/agent-card.json" in why
            assert "which is not followed" in why
    assert seen == []


async def test_a_redirect_on_the_same_host_is_followed_with_what_was_sent() -> None:
    async def moving(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/rpc":
            return web.Response(status=308, headers={"Location": "/there"})
        body = await request.json()
        result = {"message": body["params"]["message"]}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})

    with anyio.fail_after(20):
        async with serving(scripted(moving)) as url, speaking(url) as client:
            assert (await client.send(message("hello"))).history[0].text == "hello"
    assert "not followed" in await sending(answering(status=303, headers={"Location": "/there"}))
    endless = answering(status=307, headers={"Location": "/rpc"})
    assert "more than 5 times" in await sending(endless)


ANSWERS = {
    "a page": ({"text": "<html>", "content_type": "text/html"}, "HTML"),
    "an error": ({"status": 500, "text": "oh"}, "status 500"),
    "an error in JSON": (
        {"status": 503, "text": "{}", "content_type": "application/json"},
        "503",
    ),
    "no JSON": ({"text": "{", "content_type": "application/json"}, "JSON"),
    "nothing": ({"text": "{}", "content_type": "application/json"}, "neither"),
    "a number": ({"text": '{"result": 7}', "content_type": "application/json"}, "wrongly"),
    "nonsense": (
        {"text": '{"result": {"task": {"id": [1]}}}', "content_type": "application/json"},
        "wrongly",
    ),
    "too much": ({"body": b" " * BIG, "content_type": "application/json"}, "more than 10000000"),
    "too many": (
        {"body": b"[" + b"1," * 60_000 + b"1]", "content_type": "application/json"},
        "more than 50000 tokens",
    ),
    "a locked door": ({"status": 403}, "wants credentials"),
    "an error of the protocol": (
        {
            "text": '{"error": {"code": -32005, "message": "no such kind"}}',
            "content_type": "application/json",
        },
        "no such kind",
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_what_is_no_answer_is_told_in_words(kind: str) -> None:
    answer, why = ANSWERS[kind]
    assert why in await sending(answering(**answer))


async def test_a_peer_that_says_nothing_has_its_time() -> None:
    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        del request
        await anyio.sleep_forever()
        raise AssertionError

    async with serving(silent) as url, wired(url) as wire:
        with pytest.raises(SourceFailed, match=r"did not answer within 0\.05 s"):
            await wire.ask("GET", url, {}, seconds=0.05)


async def test_a_stream_without_an_end_is_cut_when_it_is_too_much() -> None:
    sent = [0]

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = await streaming(request)
        await event(response, {"task": task_json("WORKING")})
        piece = {"artifactId": "a", "parts": [{"text": "x" * 500_000}]}
        update = {"taskId": "t-1", "contextId": "c-1", "artifact": piece, "append": True}
        while True:
            await event(response, {"artifactUpdate": update})
            sent[0] += 1

    assert "larger than 10000000 bytes" in await sending(endless, streams=True)
    assert sent[0] < 100


async def test_small_pieces_without_number_are_put_together_in_time() -> None:
    async def many(request: web.BaseRequest) -> web.StreamResponse:
        response = await streaming(request)
        await event(response, {"task": task_json("WORKING")})
        piece = {"artifactId": "a", "parts": [{"text": "ab"}]}
        update = {"taskId": "t-1", "contextId": "c-1", "artifact": piece, "append": True}
        for _ in range(3_000):
            await event(response, {"artifactUpdate": update})
        done = {"taskId": "t-1", "contextId": "c-1", "status": task_json("COMPLETED")["status"]}
        await event(response, {"statusUpdate": done})
        return response

    with anyio.fail_after(15):
        async with serving(scripted(many, streaming=True)) as url, speaking(url) as client:
            task = await client.send(message("hello"))
    assert task.artifacts[0].parts == ({"type": "text", "text": "ab" * 3_000},)


def dying(later: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> Handler:
    """Begin a stream, and hang up in the middle; whatever is asked then has another answer."""
    begun: list[bool] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if begun:
            return await later(request)
        begun.append(True)
        response = await streaming(request)
        await event(response, {"task": task_json("WORKING")})
        assert request.transport
        request.transport.abort()
        return response

    return handler


async def test_a_stream_that_breaks_off_is_taken_up_by_asking() -> None:
    async def done(request: web.BaseRequest) -> web.StreamResponse:
        assert (await request.json())["method"] == "GetTask"
        said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}
        task = task_json("COMPLETED")
        task["status"]["message"] = said
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": task})

    ear = Ear()
    with anyio.fail_after(30):
        async with serving(scripted(dying(done), streaming=True)) as url, speaking(url) as client:
            task = await client.send(message("hello"), ear)
    assert (task.state, task.status and task.status.text) == (TaskState.COMPLETED, "done")
    assert ear.said == ["done"]


@pytest.mark.parametrize("absent", [0.0, 0.3])
async def test_a_peer_that_dies_in_the_middle_is_given_up_and_the_task_is_named(
    absent: float,
) -> None:
    gone = scripted(dying(answering(status=503)), streaming=True)
    with anyio.fail_after(30):
        async with serving(gone) as url, speaking(url, absent=absent) as client:
            with pytest.raises(SourceFailed, match="503") as failed:
                await client.send(message("hello"))
    assert "the task t-1" in failed.value.message
    assert failed.value.way_out == "call it again later with task = 't-1'"


async def test_a_peer_that_answers_wrongly_in_the_middle_is_given_up_soon() -> None:
    broken = dying(answering(status=500, text="{}", content_type="application/json"))
    why = await sending(broken, streams=True)
    assert "HTTP Error 500" in why
    assert "the task t-1" in why


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
async def test_a_busy_peer_is_asked_again_when_it_says(kind: str) -> None:
    asked: list[float] = []

    async def busy(request: web.BaseRequest) -> web.StreamResponse:
        del request
        asked.append(anyio.current_time())
        if len(asked) == 1:
            headers = {"Retry-After": "1", "Content-Type": kind}
            return web.Response(status=429, text="{}", headers=headers)
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": task_json("COMPLETED")})

    with anyio.fail_after(20):
        async with serving(scripted(dying(busy), streaming=True)) as url, speaking(url) as client:
            assert (await client.send(message("hello"))).state is TaskState.COMPLETED
    assert asked[1] - asked[0] >= 1


def absent_at_first(times: int, then: Handler) -> Handler:
    """Be there after so many requests, as a peer that is started again."""
    missed: list[int] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        missed.append(0)
        if len(missed) > times:
            return await then(request)
        assert request.transport
        request.transport.abort()
        return web.Response()

    return handler


async def test_a_peer_that_comes_back_is_asked_for_its_task() -> None:
    async def done(request: web.BaseRequest) -> web.StreamResponse:
        del request
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": task_json("COMPLETED")})

    peer = scripted(dying(absent_at_first(3, done)), streaming=True)
    with anyio.fail_after(20):
        async with serving(peer) as url, speaking(url) as client:
            task = await client.send(message("hello"))
    assert (task.id, task.state) == ("t-1", TaskState.COMPLETED)
