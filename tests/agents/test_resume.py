"""After `kill -9` a run goes on in the next daemon, and repeats nothing that it had finished."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.agents.killed_run import begin_call
from tests.agents.test_node import ASSISTANT, node, put

from openfang.agents.origin import read_origin, write_origin
from openfang.agents.ports import Came
from openfang.agents.sessions import Interrupted
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.calls import Mode
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.policy.context import Wish as Bound
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C6.4", "C15.3")


def interrupted(
    app: OpenApp,
    session: str,
    run: str,
    turns: list[Message],
    *,
    begun: frozenset[str] = frozenset(),
    origin: str = "",
) -> Interrupted:
    return Interrupted(
        run=run,
        session=session,
        agent="assistant",
        caller=app.caller.id,
        labels=Labels.NONE,
        first=1,
        turns=turns,
        begun=begun,
        origin=origin,
    )


async def test_what_was_begun_and_may_not_be_repeated_is_not_and_the_rest_is(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    read = Wish(id="w1", tool="memory_recall", arguments={"key": "colour"})
    time = Wish(id="w2", tool="system_time", arguments={})
    async with open_test_app(tmp_path) as app:
        assert app.parts.agents
        with anyio.fail_after(30):
            agents = await app.parts.agents.opened()
            sessions = agents.sessions
            opened = await sessions.open("assistant", app.caller.id, "default", most=20)
            run, none = new_id("run"), Labels.NONE
            asked = Message(speaker=Speaker.USER, text="two things, please")
            wanted = Message(speaker=Speaker.AGENT, wishes=(read, time))
            await sessions.begin(opened.id, run, asked, none)
            await sessions.said(opened.id, run, wanted)
            await begin_call(sessions, run, read)
            before = interrupted(app, opened.id, run, [asked, wanted], begun=frozenset({"w1"}))
            await agents.resuming.resume(before)
            after = await sessions.open("assistant", app.caller.id, "default", most=20)

    answered = {turn.answers: turn for turn in after.history if turn.speaker is Speaker.TOOL}
    assert set(answered) == {"w1", "w2"}
    assert "Nothing is remembered" in answered["w1"].text
    assert after.history[-1].speaker is Speaker.AGENT
    assert after.history[-1].text


async def test_a_run_that_goes_on_is_bound_to_what_it_was_bound_to(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    store = Wish(id="w1", tool="memory_store", arguments={"key": "a", "value": "b"})
    async with node(tmp_path) as (app, agents):
        sessions = agents.sessions
        bound = Bound(mode=Mode.PLANNING, task_id="task 7", blacklist=frozenset({"payments"}))
        call = app.make("agent:assistant", {"message": "remember"}, wish=bound)
        opened = await sessions.open("assistant", app.caller.id, "default", most=20)
        run, asked = new_id("run"), Message(speaker=Speaker.USER, text="remember")
        wanted = Message(speaker=Speaker.AGENT, wishes=(store,))
        origin = write_origin(call)
        await sessions.begin(opened.id, run, asked, Labels.NONE, Came(origin=origin))
        await sessions.said(opened.id, run, wanted)
        turns = [asked, wanted]
        await agents.resuming.resume(interrupted(app, opened.id, run, turns, origin=origin))
        after = await sessions.open("assistant", app.caller.id, "default", most=20)
        events = await app.events()

    (result,) = (turn for turn in after.history if turn.speaker is Speaker.TOOL)
    assert "Planning mode cannot use tools with side effects" in result.text
    assert {event.task_id for event in events} == {"task 7"}
    traces = {event.context["trace"] for event in events}
    assert traces == {call.chain.trace_id}


async def test_an_origin_is_read_as_it_was_written(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        bound = Bound(mode=Mode.PLANNING, task_id="half \ud800", blacklist=frozenset({"payments"}))
        call = app.make("agent:assistant", {"message": "hi"}, wish=bound)
    deeper = replace(call, chain=call.chain.deeper("agent:a"))
    found = read_origin(write_origin(deeper))

    assert found.context == call.context
    assert found.chain == replace(deeper.chain, deadline=None)


async def test_a_message_to_another_agent_is_not_sent_twice(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (_, agents):
        tools = ("agent_send", "agent:assistant", "openfang_agent_assistant", "nobody_knows")
        unsafe = [tool for tool in tools if agents.resuming.is_safe(Wish(id="w", tool=tool))]
        safe = agents.resuming.is_safe(Wish(id="w", tool="memory_recall"))

    assert (unsafe, safe) == ([], True)


async def test_a_run_that_nobody_can_go_on_with_says_so(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        sessions = agents.sessions
        opened = await sessions.open("assistant", "key:gone", "default", most=20)
        asked = Message(speaker=Speaker.USER, text="go")
        await sessions.begin(opened.id, "r", asked, Labels.NONE)
        before = replace(interrupted(app, opened.id, "r", [asked]), caller="key:gone")
        await agents.resuming.resume(before)
        after = await sessions.open("assistant", "key:gone", "default", most=20)

    assert after.history[-1].text == "I stopped: nobody could go on with it."
