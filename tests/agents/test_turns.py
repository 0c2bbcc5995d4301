"""Who waits for whom, what a run under way may still do, and what is left in its session."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.agents.test_node import ASSISTANT, node, put, say

from openfang.agents.sessions import StoredSessions
from openfang.agents.spec import Mind
from openfang.app.admin import Admin
from openfang.core.agents import Ended, Message, Speaker
from openfang.core.calls import Role
from openfang.core.errors import SourceFailed
from openfang.core.ids import Kind
from openfang.core.keys import Key
from openfang.core.labels import Labels
from openfang.core.tools import Risk
from openfang.storage.database import at_once
from openfang.storage.processes import Process
from openfang.storage.sessions import SessionStore
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.core.calls import Caller
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C6.4")

GRANTED = '[capabilities]\ntools = ["mcp:t:wait", "mcp:t:act"]\n'
NARROWER = '[capabilities]\ntools = ["mcp:t:wait"]\n'
WAITS = """
async def run(message, context):
    context.stream("I wait ")
    await context.call("mcp:t:wait")
    try:
        return (await context.call("mcp:t:act")).text
    except context.Refused as refused:
        return f"refused: {refused}"
"""
UNKNOWN = "refused: Unknown tool: mcp:t:act"
COUNTS = "async def run(message, context):\n    return str(len(context.history))\n"


@dataclass(slots=True)
class Gate:
    """Two tools: one that waits until the test lets it go on, one that acts."""

    reached: anyio.Event = field(default_factory=anyio.Event)
    free: anyio.Event = field(default_factory=anyio.Event)
    inside: int = 0
    most: int = 0

    def source(self) -> TableSource:
        facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
        rows = {"wait": (facts, self.wait), "act": (facts, self.act)}
        return TableSource(Kind.MCP, "t", rows)

    async def wait(self, arguments: Mapping[str, Any]) -> str:
        del arguments
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.reached.set()
        await self.free.wait()
        self.inside -= 1
        return "waited"

    async def act(self, arguments: Mapping[str, Any]) -> str:
        del arguments
        return "acted"


def person(app: OpenApp, name: str) -> Caller:
    return replace(app.caller, id=f"key:{name}", role=Role.USER)


async def told(app: OpenApp, caller: Caller, agent: str, message: str) -> str:
    return (await app.invoke(app.make(f"agent:{agent}", {"message": message}, caller=caller))).text


@asynccontextmanager
async def under_way(app: OpenApp, caller: Caller) -> AsyncGenerator[list[str]]:
    """Have somebody talk to `slow`; it waits in its first call until the end of the body."""
    gate, answers = Gate(), list[str]()
    app.add(gate.source())

    async def talk() -> None:
        answers.append(await told(app, caller, "slow", "go"))

    async with anyio.create_task_group() as group:
        group.start_soon(talk)
        await gate.reached.wait()
        yield answers
        gate.free.set()


def last_turn(app: OpenApp, agent: str, caller: str) -> Message:
    store = SessionStore(app.parts.database)
    session = at_once(store.find(agent, caller, "default"))
    assert session
    return at_once(store.turns(session.id))[-1].message


async def test_people_who_go_through_one_agent_do_not_share_its_conversations(
    tmp_path: Path,
) -> None:
    relays = """
async def run(message, context):
    arguments = {"agent_id": "b", "message": message}
    if message == "named":
        arguments["session"] = "usual"
    return (await context.call("agent_send", arguments)).text
"""
    grants = '[capabilities]\ntools = ["builtin:agent_send"]\nagent_message = ["b"]\n'
    put(tmp_path, "a", grants, relays)
    put(tmp_path, "b", program=COUNTS)
    async with node(tmp_path) as (app, _):
        one, two = person(app, "one"), person(app, "two")
        for message in ("hello", "named"):
            assert await told(app, one, "a", message) == "0"
            assert await told(app, two, "a", message) == "0"
            assert await told(app, one, "a", message) == "2"


async def test_a_grant_that_is_taken_away_ends_for_runs_under_way(tmp_path: Path) -> None:
    put(tmp_path, "slow", GRANTED, WAITS)
    async with node(tmp_path) as (app, agents), under_way(app, app.caller) as answers:
        put(tmp_path, "slow", NARROWER, WAITS)
        await agents.load()

    assert [answer.partition(" Way out")[0] for answer in answers] == [UNKNOWN]


async def test_a_grant_that_is_added_is_for_the_next_run(tmp_path: Path) -> None:
    put(tmp_path, "slow", NARROWER, WAITS)
    async with node(tmp_path) as (app, agents):
        async with under_way(app, app.caller) as answers:
            put(tmp_path, "slow", GRANTED, WAITS)
            await agents.load()
        answers.append(await say(app, "slow", "go"))

    assert [answer.partition(" Way out")[0] for answer in answers] == [UNKNOWN, "acted"]


async def test_who_asked_with_a_key_that_is_revoked_gets_no_further_calls(tmp_path: Path) -> None:
    put(tmp_path, "slow", GRANTED, WAITS)
    async with node(tmp_path) as (app, _):
        admin = Admin(app.parts, app.caller)
        key, _ = await admin.create_key(Key(id="", name="guest", projects=("default",)))
        async with under_way(app, key.caller()) as answers:
            await admin.revoke_key("guest")
        refused = [event for event in await app.events() if event.event_type == "policy_violation"]

    assert "the key of key:guest, who asked for this, is no longer in force" in answers[0]
    assert [event.payload["rule"] for event in refused] == ["context.asker"]


async def test_an_agent_that_is_removed_stops_where_it_is(tmp_path: Path) -> None:
    put(tmp_path, "slow", GRANTED, WAITS)
    gate, failures = Gate(), list[str]()
    async with node(tmp_path) as (app, agents):
        app.add(gate.source())

        async def talk() -> None:
            with pytest.raises(SourceFailed) as caught:
                await say(app, "slow", "go")
            failures.append(caught.value.message)

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            await gate.reached.wait()
            (tmp_path / "agents" / "slow" / "agent.toml").unlink()
            await agents.load()
        last = last_turn(app, "slow", app.caller.id)

    assert failures == ["The agent slow was ended before it had answered."]
    assert last.text == "I wait \n\nI stopped: the call was ended before I had answered."


async def test_messages_to_one_session_wait_also_when_the_manifest_changes(tmp_path: Path) -> None:
    put(tmp_path, "slow", GRANTED, WAITS)
    gate, answers = Gate(), list[str]()
    async with node(tmp_path) as (app, agents):
        app.add(gate.source())

        async def talk() -> None:
            answers.append(await say(app, "slow", "go"))

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            await gate.reached.wait()
            put(tmp_path, "slow", f'description = "other"\n{GRANTED}', WAITS)
            await agents.load()
            group.start_soon(talk)
            await anyio.wait_all_tasks_blocked()
            gate.free.set()

    assert (answers, gate.most) == (["acted", "acted"], 1)


async def test_a_message_waits_for_the_run_of_another_process(tmp_path: Path) -> None:
    put(tmp_path, "counts", program=COUNTS)
    answers: list[str] = []
    async with node(tmp_path) as (app, _):
        assert await say(app, "counts", "first") == "0"
        parts = app.parts
        other = StoredSessions(
            database=parts.database,
            writer=parts.writer,
            process=Process(parts.broker.process.folder),
        )
        opened = await other.open("counts", app.caller.id, "default", most=20)
        asked = Message(speaker=Speaker.USER, text="there")
        await other.begin(opened.id, "elsewhere", asked, Labels.NONE)

        async def talk() -> None:
            answers.append(await say(app, "counts", "second"))

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            await anyio.wait_all_tasks_blocked()
            assert not answers
            done = Message(speaker=Speaker.AGENT, text="done")
            await other.said(opened.id, "elsewhere", done)
            await other.end(opened.id, "elsewhere", Ended(answer="done"), Labels.NONE)
        other.process.release()

    assert answers == ["4"]


@pytest.mark.requirement("C8.1")
async def test_an_agent_that_allows_it_is_called_again_in_another_conversation(
    tmp_path: Path,
) -> None:
    goes_on = """
async def run(message, context):
    if message == "again":
        return f"I am back, {len(context.history)}"
    return (await context.call("agent_send", {"agent_id": "NEXT", "message": SAID})).text
"""
    grants = '[capabilities]\ntools = ["builtin:agent_send"]\nagent_message = ["*"]\n'
    first = goes_on.replace("NEXT", "b").replace("SAID", "message")
    put(tmp_path, "a", f"allow_reentry = true\n{grants}", first)
    put(tmp_path, "b", grants, goes_on.replace("NEXT", "a").replace("SAID", '"again"'))
    async with node(tmp_path) as (app, agents):
        assert await say(app, "a", "go") == "I am back, 0"
        put(tmp_path, "a", grants, first)
        await agents.load()
        assert "already waiting further up" in await say(app, "a", "go")


async def test_a_session_that_is_held_further_up_is_not_waited_for(tmp_path: Path) -> None:
    circle = """
async def run(message, context):
    arguments = {"agent_id": "c", "message": "same", "session": "same"}
    return (await context.call("agent_send", arguments)).text
"""
    grants = '[capabilities]\ntools = ["builtin:agent_send"]\nagent_message = ["c"]\n'
    put(tmp_path, "c", f"allow_reentry = true\n{grants}", circle)
    async with node(tmp_path) as (app, _):
        with anyio.fail_after(20):
            answer = await say(app, "c", "go")

    assert "is at work in this session further up in the chain" in answer


async def test_who_hangs_up_leaves_no_question_unanswered(tmp_path: Path) -> None:
    put(tmp_path, "slow", GRANTED, WAITS)
    gate = Gate()
    async with node(tmp_path) as (app, _):
        app.add(gate.source())
        async with anyio.create_task_group() as group:
            group.start_soon(say, app, "slow", "go")
            await gate.reached.wait()
            group.cancel_scope.cancel()
        last = last_turn(app, "slow", app.caller.id)

    assert last.speaker is Speaker.AGENT
    assert last.text == "I wait \n\nI stopped: the call was ended before I had answered."


async def test_a_run_whose_time_is_up_says_so_in_its_session(tmp_path: Path) -> None:
    grants = '[capabilities]\ntools = ["mcp:t:read_file"]\n[limits]\ndeadline_secs = 0.2\n'
    put(tmp_path, "planner", grants)
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    facts = {
        "risk": Risk.LOW,
        "tags": frozenset({"fs.read"}),
        "description": "Read a file.",
        "input_schema": path,
    }
    gate = Gate()
    async with node(tmp_path) as (app, _):
        app.add(TableSource(Kind.MCP, "t", {"read_file": (facts, gate.wait)}))
        answer = await say(app, "planner", "read notes/a.txt")
        store = SessionStore(app.parts.database)
        session = await store.find("planner", app.caller.id, "default")
        assert session
        turns = [turn.message for turn in await store.turns(session.id)]

    assert answer == "I stopped: the run has no more time left."
    assert [turn.speaker for turn in turns] == [
        Speaker.USER,
        Speaker.AGENT,
        Speaker.TOOL,
        Speaker.AGENT,
    ]
    assert "whether it had its effect is not known" in turns[2].text
    assert turns[3].text == answer


@pytest.mark.requirement("C6.2")
async def test_what_one_person_tells_an_agent_another_does_not_hear_from_it(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, _):
        one, two = person(app, "one"), person(app, "two")
        await told(app, one, "assistant", "Remember that my favourite colour is green")
        asked = "What is my favourite colour?"
        assert "green" in await told(app, one, "assistant", asked)
        assert "green" not in await told(app, two, "assistant", asked)


@pytest.mark.requirement("C6.4")
async def test_the_window_of_a_model_is_what_its_manifest_says(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    put(tmp_path, "short", "[model]\ncontext_window = 300\n")
    async with node(tmp_path) as (_, agents):
        minds = [agents.find(name).spec.does for name in ("assistant", "short")]
    assert [mind.window for mind in minds if isinstance(mind, Mind)] == [100_000, 300]


@pytest.mark.requirement("C6.2")
async def test_an_agent_may_remember_for_all_alike(tmp_path: Path) -> None:
    shared = ASSISTANT.replace("memory_write", "memory_shared = true\nmemory_write", 1)
    assert shared != ASSISTANT
    put(tmp_path, "assistant", shared)
    async with node(tmp_path) as (app, _):
        one, two = person(app, "one"), person(app, "two")
        await told(app, one, "assistant", "Remember that my favourite colour is red")
        assert "red" in await told(app, two, "assistant", "What is my favourite colour?")


@pytest.mark.requirement("C7.12")
async def test_a_long_result_is_cut_once_and_kept_for_the_person_who_asked(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        workspace = agents.find("assistant").spec.workspace
        workspace.mkdir(parents=True)
        (workspace / "big.txt").write_text("line of text\n" * 15_000)
        answer = await app.call("agent:assistant", message="read big.txt")
        blob = answer.text.rpartition("openfang://results/")[2].removesuffix("]")
        kept = await app.parts.blobs.get(blob, app.caller.id, app.parts.clock.time_ns())

    assert answer.text.count("[truncated: ") == 1
    assert kept
    assert kept[0].count(b"line of text") >= 15_000
    assert answer.structured["ending"] == "answered"
    assert answer.structured["session"].startswith("session_")
