"""A session of an MCP client is on one node, and every node answers for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from tests.cluster.fronts import PLACE, connected, fronts
from tests.cluster.speaking import talking
from tests.conformance.served.resources import WATCHED
from tests.edges.mcp.talking import CAPABILITIES, META, modern_headers
from tests.peers.clients import Task, Web
from tests.peers.sdk_client import Talk, python
from tests.peers.sdk_client import connected as connected_to
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster
    from tests.cluster.speaking import Talking
    from tests.peers.clients import Era

pytestmark = [pytest.mark.requirement("C13.3", "C4.4"), pytest.mark.anyio]

ASKED: dict[str, Any] = {"elicitation": {}}
FORM = {"action": "accept", "content": {"username": "ada", "email": "ada@example.org"}}
SECONDS = 60


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


async def test_a_request_that_claims_to_be_handed_on_is_believed_of_nodes_alone(
    talk: Talking,
) -> None:
    await talk.begin("a")
    talk.more = {"OpenFang-Member": "b;1;2;3;4"}
    answer = await talk.tell("b", "notifications/roots/list_changed")
    assert (answer.status_code, answer.json()["rule"]) == (401, "member_signature")


async def modern(talk: Talking, node: str, method: str, params: dict[str, Any]) -> Any:
    params = {**params, "_meta": {**META, CAPABILITIES: ASKED}}
    answer = await talk.client.post(
        talk.url(node),
        json=talk.request(method, params),
        headers=modern_headers(method, params),
    )
    return answer.json()


async def test_what_wants_to_know_something_at_one_node_is_answered_at_another(
    talk: Talking,
) -> None:
    called: dict[str, Any] = {"name": "test_input_required_result_multi_round", "arguments": {}}
    asked = (await modern(talk, "a", "tools/call", called))["result"]
    answers, where = {"content": {"name": "Ada", "color": "blue"}, "action": "accept"}, "bc"
    for node in where:
        assert asked["resultType"] == "input_required"
        given = dict.fromkeys(asked["inputRequests"], answers)
        again = {**called, "requestState": asked["requestState"], "inputResponses": given}
        asked = (await modern(talk, node, "tools/call", again))["result"]
    assert asked["resultType"] == "complete", asked


async def test_the_state_of_a_parked_call_cannot_be_moved_and_is_taken_once(talk: Talking) -> None:
    called: dict[str, Any] = {"name": "test_input_required_result_elicitation", "arguments": {}}
    asked = (await modern(talk, "a", "tools/call", called))["result"]
    given = dict.fromkeys(asked["inputRequests"], FORM)
    again = {**called, "requestState": asked["requestState"], "inputResponses": given}
    changed = {**again, "requestState": asked["requestState"].replace(".a.", ".b.")}
    assert "none of ours" in (await modern(talk, "b", "tools/call", changed))["error"]["message"]
    assert (await modern(talk, "b", "tools/call", again))["result"]["resultType"] == "complete"
    assert "is over" in (await modern(talk, "c", "tools/call", again))["error"]["message"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_official_client_notices_nothing_of_the_balancer(
    cluster: Cluster, era: Era
) -> None:
    before = len(cluster.balancer.served)
    target = Web(cluster.balancer.address + PLACE, cluster["a"].headers)
    seen = await python(
        Task(
            target=target,
            era=era,
            form={"username": "ada", "email": "ada@example.org", "name": "Ada"},
            requests=(
                ("tools/list", {}),
                ("resources/templates/list", {}),
                ("tools/call", {"name": "test_simple_text", "arguments": {}}),
                ("tools/call", {"name": "test_tool_with_progress", "arguments": {}}),
                ("tools/call", {"name": "test_elicitation", "arguments": {"message": "Who?"}}),
                ("tools/call", {"name": "test_sampling", "arguments": {"prompt": "What?"}}),
                ("resources/read", {"uri": WATCHED}),
            ),
        )
    )
    assert len(seen.results) == 7
    assert seen.questions == ["elicitation/create", "sampling/createMessage"]
    assert any(told["method"] == "notifications/progress" for told in seen.told)
    assert set(cluster.balancer.served[before:]) == {node.address for node in cluster.nodes}


def test_who_signed_in_at_one_node_is_known_at_all_until_it_signs_out(cluster: Cluster) -> None:
    """The pages are asked for through the balancer: each by another node."""
    page = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    key = cluster["a"].headers["Authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=cluster.balancer.address, headers=page) as browser:
        form = {"token": form_token(browser.get("/login").text), "key": key}
        signed = browser.post("/login", data=form)
        assert signed.status_code == 303, signed.text
        shown = [browser.get("/tools") for _ in range(3)]
        assert [answer.status_code for answer in shown] == [200] * 3
        cookies = dict(browser.cookies)
        form = {"token": form_token(shown[-1].text)}
        assert browser.post("/logout", data=form).status_code == 303
        browser.cookies.update(cookies)
        left = [browser.get("/tools").headers.get("location", "") for _ in range(3)]
        assert [where.startswith("/login") for where in left] == [True] * 3


def form_token(page: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]+)"', page)
    assert found
    return found[1]


async def has(cluster: Cluster, talk: Talking) -> str:
    """Say which node has the session."""
    (rows,) = await run(cluster.database, "SELECT id, node FROM mcp_sessions")
    return next(row["node"] for row in rows if row["id"] == talk.session)


DRAIN = "UPDATE members SET draining = 1 WHERE node = 'c'"
UNDRAIN = "UPDATE members SET draining = 0 WHERE node = 'c'"


async def test_a_node_that_drains_gives_its_sessions_to_who_is_asked_for_them(
    talk: Talking, cluster: Cluster
) -> None:
    await talk.begin("c")
    await talk.ask("b", "logging/setLevel", {"level": "error"})
    await talk.ask("b", "resources/subscribe", {"uri": WATCHED})
    async with talk.listening("a") as heard:
        await run(cluster.database, DRAIN)
        assert [message async for message in heard.messages] == []
    async with talk.listening("a", heard.last) as again:
        told = await again.until("notifications/resources/updated")
        assert told["params"]["uri"] == WATCHED
        assert await has(cluster, talk) == "a"
        await talk.ask("c", "tools/call", {"name": "test_trigger_resource_change"})
        assert (await again.until("notifications/resources/updated"))["params"] == told["params"]
    await run(cluster.database, UNDRAIN)
    while await has(cluster, talk) != "c":
        talk.session = ""
        await talk.begin("c")
        await talk.ask("b", "ping")


async def test_when_the_node_is_killed_that_has_a_session_the_client_goes_on(
    talk: Talking, cluster: Cluster
) -> None:
    await talk.begin("a", **ASKED)
    async with talk.calling("b", "test_elicitation", message="Who?") as heard:
        await heard.until("elicitation/create")
        number = talk.number
        cluster.kill("a")
        with pytest.raises(httpx.RemoteProtocolError):
            await heard.until()
    async with talk.listening("c", heard.last) as again:
        told = await again.until()
    assert (told["id"], "interrupted" in told["error"]["message"]) == (number, True)
    assert await has(cluster, talk) == "c"
    for node in "bc":
        called = await talk.ask(node, "tools/call", {"name": "test_simple_text"})
        assert called["content"][0]["text"] == "A simple text."
    async with talk.listening("b") as standing:
        await standing.until("notifications/tools/list_changed")
    connected(cluster.start("a"))
    assert (await talk.ask("a", "tools/list"))["tools"]
    assert await has(cluster, talk) == "c"


async def test_the_official_client_goes_on_when_the_node_is_killed_that_has_its_session(
    cluster: Cluster,
) -> None:
    target = Web(cluster.balancer.address + PLACE, cluster["a"].headers)
    calls: tuple[str, Any] = ("tools/call", {"name": "test_simple_text", "arguments": {}})
    talk = Talk(Task(target=target, era="legacy", requests=(calls,)))
    with anyio.fail_after(SECONDS):
        async with connected_to(talk) as client:
            assert "result" in await talk.ask(client, *calls)
            newest = "SELECT node FROM mcp_sessions ORDER BY used_at DESC LIMIT 1"
            name = (await run(cluster.database, newest))[0][0]["node"]
            cluster.kill(name)
            for _ in range(3):
                answer = await talk.ask(client, *calls)
                assert "result" in answer, answer
    connected(cluster.start(name))
