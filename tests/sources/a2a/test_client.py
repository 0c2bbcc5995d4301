"""The client and the library's own server, in every version and binding; and what is told on."""

from __future__ import annotations

import anyio
import pytest
from tests.sources.a2a.sdk_peer import sdk_peer
from tests.sources.a2a.speaking import Ear, message, speaking, wired

from openfang.core.errors import SourceFailed
from openfang.core.tasks import TaskState
from openfang.sources.a2a.discover import discover
from openfang.version import __version__

pytestmark = pytest.mark.requirement("C5.8")
KINDS = ["JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_message_is_answered_in_every_dialect(kind: str, *, streaming: bool) -> None:
    ear = Ear()
    with anyio.fail_after(20):
        async with sdk_peer(kind, streaming=streaming) as peer, speaking(peer.url) as client:
            task = await client.send(message("file", context="c-7"), ear)
            again = await client.get(task.id)
    assert task.state is TaskState.COMPLETED
    assert task.context == "c-7"
    assert [one.name for one in task.artifacts] == ["response", "dot"]
    assert "".join(part["text"] for part in task.artifacts[0].parts) == "You said file"
    file = {"type": "file", "name": "dot.x", "mime_type": "image/x", "data": "AAE="}
    assert task.artifacts[1].parts == (file,)
    assert again.artifacts[1] == task.artifacts[1]
    assert "".join(ear.words) == "You said file"
    assert peer.agent.heard[0]["metadata"] == {"k": "v"}
    if streaming:
        assert (ear.words, ear.said) == (["You said ", "file"], ["thinking"])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_question_is_answered_in_the_same_task(kind: str) -> None:
    with anyio.fail_after(20):
        async with sdk_peer(kind) as peer, speaking(peer.url) as client:
            asked = await client.send(message("ask"))
            assert (asked.state, asked.status and asked.status.text) == (
                TaskState.INPUT_REQUIRED,
                "Which colour?",
            )
            answer = message("blue", task=asked.id, context=asked.context)
            task = await client.send(answer)
    assert (task.id, task.state) == (asked.id, TaskState.COMPLETED)
    assert task.status
    assert task.status.text == "so it is blue"


@pytest.mark.parametrize("kind", ["JSONRPC 1.0", "JSONRPC 0.3"])
async def test_one_who_comes_back_sees_the_end_and_can_bring_it_about(kind: str) -> None:
    with anyio.fail_after(20):
        async with sdk_peer(kind) as peer, speaking(peer.url) as client:
            ear, found = Ear(), list[str]()
            async with anyio.create_task_group() as group:
                group.start_soon(client.send, message("wait"), ear)
                await peer.agent.working.wait()
                while not found:
                    found = [one.id for one in ear.heard if one.id]
                    await anyio.lowlevel.checkpoint()

                async def end() -> None:
                    await client.cancel(found[0])

                group.start_soon(end)
                assert (await client.subscribe(found[0])).state is TaskState.CANCELED
    assert peer.agent.cancelled == found


async def test_a_message_in_the_place_of_a_task_is_an_answer() -> None:
    with anyio.fail_after(20):
        async with sdk_peer() as peer, speaking(peer.url) as client:
            task = await client.send(message("plainly"))
    assert (task.id, task.state) == ("", TaskState.COMPLETED)
    assert task.history[0].text == "just words"


async def test_who_asks_is_named_and_proves_it_to_the_peer_alone() -> None:
    with anyio.fail_after(20):
        async with sdk_peer() as peer, speaking(peer.url, auth="Bearer s3cret") as client:
            await client.send(message("hello"), headers={"traceparent": "00-1"})
    major_minor = ".".join(__version__.split(".")[:2])
    assert peer.hits[0]["authorization"] == "Bearer s3cret"
    sent = peer.agent.headers[0]
    assert sent["user-agent"] == f"OpenFang/{major_minor} A2A"
    assert (sent["authorization"], sent["traceparent"]) == ("Bearer s3cret", "00-1")
    assert sent["a2a-version"] == "1.0"


async def test_an_agent_on_another_origin_gets_no_credentials() -> None:
    with anyio.fail_after(20):
        async with sdk_peer() as one, sdk_peer() as other:
            one.card = other.card
            async with speaking(one.url, auth="Bearer s3cret") as client:
                await client.send(message("hello"))
    assert one.hits[0]["authorization"] == "Bearer s3cret"
    assert "authorization" not in other.agent.headers[0]


async def test_a_card_that_did_not_change_is_not_sent_again() -> None:
    with anyio.fail_after(20):
        async with sdk_peer() as peer, wired(peer.url) as wire:
            first = await discover(wire)
            again = await discover(wire, first)
            peer.etag, peer.card["version"] = '"2"', "2.0"
            other = await discover(wire, first)
    assert again is first
    assert peer.hits[1]["if-none-match"] == '"1"'
    assert (other.version, other.digest != first.digest) == ("2.0", True)


async def test_an_unknown_task_is_an_error_in_the_peers_words() -> None:
    async with sdk_peer() as peer, speaking(peer.url) as client:
        with pytest.raises(SourceFailed, match="not found"):
            await client.get("t-unknown")
