"""A session of an MCP client is on one node, and every node answers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.cluster.fronts import PLACE, fronts
from tests.cluster.speaking import talking
from tests.conformance.served.resources import WATCHED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster
    from tests.cluster.speaking import Talking

pytestmark = [pytest.mark.requirement("C13.3", "C4.4"), pytest.mark.anyio]

ASKED: dict[str, Any] = {"elicitation": {}}
FORM = {"action": "accept", "content": {"username": "ada", "email": "ada@example.org"}}
SECONDS = 20


@pytest.fixture(scope="module")
def cluster(make_home: Callable[[], Cli], postgres_server: str) -> Iterator[Cluster]:
    with fronts(make_home, postgres_server) as made:
        yield made


@pytest.fixture
async def talk(cluster: Cluster) -> AsyncGenerator[Talking]:
    async with talking(cluster, place=PLACE) as found:
        with anyio.fail_after(SECONDS):
            yield found


async def test_what_begins_at_one_node_goes_on_at_every_other(talk: Talking) -> None:
    await talk.begin("a")
    lists = [await talk.ask(node, "tools/list") for node in "abc"]
    assert lists[0] == lists[1] == lists[2]
    for node in "abc":
        told = await talk.ask(node, "tools/call", {"name": "test_simple_text"})
        assert told["content"][0]["text"] == "A simple text."


async def test_a_question_is_answered_over_another_node(talk: Talking) -> None:
    await talk.begin("a", **ASKED)
    async with talk.calling("b", "test_elicitation", message="Who?") as heard:
        question = await heard.until("elicitation/create")
        await talk.settle("c", question, FORM)
        told = await heard.until()
    assert "ada" in told["result"]["content"][0]["text"]


async def test_progress_comes_over_another_node(talk: Talking) -> None:
    await talk.begin("a")
    async with talk.calling("c", "test_tool_with_progress") as heard:
        messages = [message async for message in heard.messages]
    told = [one["params"]["progress"] for one in messages if "method" in one]
    assert told == sorted(told)
    assert told
    assert "result" in messages[-1]


async def test_a_request_is_cancelled_over_another_node(talk: Talking) -> None:
    await talk.begin("b", **ASKED)
    async with talk.calling("a", "test_elicitation", message="Who?") as heard:
        await heard.until("elicitation/create")
        await talk.tell("c", "notifications/cancelled", {"requestId": talk.number})
        await heard.until("notifications/cancelled")
        assert (await heard.until())["error"]["code"] == -32800


async def test_a_stream_that_broke_goes_on_at_another_node(talk: Talking) -> None:
    await talk.begin("a", **ASKED)
    async with talk.calling("b", "test_elicitation", message="Who?") as heard:
        question = await heard.until("elicitation/create")
    await talk.settle("b", question, FORM)
    async with talk.listening("c", heard.last) as again:
        told = await again.until()
    assert "ada" in told["result"]["content"][0]["text"]


async def test_who_listens_at_one_node_hears_what_was_subscribed_to_at_another(
    talk: Talking,
) -> None:
    await talk.begin("c")
    async with talk.listening("a") as heard:
        await talk.ask("b", "resources/subscribe", {"uri": WATCHED})
        await talk.ask("c", "tools/call", {"name": "test_trigger_resource_change"})
        told = await heard.until("notifications/resources/updated")
    assert told["params"]["uri"] == WATCHED


async def test_a_session_that_ended_at_one_node_is_over_at_all(talk: Talking) -> None:
    await talk.begin("a")
    answer = await talk.client.delete(talk.url("b"), headers=talk.headers)
    assert answer.status_code == 200, answer.text
    for node in "abc":
        assert (await talk.tell(node, "notifications/roots/list_changed")).status_code == 404


async def test_nobody_else_finds_a_session_at_any_node(talk: Talking, cluster: Cluster) -> None:
    await talk.begin("a")
    made = cluster["a"].cli("keys", "create", "other", "--json")
    talk.more = {"Authorization": f"Bearer {made.json['secret']}"}
    for node in "abc":
        assert (await talk.tell(node, "notifications/roots/list_changed")).status_code == 404
    talk.more, talk.place = {}, "/mcp"
    for node in "abc":
        assert (await talk.tell(node, "notifications/roots/list_changed")).status_code == 404
