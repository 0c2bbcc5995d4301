"""Agents elsewhere as tools of a node: found, called through the whole path, held back, let go."""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from aiohttp import web
from anyio import to_thread
from tests.edges.live import live
from tests.sources.a2a.sdk_peer import Served, sdk_peer
from tests.sources.a2a.web_peers import SeedPeer, serving

from openfang.app.a2a.peer import Pace
from openfang.app.a2a.peers import Peers
from openfang.config.load import load
from openfang.core.agents import Words
from openfang.core.calls import Role
from openfang.core.clients import ELICITATION
from openfang.core.errors import Parked, PolicyViolation, SourceFailed, UnknownTool
from openfang.core.keys import Way
from openfang.core.labels import Labels
from openfang.core.progress import Progress
from openfang.core.results import Result
from openfang.core.tools import Trust
from openfang.core.trace import read_chain
from openfang.protocols.a2a.extensions import CHAIN
from openfang.storage.database import at_once
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from openfang.core.calls import Caller
    from openfang.core.progress import Told

pytestmark = pytest.mark.requirement("C5.8", "C5.9")
QUICK = Pace(first=0.02, longest=0.05, again=600)


def entry(name: str, url: str, **more: str) -> str:
    fields = {"name": name, "url": url, "trust": "medium", **more}
    lines = [f'{key} = "{value}"' for key, value in fields.items()]
    return "\n".join(["[[a2a.external_agents]]", *lines, "allow_private = true", ""])


def config(*entries: str) -> str:
    return "\n".join(["[a2a]", "enabled = true", *entries])


@asynccontextmanager
async def peered(
    folder: Path, text: str, environ: Mapping[str, str] | None = None
) -> AsyncGenerator[tuple[OpenApp, Peers]]:
    environ = {"HOME": str(folder), **(environ or {})}
    with anyio.fail_after(30):
        async with open_test_app(folder, config=text, environ=environ) as app:
            peers = Peers(app.parts, environ, QUICK)
            async with anyio.create_task_group() as group:
                group.start_soon(peers.run)
                await peers.settled()
                yield app, peers
                group.cancel_scope.cancel()


@asynccontextmanager
async def echoing(
    folder: Path, *, streaming: bool = True
) -> AsyncGenerator[tuple[Served, OpenApp, Peers]]:
    """A node that knows one peer, `echo`."""
    async with (
        sdk_peer(streaming=streaming) as served,
        peered(folder, config(entry("echo", served.url))) as (app, peers),
    ):
        yield served, app, peers


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


def state(peers: Peers, name: str = "echo") -> str:
    return peers.find(name).state.state


@pytest.mark.requirement("C1.1", "C1.2")
async def test_a_peer_of_the_configuration_is_a_tool(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (_, app, peers):
        tool = app.parts.registry.find("a2a_echo")
        result = await app.call("a2a:echo", message="hello", context="c-1")
        shown = peers.states()[0]
    assert tool
    assert (tool.id, tool.trust, tool.title) == ("a2a:echo", Trust.MEDIUM, "Echo agent")
    assert "Repeats what it hears" in tool.description
    assert "Echo: Says it again" in tool.description
    assert result.text == "You said hello"
    assert result.labels & Labels.EXTERNAL_NETWORK
    assert result.labels & Labels.UNTRUSTED_AGENT
    assert result.structured["context"] == "c-1"
    assert result.structured["state"] == "completed"
    assert (shown.state, shown.error) == ("discovered", "")
    assert shown.card
    assert shown.card["skills"] == [{"id": "echo", "name": "Echo"}]


async def test_a_served_node_finds_its_peers_by_itself(tmp_path: Path) -> None:
    async with (
        sdk_peer() as served,
        live(tmp_path, config=config(entry("echo", served.url))) as node,
    ):
        assert node.app.parts.peers
        await node.app.parts.peers.settled()
        reply = await node.call("a2a%3Aecho", {"message": "hello"})
    assert (reply.status, reply.json["content"][0]["text"]) == (200, "You said hello")
    assert reply.json["labels"] == ["external_network", "untrusted_agent"]


@pytest.mark.requirement("C14.2")
async def test_a_discovery_is_logged_with_name_address_and_count_of_skills(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "openfang.a2a")
    async with echoing(tmp_path) as (served, _, _):
        pass
    line = f"Discovered external A2A agent: echo (Echo agent), url: {served.url}, skills: 1"
    assert line in caplog.messages


@pytest.mark.requirement("C2.5")
async def test_nothing_is_discovered_while_a2a_is_switched_off(tmp_path: Path) -> None:
    async with (
        sdk_peer() as served,
        peered(tmp_path, entry("echo", served.url)) as (app, peers),
    ):
        with pytest.raises(UnknownTool):
            await app.call("a2a:echo", message="hello")
        assert peers.states() == []
    assert served.hits == []


@pytest.mark.requirement("C11.4")
async def test_a_peer_of_low_trust_asks_a_person(tmp_path: Path) -> None:
    async with sdk_peer() as served:
        text = config(entry("echo", served.url).replace('trust = "medium"\n', ""))
        async with peered(tmp_path, text) as (app, _):
            with pytest.raises(Parked):
                await app.call("a2a:echo", message="hello")
    assert served.agent.heard == []


async def test_files_and_artifacts_come_back_as_parts(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, _):
        data = {"type": "data", "data": {"n": 1}}
        result = await app.call("a2a:echo", message="file", parts=[data])
    assert result.structured["artifacts"] == ["dot"]
    assert result.content[1]["resource"]["blob"] == "AAE="
    assert served.agent.heard[0]["parts"] == [{"text": "file"}, {"data": {"n": 1}}]


@pytest.mark.parametrize(("words", "why"), [("fail", "it broke"), ("reject", "not mine")])
async def test_what_did_not_end_well_is_an_error_with_its_reason(
    tmp_path: Path, words: str, why: str
) -> None:
    async with echoing(tmp_path) as (_, app, _):
        result = await app.call("a2a:echo", message=words)
    assert result.is_error
    assert why in result.text


@pytest.mark.parametrize(
    ("words", "said"),
    [("fail", "echo failed: it broke"), ("reject", "echo rejected the task: not mine")],
)
async def test_the_reason_is_told_though_the_agent_had_begun_to_answer(
    tmp_path: Path, words: str, said: str
) -> None:
    async with echoing(tmp_path) as (_, app, _):
        result = await app.call("a2a:echo", message=f"speak and {words}")
    assert [part["text"] for part in result.content] == [said, "Let me see. "]
    assert result.structured["artifacts"] == ["response"]


async def test_the_question_is_told_though_the_agent_had_begun_to_answer(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (_, app, _):
        result = await app.call("a2a:echo", message="speak and ask")
    assert result.content[0]["text"].startswith("Which colour?\n\n[echo waits for an answer")


@pytest.mark.requirement("C8.1", "C8.4")
async def test_the_trace_and_the_chain_go_along(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, _):
        call = app.make("a2a:echo", {"message": "hello", "metadata": {"mine": 1, "token": "x"}})
        came = read_chain(
            traceparent=call.chain.traceparent, starry_id="S-1", depth=4, ancestors=("agent:a",)
        )
        chain = replace(came, deadline=call.chain.deadline)
        await app.invoke(replace(call, chain=chain))
        node = app.parts.writer.node
    sent, headers = served.agent.heard[0]["metadata"], served.agent.headers[0]
    path = ["unknown", "unknown", f"agent:a@{node}", f"a2a:echo@{node}"]
    told = sent["openfang/chain"]
    assert json.loads(headers["openfang-chain"]) == told
    assert (told["ancestors"], told["depth"], told["calls"]) == (path, 5, 63)
    assert 0 < told["left_ms"] < 600_000
    assert sent["X-OpenStarry-Trace-ID"] == headers["x-openstarry-trace-id"] == "S-1"
    assert headers["a2a-extensions"] == CHAIN
    assert sent["traceparent"].split("-")[1] == chain.trace_id
    assert sent["mine"] == 1
    assert "token" not in sent


async def test_progress_and_words_are_told_while_the_peer_works(tmp_path: Path) -> None:
    told: list[Told] = []
    async with echoing(tmp_path) as (_, app, _):
        await app.invoke(app.make("a2a:echo", {"message": "hello"}, progress=told.append))
    assert [one.text for one in told if isinstance(one, Words)] == ["You said ", "hello"]
    progress = [one.message for one in told if isinstance(one, Progress)]
    assert progress == ["submitted", "thinking", "completed"]


@dataclass
class Person:
    """A client that answers questions, or does not."""

    answer: Mapping[str, Any]
    asked: list[str] = field(default_factory=list[str])
    key: str = "person"
    connection: str = "one"
    level: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"elicitation": {}})

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        assert (method, name) == (ELICITATION, "")
        self.asked.append(params["message"])
        return Result(structured=self.answer)

    def together(self, count: int) -> Callable[[], None]:
        raise AssertionError(count)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError(method, params)


@pytest.mark.requirement("C1.6")
async def test_a_question_of_the_peer_is_put_to_the_client_and_recorded(tmp_path: Path) -> None:
    person = Person({"action": "accept", "content": {"answer": "blue"}})
    async with echoing(tmp_path) as (_, app, _):
        result = await app.invoke(app.make("a2a:echo", {"message": "ask"}, client=person))
        events = await app.events()
    assert person.asked == ["Which colour?"]
    assert result.text == "so it is blue"
    called = [one.context for one in events if one.event_type == "tool_invocation_start"]
    assert [one["caller"] for one in called if one["tool"] == f"client:person:{ELICITATION}"] == [
        "a2a:echo"
    ]


async def test_a_question_that_nobody_answers_is_the_result_and_can_be_answered_later(
    tmp_path: Path,
) -> None:
    person = Person({"action": "decline"})
    async with echoing(tmp_path) as (_, app, _):
        alone = await app.call("a2a:echo", message="ask")
        declined = await app.invoke(app.make("a2a:echo", {"message": "ask"}, client=person))
        task = alone.structured["task"]
        result = await app.call("a2a:echo", message="green", task=task)
        seen = await app.call("a2a:echo", task=task)
    assert "Which colour?" in alone.text
    assert task in alone.text
    assert (alone.is_error, alone.structured["state"]) == (False, "input-required")
    assert (person.asked, declined.structured["state"]) == (["Which colour?"], "input-required")
    assert result.text == "so it is green"
    assert seen.text == "so it is green"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_call_that_is_given_up_ends_the_task_at_the_peer(
    tmp_path: Path, *, streaming: bool
) -> None:
    async with echoing(tmp_path, streaming=streaming) as (served, app, _):
        begun = anyio.Event()

        def tell(told: Told) -> None:
            del told
            begun.set()

        call = app.make("a2a:echo", {"message": "wait"}, progress=tell)
        async with anyio.create_task_group() as group:
            group.start_soon(app.invoke, call)
            await begun.wait()
            await served.agent.working.wait()
            group.cancel_scope.cancel()
        await served.agent.ended.wait()
    assert len(served.agent.cancelled) == 1


async def test_a_task_is_ended_at_the_peer(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, _):
        task = (await app.call("a2a:echo", message="ask")).structured["task"]
        nothing = await app.call("a2a:echo", message="hello", cancel=True)
        ended = await app.call("a2a:echo", task=task, cancel=True)
    assert (nothing.is_error, "give the task" in nothing.text) == (True, True)
    assert (ended.is_error, ended.text) == (False, f"{task} is canceled")
    assert ended.structured["state"] == "canceled"
    assert (served.agent.cancelled, len(served.agent.heard)) == ([task], 1)


async def test_a_peer_of_the_first_dialect_that_is_given_up_may_go_on_which_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    peer = SeedPeer()
    async with (
        serving(peer) as url,
        peered(tmp_path, config(entry("old", url))) as (app, _),
        anyio.create_task_group() as group,
    ):
        group.start_soon(app.invoke, app.make("a2a:old", {"message": "wait"}))
        await peer.working.wait()
        group.cancel_scope.cancel()
    assert "old may go on with work that nobody waits for any more" in caplog.messages


def somebody_else(app: OpenApp) -> Caller:
    return replace(app.caller, id="key:somebody-else", role=Role.USER)


async def test_a_task_at_a_peer_is_for_who_began_it(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, _):
        task = (await app.call("a2a:echo", message="ask")).structured["task"]
        other = somebody_else(app)
        for wanted in ({"task": task}, {"task": task, "message": "red"}, {"task": "made-up"}):
            refused = await app.invoke(app.make("a2a:echo", wanted, caller=other))
            expected = f"No task {wanted['task']} of yours at echo"
            assert (refused.is_error, refused.text) == (True, expected)
        ended = app.make("a2a:echo", {"task": task, "cancel": True}, caller=other)
        assert (await app.invoke(ended)).is_error
        for_me = replace(app.make("a2a:echo", {"task": task}, caller=other), asker=app.caller.id)
        assert "Which colour?" in (await app.invoke(for_me)).text
        assert (await app.call("a2a:echo", message="green", task=task)).text == "so it is green"
    assert len(served.agent.heard) == 2


async def test_a_conversation_at_a_peer_is_for_who_began_it(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, _):
        given = (await app.call("a2a:echo", message="hello")).structured["context"]
        for context in (given, "mine"):
            for caller in (app.caller, somebody_else(app)):
                arguments = {"message": "hello", "context": context}
                result = await app.invoke(app.make("a2a:echo", arguments, caller=caller))
                assert result.structured["context"] == context
        await app.call("a2a:echo", message="again", context="mine")
    _, kept, made, mine, others, again = [one.get("contextId") for one in served.agent.heard]
    assert kept == given
    assert len({kept, made, mine, others}) == 4
    assert (mine, "mine" in {mine, others}) == (again, False)


async def test_a_peer_of_the_first_dialect_is_a_tool_too(tmp_path: Path) -> None:
    async with (
        serving(SeedPeer()) as url,
        peered(tmp_path, config(entry("old", url))) as (app, _),
    ):
        result = await app.call("a2a:old", message="hello")
        failed = await app.call("a2a:old", message="fail")
    assert (result.text, result.structured["state"]) == ("HELLO", "completed")
    assert (failed.is_error, failed.text) == (True, "old failed: IT BROKE")


async def test_a_peer_that_is_away_is_looked_for_until_it_is_there(tmp_path: Path) -> None:
    peer = SeedPeer()
    there = anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await peer(request) if there.is_set() else web.Response(status=503)

    async with (
        serving(handler) as url,
        peered(tmp_path, config(entry("late", url))) as (app, peers),
    ):
        assert state(peers, "late") == "unreachable"
        assert "503" in peers.find("late").state.error
        there.set()
        await until(lambda: app.parts.registry.find("a2a:late"))
        await until(lambda: state(peers, "late") == "discovered")
        assert (await app.call("a2a:late", message="x")).text == "X"


@pytest.mark.requirement("C3.9")
async def test_a_peer_at_a_private_address_is_reached_only_if_it_is_said(tmp_path: Path) -> None:
    async with sdk_peer() as served:
        closed = entry("echo", served.url).replace("allow_private = true\n", "")
        async with peered(tmp_path, config(closed)) as (_, peers):
            assert state(peers) == "unreachable"
            assert "allow_private" in peers.find("echo").state.error
    assert served.hits == []


async def test_a_known_peer_is_a_tool_at_once_after_a_restart(tmp_path: Path) -> None:
    async with sdk_peer() as served:
        text = config(entry("echo", served.url))
        async with peered(tmp_path, text):
            pass
    async with peered(tmp_path, text) as (app, peers):
        assert app.parts.registry.find("a2a:echo")
        assert state(peers) == "unreachable"
        with pytest.raises(SourceFailed, match="echo"):
            await app.call("a2a:echo", message="hello")


async def read_again(served: Served, peers: Peers, **changes: str) -> None:
    served.card |= changes
    served.etag += "x"
    peers.find("echo").refresh()
    await peers.settled()


@pytest.mark.requirement("C11.3")
async def test_a_card_that_changes_is_held_back_until_it_is_accepted(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (served, app, peers):
        await read_again(served, peers, version="1.0")
        assert state(peers) == "discovered"
        await read_again(served, peers, version="2.0")
        assert state(peers) == "held"
        with pytest.raises(PolicyViolation):
            await app.call("a2a:echo", message="hello")
        app.parts.registry.accept("a2a:echo")
        assert (await app.call("a2a:echo", message="hello")).text == "You said hello"
        assert state(peers) == "discovered"
    assert len(served.agent.heard) == 1


@pytest.mark.requirement("C11.3")
async def test_a_card_that_changes_while_a_person_is_asked_is_not_used(tmp_path: Path) -> None:
    async with sdk_peer() as served:
        text = config(entry("echo", served.url, trust="low"))
        async with peered(tmp_path, text) as (app, peers), anyio.create_task_group() as group:
            call = replace(app.make("a2a:echo", {"message": "hello"}), patience=20)

            async def refused() -> None:
                with pytest.raises(PolicyViolation) as caught:
                    await app.invoke(call)
                assert caught.value.rule == "tool_held"
                assert "openfang tools accept a2a:echo" in caught.value.way_out

            group.start_soon(refused)
            approvals = app.parts.approvals
            await until(lambda: at_once(approvals.store.pending(app.parts.clock.time_ns())))
            await read_again(served, peers, version="2.0")
            assert state(peers) == "held"
            (question,) = await approvals.store.pending(app.parts.clock.time_ns())
            await approvals.answer(question.id, approve=True, by=app.caller.id, via=Way.API)
    assert served.agent.heard == []


async def test_a_peer_that_is_asked_already_is_asked_once_more(tmp_path: Path) -> None:
    peer, asked, answer = SeedPeer(), anyio.Event(), anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if len(peer.asked) > 1 and not answer.is_set():
            asked.set()
            await answer.wait()
        return await peer(request)

    async with serving(handler) as url, peered(tmp_path, config(entry("old", url))) as (_, peers):
        found = peers.find("old")
        found.refresh()
        await asked.wait()
        before = len(peer.asked)
        found.refresh()
        answer.set()
        await peers.settled()
    cards = [one for one in peer.asked[before:] if one.endswith("agent.json")]
    assert len(cards) == 2


@pytest.mark.requirement("C2.9")
async def test_nothing_goes_to_a_peers_former_address(tmp_path: Path) -> None:
    async with sdk_peer() as one, peered(tmp_path, config(entry("p", one.url))) as (app, peers):
        second = config(entry("p", "http://127.0.0.1:9"))
        await to_thread.run_sync(app.parts.home.config_file.write_text, second)
        peers.apply(await to_thread.run_sync(load, tmp_path, {"HOME": str(tmp_path)}))
        with pytest.raises(UnknownTool):
            await app.call("a2a:p", message="hello")
        await peers.settled()
        with pytest.raises(UnknownTool):
            await app.call("a2a:p", message="hello")
    assert one.agent.heard == []


@pytest.mark.requirement("C2.9")
async def test_a_changed_configuration_touches_only_what_changed(tmp_path: Path) -> None:
    async with sdk_peer() as one, sdk_peer() as two:
        first = config(entry("one", one.url), entry("two", two.url))
        async with peered(tmp_path, first) as (app, peers):
            kept, hits = peers.find("one"), len(one.hits)
            second = config(entry("one", one.url), entry("new", two.url))
            await to_thread.run_sync(app.parts.home.config_file.write_text, second)
            peers.apply(await to_thread.run_sync(load, tmp_path, {"HOME": str(tmp_path)}))
            await until(lambda: app.parts.registry.find("a2a:new"))
            assert app.parts.registry.find("a2a:two") is None
            assert peers.find("one") is kept
            assert [peer.name for peer in peers.states()] == ["new", "one"]
    assert len(one.hits) == hits


@pytest.mark.requirement("C2.1")
async def test_credentials_are_expanded_and_one_that_is_missing_is_the_peers_fault_alone(
    tmp_path: Path,
) -> None:
    async with sdk_peer() as one, sdk_peer() as two:
        text = config(
            entry("one", one.url, auth="${ECHO_TOKEN}"), entry("two", two.url, auth="${MISSING}")
        )
        async with peered(tmp_path, text, {"ECHO_TOKEN": "t0ken-of-echo"}) as (app, peers):
            await app.call("a2a:one", message="hello")
            shown = app.parts.redactor.text("It is t0ken-of-echo.").text
            assert state(peers, "two") == "unreachable"
            assert "MISSING" in peers.find("two").state.error
    assert one.hits[0]["authorization"] == "Bearer t0ken-of-echo"
    assert two.hits == []
    assert "t0ken" not in shown


async def test_a_password_in_an_address_is_told_to_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = config(entry("peer", "http://me:pa55word@127.0.0.1:1"))
    async with peered(tmp_path, text) as (_, peers):
        error = peers.find("peer").state.error
    assert "user information" in error
    assert "pa55word" not in error + caplog.text
