"""After `kill -9` a run goes on in the next daemon, and repeats nothing that it had finished."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.agents.killed_run import begin_call
from tests.agents.test_node import ASSISTANT, node, put

from openfang.agents.origin import read_origin, write_origin
from openfang.agents.ports import Busy, Came
from openfang.agents.sessions import Interrupted
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.calls import Mode
from openfang.core.errors import AuditUnavailable, CallRefused, GuardTripped, SourceFailed
from openfang.core.ids import Kind, new_id
from openfang.core.labels import Labels
from openfang.pipeline.invoke import Pipeline
from openfang.policy.context import Wish as Bound
from openfang.storage.agent_runs import AgentRunStore, enqueue
from openfang.storage.ports import Unsure
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.app.agents.running import Agents
    from openfang.core.calls import Call
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.storage.ports import Writes
    from openfang.storage.units import Head, Unit, Written
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
        last=len(turns),
        taken=0,
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


async def queued(app: OpenApp, agents: Agents, *turns: Message) -> tuple[str, str]:
    """Leave a run on a queue, as whoever finds its process gone does; give its session and id."""
    sessions, run = agents.sessions, new_id("run")
    opened = await sessions.open("assistant", app.caller.id, "default", most=20)
    asked = Message(speaker=Speaker.USER, text="what time is it?")
    await sessions.begin(opened.id, run, asked, Labels.NONE)
    for turn in turns:
        await sessions.said(opened.id, run, turn)
    left = await AgentRunStore(app.parts.database).still(run)
    assert left
    await app.parts.broker.append([], (enqueue(left),))
    return opened.id, run


async def test_a_run_is_taken_from_its_queue_and_ended_once(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        session, run = await queued(app, agents)
        again = Message(speaker=Speaker.USER, text="and now?")
        with pytest.raises(Busy):  # who comes next waits for it
            await agents.sessions.begin(session, new_id("run"), again, Labels.NONE)
        assert await agents.sessions.interrupted() == []  # it is nobody's to take elsewhere
        assert [await agents.resuming.taken(run) for _ in range(2)] == [True, True]
        sql = "SELECT process, taken, ending FROM agent_runs WHERE id = ?"
        (found,) = await app.parts.database.read(sql, (run,))
        after = await agents.sessions.open("assistant", app.caller.id, "default", most=20)

    assert found == (f"queue:{agents.sessions.process.id}", 1, "answered")
    assert [turn.speaker for turn in after.history][-1] is Speaker.AGENT


async def test_a_run_that_nobody_takes_from_its_queue_is_ended(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        await agents.resuming.give_up(run)
        await agents.resuming.give_up(run)
        left = await AgentRunStore(app.parts.database).still(run)
        after = await agents.sessions.open("assistant", app.caller.id, "default", most=20)

    assert (left, after.history[-1].text) == (None, "I stopped: nobody could go on with it.")


async def test_a_run_that_is_refused_when_it_goes_on_is_ended(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        app.parts.remove(Kind.AGENT, "assistant")  # its caller does not see it any more
        assert await agents.resuming.taken(run)
        after = await agents.sessions.open("assistant", app.caller.id, "default", most=20)

    assert after.history[-1].text == "I stopped: nobody could go on with it."


async def test_a_run_that_nobody_waits_for_is_left_to_the_process_that_follows(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        stops = replace(agents.around, tools=_stops)
        agents.running["assistant"]._around = stops  # pyright: ignore[reportPrivateUsage]
        app.parts.ending = True
        assert not await agents.resuming.taken(run)
        left = await AgentRunStore(app.parts.database).still(run)

    assert left
    assert left.taken == 1


@pytest.mark.parametrize("fails", [1, 9])
async def test_a_run_whose_end_was_not_kept_is_taken_again_and_in_the_end_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    monkeypatch.setattr("openfang.app.agents.resuming._AGAIN_SECONDS", 0.0)
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        source, left = agents.running["assistant"], [*range(fails)]
        whole = source._around  # pyright: ignore[reportPrivateUsage]

        def not_kept() -> bool:
            left.pop()
            if not left:
                source._around = whole  # pyright: ignore[reportPrivateUsage]
            return True

        source._around = replace(whole, ending=not_kept, tools=_stops)  # pyright: ignore[reportPrivateUsage]
        with anyio.fail_after(20):
            assert await agents.resuming.taken(run)
        sql = "SELECT taken, state, ending FROM agent_runs WHERE id = ?"
        (found,) = await app.parts.database.read(sql, (run,))

    assert found == ((2, "ended", "answered") if fails == 1 else (4, "ended", "failed"))


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (GuardTripped("Too often.", rule="rate", retry_after=0.1), "answered"),
        (AuditUnavailable("The disk is full."), "answered"),
        (GuardTripped("Too deep.", rule="recursion_limit"), "failed"),
    ],
)
async def test_a_run_that_is_too_much_just_then_waits_and_others_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: CallRefused, ending: str
) -> None:
    monkeypatch.setattr("openfang.app.agents.resuming._PAUSES", (0.0, 0.0))
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        tripped, invoked = [error], Pipeline.invoke

        async def invoke(self: Pipeline, call: Call) -> Result:
            if tripped:
                raise tripped.pop()
            return await invoked(self, call)

        monkeypatch.setattr(Pipeline, "invoke", invoke)
        with anyio.fail_after(20):
            assert await agents.resuming.taken(run)
        sql = "SELECT ending FROM agent_runs WHERE id = ?"
        assert await app.parts.database.read(sql, (run,)) == [(ending,)]


async def test_a_run_that_waits_while_its_session_goes_on_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfang.app.agents.resuming._PAUSES", (0.0, 0.0))
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        session, run = await queued(app, agents)
        tripped, said, invoked = [True], list[str](), Pipeline.invoke
        newer = app.make("agent:assistant", {"message": "what time is it?", "session": session})

        async def invoke(self: Pipeline, call: Call) -> Result:
            if not tripped:
                return await invoked(self, call)
            tripped.clear()
            said.append((await invoked(self, newer)).text)
            raise GuardTripped("Too often.", rule="rate", retry_after=0.1)

        monkeypatch.setattr(Pipeline, "invoke", invoke)
        with anyio.fail_after(20):
            assert await agents.resuming.taken(run)
        sql = "SELECT ending FROM agent_runs WHERE id = ?"
        assert await app.parts.database.read(sql, (run,)) == [("failed",)]
        after = await agents.sessions.open("assistant", app.caller.id, "default", most=20)

    assert said == [after.history[-1].text]


async def test_a_run_that_waits_while_somebody_takes_it_is_theirs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfang.app.agents.resuming._PAUSES", (0.0, 0.0))
    monkeypatch.setattr("openfang.app.agents.resuming._AGAIN_SECONDS", 0.0)
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        session, run = await queued(app, agents)
        theirs, went, invoked = list[Interrupted](), list[str](), Pipeline.invoke

        async def invoke(self: Pipeline, call: Call) -> Result:
            went.append(call.tool)
            if theirs:
                return await invoked(self, call)
            left = await AgentRunStore(app.parts.database).still(run)
            assert left
            one = await agents.sessions.take(left)
            assert one
            theirs.append(one)
            raise GuardTripped("Too often.", rule="rate", retry_after=0.1)

        monkeypatch.setattr(Pipeline, "invoke", invoke)
        with anyio.fail_after(20):
            assert not await agents.resuming.taken(run)
            assert went == ["agent:assistant"]
            await agents.resuming.resume(theirs[0])
        sql = "SELECT taken, ending FROM agent_runs WHERE session = ?"
        assert await app.parts.database.read(sql, (session,)) == [(2, "answered")]


async def test_who_would_go_on_with_a_run_that_nobody_took_begins_no_other(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, _):
        call = app.make("agent:assistant", {"message": "what time is it?"})
        with pytest.raises(SourceFailed, match="goes on with this run"):
            await app.invoke(replace(call, resumes=new_id("run")))
        assert await app.parts.database.read("SELECT 1 FROM agent_runs") == []


class Doubtful:
    """A writer whose connection breaks once in the commit of a unit that is kept all the same."""

    def __init__(self, writer: Writes) -> None:
        self._writer = writer
        self.units = 0

    @property
    def head(self) -> Head:
        return self._writer.head

    async def write(self, unit: Unit) -> Written:
        written = await self._writer.write(unit)
        self.units += 1
        if self.units == 1:
            raise Unsure("The connection broke in the commit.")
        return written


async def test_a_run_whose_taking_is_in_doubt_and_was_kept_is_gone_on_with(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        _, run = await queued(app, agents)
        sessions, left = agents.sessions, await AgentRunStore(app.parts.database).still(run)
        assert left
        writer = Doubtful(sessions.writer)
        with anyio.fail_after(20):
            one = await replace(sessions, writer=writer).take(left)
            assert one is not None
            assert (one.run, writer.units) == (run, 1)
            assert await replace(sessions, writer=writer).take(left) is None, "it is taken already"


def _stops(caller: object) -> list[Tool]:
    raise SourceFailed(f"{caller} is stopped")
