"""The first dialect, as its servers speak it: with the envelope, and on the bare paths."""

from __future__ import annotations

import anyio
import pytest
from aiohttp import web
from tests.sources.a2a.speaking import Ear, message, speaking, wired
from tests.sources.a2a.web_peers import SeedPeer, answering, serving

from openfang.core.errors import SourceFailed
from openfang.core.tasks import TaskState
from openfang.sources.a2a.client import open_client
from openfang.sources.a2a.discover import find
from openfang.sources.a2a.wire import NoAgent

pytestmark = pytest.mark.requirement("C5.8")
spelled = pytest.mark.parametrize("enveloped", [True, False])


@spelled
async def test_a_message_is_answered_in_both_spellings(*, enveloped: bool) -> None:
    peer = SeedPeer(enveloped=enveloped)
    async with serving(peer) as url, speaking(url) as client:
        task = await client.send(message("file", context="s-1"))
        await client.send(message("again"))
    assert (task.id, task.context, task.state) == ("task-1", "s-1", TaskState.COMPLETED)
    assert task.status
    assert task.status.text == "FILE"
    assert task.artifacts[0].parts[0]["data"] == "AAE="
    assert peer.params[0]["sessionId"] == "s-1"
    assert peer.params[0]["message"]["parts"] == [{"type": "text", "text": "file"}]
    assert peer.params[0]["metadata"] == {"k": "v"}
    tried = peer.asked[2:]  # the current card was looked for first
    if enveloped:
        assert tried == ["POST /a2a", "POST /a2a"]
    else:
        assert tried == ["POST /a2a", "POST /a2a/tasks/send", "POST /a2a/tasks/send"]


@spelled
async def test_a_question_goes_on_in_its_task_and_a_failure_has_its_reason(
    *, enveloped: bool
) -> None:
    async with serving(SeedPeer(enveloped=enveloped)) as url, speaking(url) as client:
        asked = await client.send(message("ask"))
        task = await client.send(message("this", task=asked.id))
        failed = await client.send(message("fail"))
    assert (asked.state, asked.status and asked.status.text) == (
        TaskState.INPUT_REQUIRED,
        "WHICH?",
    )
    assert (task.id, task.state) == (asked.id, TaskState.COMPLETED)
    assert (failed.state, failed.status and failed.status.text) == (TaskState.FAILED, "IT BROKE")


@spelled
async def test_unfinished_work_is_asked_for_until_it_is_done(*, enveloped: bool) -> None:
    ear = Ear()
    with anyio.fail_after(30):
        async with serving(SeedPeer(enveloped=enveloped)) as url, speaking(url) as client:
            task = await client.send(message("later"), ear)
    assert (task.state, task.status and task.status.text) == (TaskState.COMPLETED, "LATER")
    assert [one.state for one in ear.heard] == [TaskState.WORKING, TaskState.COMPLETED]


@spelled
async def test_a_task_is_read_and_cancelled(*, enveloped: bool) -> None:
    async with serving(SeedPeer(enveloped=enveloped)) as url, speaking(url) as client:
        task = await client.send(message("hello"))
        assert (await client.get(task.id)).id == task.id
        assert (await client.cancel(task.id)).state is TaskState.CANCELED
        with pytest.raises(SourceFailed, match="no such task"):
            await client.get("task/../99")


@spelled
async def test_an_address_alone_is_enough(*, enveloped: bool) -> None:
    peer = SeedPeer(enveloped=enveloped)

    async def nameless(request: web.BaseRequest) -> web.StreamResponse:
        known = not request.path.startswith("/.well-known")
        return await peer(request) if known else web.Response(status=404)

    async with serving(nameless) as url, wired(f"{url}/a2a") as wire:
        card = await find(wire)
        task = await (await open_client(wire, card)).send(message("hello"))
    assert (card.name, card.of_the_seed) == (f"{url}/a2a", True)
    assert task.status
    assert task.status.text == "HELLO"


async def test_the_card_of_the_host_counts_for_the_address_that_it_names_alone() -> None:
    async with serving(SeedPeer()) as url:
        async with wired(f"{url}/a2a/") as wire:
            assert (await find(wire)).name == "old-timer"
        async with wired(f"{url}/other") as wire:
            assert (await find(wire)).name == f"{url}/other"
    async with serving(answering(status=404)) as url, wired(url) as wire:
        with pytest.raises(NoAgent):
            await find(wire)


async def test_a_peer_that_was_not_there_yet_is_spoken_to_with_the_envelope_later() -> None:
    peer, missed = SeedPeer(), list[str]()

    async def late(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/a2a") and len(missed) < 2:
            missed.append(request.path)
            return web.Response(status=404)
        return await peer(request)

    async with serving(late) as url, speaking(url) as client:
        with pytest.raises(SourceFailed, match="404"):
            await client.send(message("hello"))
        assert (await client.send(message("hello"))).state is TaskState.COMPLETED
    assert missed == ["/a2a", "/a2a/tasks/send"]


async def test_a_page_that_says_not_found_leads_to_the_bare_paths() -> None:
    peer = SeedPeer(enveloped=False)

    async def paged(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/a2a":
            return web.Response(status=404, text="<html>", content_type="text/html")
        return await peer(request)

    async with serving(paged) as url, speaking(url) as client:
        assert (await client.send(message("hello"))).state is TaskState.COMPLETED
