"""Conversations outlive the process that holds them, and go on in one other."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.agents.killed_run import WISHES, begin_call, half_a_run, opened
from tests.slow import Slow

from openfang.agents.history import resumed, unanswered
from openfang.core.agents import Ended, Ending, Message, Speaker, Wish
from openfang.core.errors import SourceFailed
from openfang.core.labels import Labels
from openfang.storage.agent_runs import AgentRunStore
from openfang.storage.database import Database
from openfang.storage.sessions import SessionStore, delete
from openfang.storage.state import grow_run
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from openfang.agents.sessions import Interrupted, StoredSessions

pytestmark = pytest.mark.requirement("C6.4")

PROGRAM = Path(__file__).with_name("killed_run.py")


def user(text: str) -> Message:
    return Message(speaker=Speaker.USER, text=text)


def agent(text: str) -> Message:
    return Message(speaker=Speaker.AGENT, text=text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def sessions(folder: Path) -> Iterator[StoredSessions]:
    with opened(folder) as made:
        yield made


@pytest.fixture
def other(folder: Path) -> Iterator[StoredSessions]:
    """The same sessions, as another process sees them."""
    with opened(folder) as made:
        yield made


async def exchange(sessions: StoredSessions, number: int, *, name: str = "default") -> str:
    talk = await sessions.open("assistant", "key:me", name, most=20)
    run = f"run {name} {number}"
    await sessions.begin(talk.id, run, user(f"question {number}"), Labels.NONE)
    await sessions.said(talk.id, run, agent(f"answer {number}"))
    await sessions.end(talk.id, run, Ended(answer=""), Labels.NONE)
    return talk.id


async def test_a_session_is_found_again_and_shows_its_last_turns(sessions: StoredSessions) -> None:
    ids = {await exchange(sessions, number) for number in range(15)}
    talk = await sessions.open("assistant", "key:me", "default", most=5)
    assert ({talk.id}, talk.labels) == (ids, Labels.NONE)
    assert [one.text for one in talk.history] == [
        "question 13",
        "answer 13",
        "question 14",
        "answer 14",
    ]
    assert len((await sessions.open("assistant", "key:me", "default", most=100)).history) == 30
    assert not (await sessions.open("assistant", "key:me", "default", most=0)).history


async def test_each_agent_caller_and_name_has_a_session_of_its_own(
    sessions: StoredSessions,
) -> None:
    talks = [
        await sessions.open(agent, caller, name, most=20)
        for agent in ("a", "b")
        for caller in ("key:a", "key:b")
        for name in ("one", "two")
    ]
    assert len({talk.id for talk in talks}) == 8
    assert not any(talk.history for talk in talks)


async def test_two_that_begin_the_same_session_get_the_same(
    sessions: StoredSessions, other: StoredSessions
) -> None:
    here = await sessions.open("a", "key:me", "new", most=20)
    there = await other.open("a", "key:me", "new", most=20)
    assert here.id == there.id


async def test_a_long_memory_is_read_in_a_thread(sessions: StoredSessions) -> None:
    session = await exchange(sessions, 1)
    for number in range(6):
        await sessions.said(session, "r", user(f"{number} " * 30_000))
    talk = await sessions.open("assistant", "key:me", "default", most=100)
    assert [one.text[:1] for one in talk.history] == ["q", "a", "0", "1", "2", "3", "4", "5"]


async def test_what_a_run_has_seen_stays_with_the_session(sessions: StoredSessions) -> None:
    talk = await sessions.open("a", "key:me", "default", most=20)
    await sessions.begin(talk.id, "r", user("go"), Labels.USER_INPUT)
    await sessions.end(talk.id, "r", Ended(answer=""), Labels.USER_INPUT | Labels.PII)
    talk = await sessions.open("a", "key:me", "default", most=20)
    assert talk.labels == Labels.USER_INPUT | Labels.PII


@pytest.mark.requirement("C9.1")
async def test_so_does_what_came_into_a_run_that_never_ended(sessions: StoredSessions) -> None:
    talk = await sessions.open("a", "key:me", "default", most=20)
    await sessions.begin(talk.id, "r", user("go"), Labels.USER_INPUT)
    await sessions.writer.write(Unit(statements=(grow_run("r", Labels.EXTERNAL_NETWORK, 1),)))
    talk = await sessions.open("a", "key:me", "default", most=20)
    assert talk.labels == Labels.USER_INPUT | Labels.EXTERNAL_NETWORK


@pytest.mark.requirement("C9.1")
async def test_so_does_what_a_run_leaves_that_ends_while_the_session_is_opened(
    sessions: StoredSessions,
) -> None:
    talk = await sessions.open("a", "key:me", "default", most=20)
    await sessions.begin(talk.id, "r", user("go"), Labels.USER_INPUT)
    seen: list[str] = []

    async def end(sql: str) -> None:
        if not seen and " FROM sessions" in sql:
            seen.append(sql)
            await sessions.end(talk.id, "r", Ended(answer=""), Labels.USER_INPUT | Labels.PII)

    slow = replace(sessions, database=Slow(sessions.database, end))
    talk = await slow.open("a", "key:me", "default", most=20)
    assert (len(seen), talk.labels) == (1, Labels.USER_INPUT | Labels.PII)


async def test_a_run_is_not_taken_over_where_the_session_went_on_meanwhile(
    sessions: StoredSessions, other: StoredSessions
) -> None:
    session = await half_a_run(sessions)
    sessions.process.release()  # it is gone

    async def go_on(sql: str) -> None:
        if " FROM approvals" in sql:  # the last look before it is taken
            await other.said(session, "r2", user("something else"))

    slow = replace(other, database=Slow(other.database, go_on))
    assert await slow.interrupted() == []


async def test_a_call_that_was_cut_off_has_a_result_for_the_next_message(
    sessions: StoredSessions,
) -> None:
    await half_a_run(sessions)
    talk = await sessions.open("assistant", "key:me", "default", most=20)
    assert unanswered(talk.history) == ()
    assert [(one.answers, one.is_error) for one in talk.history[2:]] == [
        ("w1", False),
        ("w2", True),
        ("w3", True),
    ]


async def test_a_call_is_begun_until_its_result_is_kept(sessions: StoredSessions) -> None:
    session = await half_a_run(sessions)
    runs = AgentRunStore(sessions.database)
    assert await runs.begun("r1") == {"w2"}
    await begin_call(sessions, "r1", WISHES[1])
    await sessions.said(session, "r1", Message(speaker=Speaker.TOOL, answers="w2"))
    assert await runs.begun("r1") == frozenset()


async def test_nothing_is_said_in_a_session_that_was_deleted(sessions: StoredSessions) -> None:
    session = await exchange(sessions, 1)
    found = await SessionStore(sessions.database).get(session)
    assert found
    for step in delete(found, ()):
        await sessions.writer.write(Unit(statements=step))
    with pytest.raises(SourceFailed, match="deleted"):
        await sessions.begin(session, "r2", user("still there?"), Labels.NONE)
    assert await AgentRunStore(sessions.database).under_way() == []
    talk = await sessions.open("assistant", "key:me", "default", most=20)
    assert (talk.id != session, talk.history) == (True, ())


async def test_what_cannot_be_kept_stops_the_run_with_a_reason(
    folder: Path, sessions: StoredSessions
) -> None:
    session = await exchange(sessions, 1)
    await to_thread.run_sync((folder / "openfang.db").unlink)
    with pytest.raises(SourceFailed, match="could not be kept") as caught:
        await sessions.said(session, "r", agent("lost"))
    assert caught.value.way_out


@contextmanager
def child(act: str, folder: Path) -> Generator[subprocess.Popen[str]]:
    """A process of its own, which has said that it is ready."""
    running = subprocess.Popen(
        [sys.executable, PROGRAM, act, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(PROGRAM.parents[2])},
    )
    try:
        assert running.stdout
        assert running.stdout.readline()
        yield running
    finally:
        running.kill()
        running.communicate(timeout=30)


def killed(folder: Path) -> None:
    """Let a process begin three runs, and kill it."""
    with child("begin", folder):
        pass


async def test_what_a_killed_process_was_at_goes_on_without_repeating_anything(
    folder: Path, sessions: StoredSessions
) -> None:
    await to_thread.run_sync(killed, folder)
    found = await sessions.interrupted()
    assert [one.run for one in found] == ["r0", "r1", "r2"]
    one = found[0]
    assert (one.agent, one.caller, one.labels) == ("assistant", "key:me", Labels.USER_INPUT)
    assert [turn.speaker.value for turn in one.turns] == ["user", "agent", "tool"]
    assert one.turns[1].wishes == WISHES
    assert one.begun == {"w2"}
    whole = resumed(one.turns, one.begun, _reads)
    assert [wish.id for wish in unanswered(whole)] == ["w3"]
    assert (await sessions.reopen(one, most=20)).history == ()
    assert await sessions.interrupted() == []


def _reads(wish: Wish) -> bool:
    return wish.tool == "file_read"


async def test_a_run_goes_on_behind_what_was_said_before_it(
    folder: Path, sessions: StoredSessions
) -> None:
    await exchange(sessions, 1, name="talk 1")
    await to_thread.run_sync(killed, folder)
    found = {one.run: one for one in await sessions.interrupted()}
    talk = await sessions.reopen(found["r1"], most=20)
    assert [one.text for one in talk.history] == ["question 1", "answer 1"]
    assert found["r1"].turns[0].text == "three, please"


async def test_two_processes_never_take_over_the_same_run(folder: Path) -> None:
    await to_thread.run_sync(killed, folder)

    def race() -> list[str]:
        with child("take", folder) as one, child("take", folder) as two, child("take", folder) as n:
            takers = (one, two, n)
            for taker in takers:
                assert taker.stdin
                taker.stdin.write("\n")
                taker.stdin.flush()
            outputs = [taker.stdout.readline() for taker in takers if taker.stdout]
        return sorted(run for output in outputs for run in json.loads(output))

    assert await to_thread.run_sync(race) == ["r0", "r1", "r2"]


async def test_a_run_of_a_living_process_is_left_alone(
    sessions: StoredSessions, other: StoredSessions
) -> None:
    await half_a_run(sessions)
    assert await sessions.interrupted() == []
    assert await other.interrupted() == []


async def orphaned(sessions: StoredSessions) -> str:
    """Leave a run behind, as a process that died without a word does."""
    session = await half_a_run(sessions)
    sql = "UPDATE agent_runs SET process = 'gone'"
    await sessions.writer.write(Unit(statements=((sql, ()),)))
    return session


def ending(sessions: StoredSessions) -> list[tuple[str, str]]:
    return sessions.database.read_now("SELECT state, ending FROM agent_runs WHERE id = 'r1'")  # type: ignore[return-value]


@pytest.mark.usefixtures("hasty")
async def test_a_database_that_is_locked_at_the_start_is_waited_for(
    sessions: StoredSessions, other: StoredSessions
) -> None:
    await orphaned(sessions)
    found: list[Interrupted] = []

    async def take() -> None:
        found.extend(await other.interrupted())

    assert isinstance(other.database, Database)
    file = other.database.path
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            with closing(sqlite3.connect(file, isolation_level=None)) as locking:
                locking.execute("BEGIN IMMEDIATE")
                group.start_soon(take)
                with pytest.raises(SourceFailed):
                    await other.said("session_1", "r1", user("hello"))
                locking.execute("ROLLBACK")
    assert [one.run for one in found] == ["r1"]


async def test_of_two_that_look_at_the_same_moment_one_gets_it(
    sessions: StoredSessions, other: StoredSessions
) -> None:
    await orphaned(sessions)
    found: list[Interrupted] = []

    async def take(who: StoredSessions) -> None:
        found.extend(await who.interrupted())

    async with anyio.create_task_group() as tasks:
        for who in (sessions, other, sessions):
            tasks.start_soon(take, who)
    assert [one.run for one in found] == ["r1"]


async def test_one_that_had_answered_is_ended_and_not_asked_again(
    sessions: StoredSessions,
) -> None:
    session = await orphaned(sessions)
    for wish in WISHES[1:]:
        await sessions.said(session, "r1", Message(speaker=Speaker.TOOL, answers=wish.id))
    await sessions.said(session, "r1", agent("All three are read."))
    assert await sessions.interrupted() == []
    assert ending(sessions) == [("ended", Ending.ANSWERED.value)]


async def test_one_whose_session_went_on_is_ended(sessions: StoredSessions) -> None:
    await orphaned(sessions)
    await exchange(sessions, 7)
    assert await sessions.interrupted() == []
    assert ending(sessions) == [("ended", Ending.FAILED.value)]
    talk = await sessions.open("assistant", "key:me", "default", most=20)
    assert talk.labels == Labels.USER_INPUT


async def test_one_that_takes_every_process_along_is_given_up(sessions: StoredSessions) -> None:
    await orphaned(sessions)
    for _ in range(3):
        assert [one.run for one in await sessions.interrupted()] == ["r1"]
        sql = "UPDATE agent_runs SET process = 'gone'"
        await sessions.writer.write(Unit(statements=((sql, ()),)))
    assert await sessions.interrupted() == []
    assert ending(sessions) == [("ended", Ending.FAILED.value)]
    assert await AgentRunStore(sessions.database).begun("r1") == frozenset()


async def test_a_run_that_was_taken_over_goes_on_as_any_other(sessions: StoredSessions) -> None:
    session = await orphaned(sessions)
    (one,) = await sessions.interrupted()
    for wish in WISHES[1:]:
        await sessions.said(one.session, one.run, Message(speaker=Speaker.TOOL, answers=wish.id))
    await sessions.said(one.session, one.run, agent("done"))
    await sessions.end(one.session, one.run, Ended(answer="done"), one.labels)
    assert ending(sessions) == [("ended", Ending.ANSWERED.value)]
    talk = await sessions.open("assistant", "key:me", "default", most=20)
    assert (talk.id, len(talk.history)) == (session, 6)
    assert replace(talk.history[-1], text="") == agent("")
