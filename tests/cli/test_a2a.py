"""`openfang a2a`: tasks for our agents and messages elsewhere, in process and over a daemon."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving
from tests.cli.test_chat import Terminal
from tests.forked import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C5.3", "C5.6", "C12.5")

CONFIG = """
[a2a]
enabled = true
[limits]
cells_per_minute = 1_000_000
burst = 1_000_000
"""
PEER = """
[[a2a.external_agents]]
name = "elsewhere"
url = "{url}"
auth = "{key}"
allow_private = true
trust = "medium"
[[a2a.external_agents]]
name = "gone"
url = "http://127.0.0.1:9"
"""
PROGRAMS = {
    "asker": """
async def run(message, context):
    colour = await context.ask("Which colour?")
    context.artifact("plan.md", "# " + colour)
    return f"{message} in {colour}"
""",
    "slow": """
import asyncio

async def run(message, context):
    context.stream("one two ")
    await asyncio.sleep(100)
    return "one two three"
""",
    "broken": 'def run(message, context):\n    raise RuntimeError("and fall")\n',
}


def write_programs(cli: Cli) -> None:
    for name, text in PROGRAMS.items():
        folder = cli.home / "agents" / name
        folder.mkdir()
        (folder / "agent.py").write_text(text)
        (folder / "agent.toml").write_text(f'name = "{name}"\nmodule = "python:agent.py"\n')


@pytest.fixture(scope="module")
def elsewhere(make_home: Callable[[], Cli]) -> Iterator[tuple[str, str]]:
    """Another node: its address, and a key to it."""
    other = make_home()
    write_programs(other)
    other.configure(CONFIG.replace("enabled = true", 'enabled = true\nprimary_agent = "asker"'))
    with serving(other):
        daemon = json.loads((other.home / "daemon.json").read_text())
        yield f"http://{daemon['listen_addr']}", (other.home / "key").read_text().strip()


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def cli(
    request: pytest.FixtureRequest, make_home: Callable[[], Cli], elsewhere: tuple[str, str]
) -> Iterator[Cli]:
    made = make_home()
    write_programs(made)
    url, key = elsewhere
    made.configure(CONFIG + PEER.format(url=url, key=key))
    if request.param == "in-process":
        yield made
        return
    with serving(made):
        yield made


@contextmanager
def typing(cli: Cli, *arguments: str) -> Generator[Terminal]:
    """A person who runs one command in a terminal."""
    environment = cli.environment({"TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"})
    with at_terminal(arguments, environment, controlling=True) as (process, screen):
        yield Terminal(process, screen)


def shown(cli: Cli, task: str) -> Any:
    (found,) = [one for one in cli("a2a", "tasks", "--json").json["tasks"] if one["id"] == task]
    return found


def test_a_message_to_an_agent_of_ours_is_a_task_and_its_answer_is_printed(cli: Cli) -> None:
    ran = cli("a2a", "send", "echo", "hello there", "--context", "talk")
    assert (ran.code, ran.out) == (0, "hello there\n")
    first, *_, last = ran.err.splitlines()
    task = first.split()[0]
    assert (first, last) == (f"{task} of echo: working", "completed")
    found = shown(cli, task)
    assert (found["state"], found["context"], found["agent"]) == ("completed", "talk", "echo")
    again = cli("a2a", "watch", task)
    assert (again.code, again.out) == (0, "hello there\n")
    events = cli("a2a", "watch", task, "--json").lines
    assert [one["event"] for one in events] == ["task"]
    assert events[0]["data"] == found
    same = cli("a2a", "send", "agent:echo", "again", "--context", "talk", "--json").json
    assert (same["session"], same["state"]) == (found["session"], "completed")


def test_tasks_are_listed_with_what_they_are_about(cli: Cli) -> None:
    task = cli("a2a", "send", "echo", "list me", "--context", "listed", "--json").json["id"]
    ran = cli("a2a", "tasks", "--agent", "echo", "--state", "completed", "--context", "listed")
    lines = ran.out.splitlines()
    assert lines[:2] == [task, "  list me"]
    assert lines[2].startswith("  completed, key:admin to echo (listed), last change at 20")
    nothing = cli("a2a", "tasks", "--context", "nowhere")
    assert (nothing.code, nothing.out) == (0, "")
    assert "There is no task" in nothing.err
    for _ in range(2):
        cli("a2a", "send", "echo", "one more", "--context", "listed")
    everything = cli("a2a", "tasks", "--all", "--context", "listed", "--json").json
    assert (everything["total"], len(everything["tasks"]), everything["after"]) == (3, 3, None)
    assert cli("a2a", "tasks", "--state", "done").code == 2
    assert cli("a2a", "tasks", "--agent", "nobody").code == 1


def test_what_goes_wrong_is_told_by_the_exit_code(cli: Cli) -> None:
    broken = cli("a2a", "send", "broken", "hello")
    assert (broken.code, broken.out) == (4, "")
    assert "failed: " in broken.err
    assert "and fall" in broken.err
    unknown = cli("a2a", "send", "nobody", "hello")
    assert (unknown.code, "No agent nobody is known" in unknown.err) == (1, True)
    for command in ("watch", "cancel"):
        ran = cli("a2a", command, "task_nowhere")
        assert (ran.code, "No task task_nowhere" in ran.err) == (1, True)
    ended = cli("a2a", "send", "echo", "hello", "--json").json["id"]
    refused = cli("a2a", "cancel", ended, "--json")
    assert (refused.code, refused.json["status"]) == (1, 409)


@pytest.mark.needs("setsid")
def test_a_person_sees_the_words_as_they_come_and_is_asked_in_the_terminal(cli: Cli) -> None:
    with typing(cli, "a2a", "send", "asker", "paint it") as terminal:
        terminal.wait_for("input-required: Which colour")
        terminal.wait_for("> ")
        terminal.type("\n")
        terminal.wait_for("> ")
        terminal.type("red\n")
        terminal.wait_for("paint it in red")
        terminal.wait_for("made plan.md")
        terminal.wait_for("completed")
        assert terminal.leave() == 0


def test_a_question_that_nobody_answers_ends_with_its_code(cli: Cli) -> None:
    ran = cli("a2a", "send", "asker", "paint it", "--json")
    assert (ran.code, ran.json["state"]) == (5, "input-required")
    assert ran.json["status"]["parts"][0]["text"] == "Which colour?"


def test_a_message_elsewhere_is_a_call(cli: Cli, elsewhere: tuple[str, str]) -> None:
    asked = cli("a2a", "send", "elsewhere", "paint it")
    assert (asked.code, "Which colour?" in asked.out) == (5, True)
    hint = next(line for line in asked.err.splitlines() if line.startswith("answer it: "))
    task = hint.split()[-1]
    done = cli("a2a", "send", "a2a:elsewhere", "red", "--task", task, "--json")
    assert (done.code, done.json["content"][0]["text"]) == (0, "paint it in red")
    assert "untrusted_agent" in done.json["labels"]
    gone = cli("a2a", "cancel", task, "--peer", "elsewhere")
    assert gone.code == 4
    asked = cli("a2a", "send", "elsewhere", "paint it", "--json").json["structured"]["task"]
    ended = cli("a2a", "cancel", asked, "--peer", "elsewhere")
    assert (ended.code, ended.out) == (0, f"{asked} is canceled\n")
    away = cli("a2a", "send", "gone", "hello")
    assert (away.code, "The agent gone was not reached yet" in away.err) == (4, True)
    refused = cli("a2a", "discover", elsewhere[0])
    assert (refused.code, "127.0.0.1" in refused.out) == (4, True)
    assert cli("a2a", "send", "elsewhere", "x", "--no-wait").code == 2


@pytest.mark.requirement("C5.9")
def test_agents_elsewhere_are_listed_with_how_they_are(
    cli: Cli, elsewhere: tuple[str, str]
) -> None:
    found = {one["name"]: one for one in cli("a2a", "peers", "--json").json}
    assert (found["elsewhere"]["state"], found["gone"]["state"]) == ("discovered", "unreachable")
    assert found["elsewhere"]["url"] == elsewhere[0]
    assert found["gone"]["error"]
    assert elsewhere[1] not in json.dumps(found)
    table = cli("a2a", "peers").out
    assert " ".join(table.splitlines()[0].split()) == "NAME STATE URL WHAT IT IS FOR"
    one = cli("a2a", "discover", "elsewhere")
    assert (one.code, "dialects  " in one.out, "discovered" in one.out) == (0, True, True)
    assert cli("a2a", "discover", "gone").code == 1
    assert cli("a2a", "discover", "nobody").code == 1


@pytest.mark.requirement("C11.3")
def test_a_card_that_changed_is_shown_with_the_command_that_accepts_it(
    fresh: Cli, elsewhere: tuple[str, str]
) -> None:
    url, key = elsewhere
    fresh.configure(CONFIG + PEER.format(url=f"{url}/a2a/agents/slow", key=key))
    assert fresh("a2a", "discover", "elsewhere").code == 0
    file = fresh.home / "config.toml"
    file.write_text(file.read_text().replace("/agents/slow", "/agents/broken"))
    held = fresh("a2a", "discover", "elsewhere")
    assert (held.code, "openfang tools accept a2a:elsewhere" in held.err) == (1, True)


@pytest.fixture
def served(make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    write_programs(made)
    made.configure(CONFIG)
    with serving(made):
        yield made


@pytest.mark.needs("setsid")
@pytest.mark.requirement("C5.7")
def test_who_stops_watching_does_not_end_a_task_and_cancel_does(served: Cli) -> None:
    task = served("a2a", "send", "slow", "hello", "--no-wait").out.strip()
    assert task.startswith("task_")
    with typing(served, "a2a", "watch", task) as terminal:
        terminal.wait_for(f"{task} of slow: working")
        terminal.wait_for("one two ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.leave() == 130
    assert shown(served, task)["state"] == "working"
    with typing(served, "a2a", "watch", task) as terminal:
        terminal.wait_for("one two ")
        ended = served("a2a", "cancel", task)
        assert (ended.code, ended.out) == (0, f"{task} is canceled.\n")
        terminal.wait_for("canceled")
        assert terminal.leave() == 1


def test_who_does_not_wait_needs_a_daemon(fresh: Cli) -> None:
    fresh.configure(CONFIG)
    ran = fresh("a2a", "send", "echo", "hello", "--no-wait")
    assert (ran.code, "needs a daemon" in ran.err) == (2, True)
    assert fresh("a2a", "tasks", "--json").json["total"] == 0


@pytest.mark.requirement("C2.5")
def test_no_task_is_taken_while_a2a_is_switched_off(fresh: Cli) -> None:
    ran = fresh("a2a", "send", "echo", "hello")
    assert (ran.code, "a2a.enabled is false" in ran.err) == (1, True)
    assert "No agent elsewhere is configured" in fresh("a2a", "peers").err
