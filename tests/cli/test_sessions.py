"""`openfang sessions`, in process and over a daemon: the same words."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.cli.conftest import serving

from openfang.agents.sessions import StoredSessions
from openfang.audit.chain import digest
from openfang.core.agents import Ended, Message, Speaker, Wish
from openfang.core.labels import Labels
from openfang.storage.database import at_once, open_home
from openfang.storage.processes import Process
from openfang.storage.state import Settings
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.4")

QUESTION = "What is in my notes?"
WISH = Wish(id="w1", tool="file_read", arguments={"path": "notes.txt"})
TURNS = (
    Message(speaker=Speaker.USER, text=QUESTION),
    Message(speaker=Speaker.AGENT, wishes=(WISH,)),
    Message(speaker=Speaker.TOOL, text="milk\x1b[2J", answers="w1"),
    Message(speaker=Speaker.AGENT, text="Milk, größer als gedacht."),
)


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def running(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    if request.param == "in-process":
        yield made
        return
    made.configure("[limits]\ncells_per_minute = 100_000\nburst = 100_000")
    with serving(made):
        yield made


@pytest.fixture
def cli(running: Cli) -> Cli:
    """The command on a home in which nobody has said anything."""
    for table in ("sessions", "turns", "agent_runs"):
        with closing(sqlite3.connect(running.home / "openfang.db")) as database, database:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
    return running


def talk(home: Path, caller: str = "key:admin", *, name: str = "default") -> str:
    """Have a conversation with an agent, in a process of its own."""
    file = home / "openfang.db"
    with closing(open_home(file)) as database:
        node = at_once(Settings(database).get("node"))
        assert node
        writer = Writer(path=file, node=node, digest=digest)
        process = Process(home / "run")
        sessions = StoredSessions(database=database, writer=writer, process=process)
        try:
            return anyio.run(_talk, sessions, caller, name)
        finally:
            writer.close()
            process.release()


async def _talk(sessions: StoredSessions, caller: str, name: str) -> str:
    opened = await sessions.open("assistant", caller, name, most=20)
    run = f"run {opened.id}"
    await sessions.begin(opened.id, run, TURNS[0], Labels.NONE)
    for message in TURNS[1:]:
        await sessions.said(opened.id, run, message)
    await sessions.end(opened.id, run, Ended(answer=""), Labels.USER_INPUT)
    return opened.id


def test_they_are_listed_newest_first(cli: Cli) -> None:
    empty = cli("sessions", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "openfang chat" in empty.err
    made = [talk(cli.home, name=name) for name in ("one", "two", "three")]
    shown = cli("sessions", "list").out.splitlines()
    assert shown[::3] == made[::-1]
    assert shown[1] == f"  {QUESTION}"
    assert shown[2].startswith("  key:admin with assistant (three), 4 messages, last at 20")
    body = cli("sessions", "list", "--limit", "2", "--json").json
    assert [one["id"] for one in body["sessions"]] == made[:0:-1]
    rest = cli("sessions", "list", "--after", body["after"], "--json").json
    assert ([one["id"] for one in rest["sessions"]], rest["after"]) == ([made[0]], None)
    assert body["after"] in cli("sessions", "list", "--limit", "2").err
    assert cli("sessions", "list", "--agent", "other", "--json").json["sessions"] == []


def test_one_is_shown_whole(cli: Cli) -> None:
    session = talk(cli.home)
    shown = cli("sessions", "show", session)
    assert shown.code == 0
    assert f"id          {session}\n" in shown.out
    assert "messages    4\n" in shown.out
    spoken = shown.out.split("\n\n")[1:]
    assert [part.partition(",")[0] for part in spoken] == [
        "user",
        "assistant",
        "result of w1",
        "assistant",
    ]
    assert spoken[1].endswith('\ncalls file_read as w1: {"path":"notes.txt"}')
    assert spoken[2].endswith("\nmilk\\x1b[2J")
    body = cli("sessions", "show", session, "--json").json
    assert body["labels"] == ["user_input"]
    assert [turn["text"] for turn in body["turns"]] == [message.text for message in TURNS]


def test_one_is_exported_as_lines_and_as_markdown(cli: Cli) -> None:
    session = talk(cli.home)
    lines = cli("sessions", "export", session)
    shown = cli("sessions", "show", session, "--json").json
    assert [one["turn"] for one in lines.lines[1:]] == shown.pop("turns")
    assert lines.lines[0]["session"] == shown
    text = cli("sessions", "export", session, "--format", "md").out
    assert text.startswith(f"# {QUESTION}\n")
    assert "> Milk, größer als gedacht.\n" in text


def test_a_deleted_one_is_gone(cli: Cli) -> None:
    session, other = talk(cli.home), talk(cli.home, name="other")
    deleted = cli("sessions", "delete", session)
    assert (deleted.code, deleted.out) == (0, f"{session} is deleted.\n")
    for act in ("show", "export", "delete"):
        again = cli("sessions", act, session)
        assert (again.code, again.out) == (1, "")
        assert f"No session {session}." in again.err
        assert "openfang sessions list" in again.err
    assert cli("sessions", "delete", other, "--json").json["id"] == other
    records = cli("audit", "search", "--event", "session_deleted", "--json").lines
    assert [one["payload"]["session"] for one in records][-2:] == [session, other]
    assert QUESTION not in json.dumps(cli("audit", "export").lines)
    assert cli.stored("SELECT COUNT(*) FROM turns") == [(0,)]


def test_another_callers_does_not_exist(cli: Cli) -> None:
    key = cli("keys", "create", "user", "--json").json["secret"]
    own, other = talk(cli.home, "key:user"), talk(cli.home)
    as_user = {"OPENFANG_API_KEY": key}
    listed = cli("sessions", "list", "--json", env=as_user).json["sessions"]
    assert [one["id"] for one in listed] == [own]
    for act in ("show", "export", "delete"):
        assert cli("sessions", act, other, env=as_user).code == 1
    assert len(cli("sessions", "list", "--json").json["sessions"]) == 2
    assert cli("sessions", "delete", own, env=as_user).code == 0


def test_what_cannot_be_asked_is_told(cli: Cli) -> None:
    for words, code, told in (
        (("list", "--limit", "0"), 2, "--limit is 0"),
        (("list", "--limit", "501"), 2, "--limit is 501"),
        (("list", "--after", "nowhere"), 2, "--after is 'nowhere'"),
        (("show", ""), 1, "No session"),
        (("show", "../keys"), 1, "No session ../keys"),
        (("export", "x", "--format", "pdf"), 2, "pdf"),
        (("delete",), 2, "SESSION"),
    ):
        ran = cli("sessions", *words)
        assert (words, ran.code) == (words, code)
        assert told in ran.err, ran.err
