"""`openfang chat`: piped and in a terminal, in process and over a daemon."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving
from tests.forked import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.cli.conftest import Cli
    from tests.forked import Process

pytestmark = [pytest.mark.requirement("C6.4", "C12.5"), pytest.mark.needs("setsid")]

LIMITS = "[limits]\ncells_per_minute = 1_000_000\nburst = 1_000_000"
SLOW = """
import asyncio

async def run(message, context):
    context.stream("one two ")
    if message != "quick":
        await asyncio.sleep(100)
    context.stream("three")
    return "one two three"
"""
SECONDS = 40


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    folder = made.home / "agents" / "slow"
    folder.mkdir()
    (folder / "agent.py").write_text(SLOW)
    (folder / "agent.toml").write_text('name = "slow"\nmodule = "python:agent.py"\n')
    if request.param == "in-process":
        yield made
        return
    made.configure(LIMITS)
    with serving(made):
        yield made


@dataclass(slots=True)
class Terminal:
    """A person at a terminal: types, and reads what is there to be seen."""

    process: Process
    file: int
    seen: str = ""

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def wait_for(self, pattern: str) -> str:
        """Read on until this is seen; forget all up to there."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.seen)):
            assert self.read(deadline - time.monotonic()), (pattern, self.seen)
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def interrupt(self) -> None:
        """Press Ctrl-C until there is a new prompt: one that comes between two reads is lost."""
        for _ in range(SECONDS // 2):
            self.type("\x03")
            patience = time.monotonic() + 2
            while "> " not in self.seen and self.read(patience - time.monotonic()):
                pass
            if "> " in self.seen:
                break
        self.wait_for("> ")

    def read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.file], [], [], max(0, seconds))
        try:
            piece = os.read(self.file, 65_536) if ready else b""
        except OSError:  # the other side has ended
            piece = b""
        self.seen += piece.decode()
        return bool(piece)

    def leave(self) -> int:
        return self.process.wait(timeout=SECONDS)


@contextmanager
def chatting(cli: Cli, *arguments: str) -> Generator[Terminal]:
    environment = cli.environment({"TERM": "xterm", "COLUMNS": "200"})
    with at_terminal(("chat", *arguments), environment, controlling=True) as (process, screen):
        yield Terminal(process, screen)


def test_each_line_of_a_pipe_is_a_message(cli: Cli) -> None:
    ran = cli("chat", "echo", "--session", "piped", stdin="one\n\n  two  words \n//three\n")
    assert (ran.code, ran.out, ran.err) == (0, "one\ntwo  words\n/three\n", "")
    (found,) = [
        one
        for one in cli("sessions", "list", "--agent", "echo", "--json").json["sessions"]
        if one["name"] == "piped"
    ]
    turns = cli("sessions", "show", found["id"], "--json").json["turns"]
    assert [one["text"] for one in turns if one["speaker"] == "user"] == [
        *("one", "two  words", "/three"),
    ]


def test_commands_work_in_a_pipe_too(cli: Cli) -> None:
    asked = ["hello", "/new", "hello", "/session second talk", "hello"]
    words = [*asked, "/sessions", "/sessions x", "/nothing", "/quit", "never said"]
    ran = cli("chat", "assistant", "--session", "first", stdin="\n".join(words))
    assert ran.code == 0
    assert ran.out.count("planner") == 3
    assert re.search(r"^second talk\n  hello\n  2 messages, last at 20", ran.out, re.MULTILINE)
    assert re.search(r"^first\n  hello\n  2 messages, last at 20", ran.out, re.MULTILINE)
    assert re.search(r"^conversation (20[-0-9 :]+ [0-9a-f]{4})$", ran.err, re.MULTILINE)
    assert "There is no /nothing" in ran.err
    assert "/sessions is not said like this" in ran.err
    assert "never said" not in json.dumps(cli("sessions", "list", "--json").json)


def test_each_call_is_a_line_with_its_outcome_and_its_place_in_the_audit(cli: Cli) -> None:
    ran = cli("chat", "assistant", stdin="what time is it?\nread the file nothing.txt\n")
    asked, read = ran.err.splitlines()
    found = re.fullmatch(r"  system_time {}: ok, audit (\d+)-(\d+)", asked)
    assert found
    assert read.startswith('  file_read {"path":"nothing.txt"}: error, audit ')
    records = cli("audit", "search", "--tool", "builtin:system_time", "--json").lines
    numbers = {record["audit_id"] for record in records}
    assert {int(found[1]), int(found[2])} <= numbers


def test_a_pipe_that_is_refused_ends_with_the_highest_code(cli: Cli) -> None:
    ran = cli("chat", "nobody", stdin="hello\n")
    assert (ran.code, "No agent nobody" in ran.err) == (1, True)
    long = cli("chat", "echo", stdin=f"one\n{'x' * 1_100_000}\ntwo\n")
    assert (long.code, long.out) == (3, "one\ntwo\n")
    assert "error:" in long.err


def test_words_are_shown_as_they_come_and_ctrl_c_stops_the_answer_alone(cli: Cli) -> None:
    with chatting(cli, "slow") as terminal:
        terminal.wait_for("> ")
        terminal.type("take your time\n")
        terminal.wait_for("one two ")
        terminal.type("\x03")
        terminal.wait_for("stopped")
        terminal.wait_for("> ")
        terminal.type("quick\n")
        terminal.wait_for("one two three\r\n")
        terminal.wait_for("> ")
        terminal.type("half a line")
        terminal.wait_for("half a line")
        terminal.interrupt()
        terminal.type("\x04")
        assert terminal.leave() == 0
    ended = cli("audit", "search", "--event", "tool_invocation_end", "--json").lines
    outcomes = [one["payload"]["outcome"] for one in ended if "slow" in one["context"]["tool"]]
    assert outcomes[-2:] == ["cancelled", "ok"]
    assert "half a line" not in json.dumps(cli("sessions", "list", "--json").json)


def test_what_was_typed_comes_back_with_the_arrow(cli: Cli) -> None:
    with chatting(cli, "echo") as terminal:
        terminal.wait_for("> ")
        terminal.type("once more\n")
        terminal.wait_for("once more\r\n.*once more")
        terminal.wait_for("> ")
        terminal.type("\x1b[A!\n")
        terminal.wait_for("once more!\r\n.*once more!")
        terminal.wait_for("> ")
        terminal.type("/quit\n")
        assert terminal.leave() == 0


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_a_chat_that_is_told_to_end_takes_its_answer_along(cli: Cli, told: signal.Signals) -> None:
    with chatting(cli, "slow", "--session", told.name) as terminal:
        terminal.wait_for("> ")
        terminal.type("take your time\n")
        terminal.wait_for("one two ")
        terminal.process.send_signal(told)
        assert terminal.leave() == 128 + told
        assert "Traceback" not in terminal.seen
    deadline = time.monotonic() + SECONDS
    while True:
        ended = cli("audit", "search", "--event", "tool_invocation_end", "--json").lines
        mine = [one for one in ended if "slow" in one["context"]["tool"]]
        started = cli("audit", "search", "--event", "tool_invocation_start", "--json").lines
        slow = [one for one in started if "slow" in one["context"]["tool"]]
        if len(mine) == len(slow):
            break
        assert time.monotonic() < deadline
    assert mine[-1]["payload"]["outcome"] == "cancelled"
