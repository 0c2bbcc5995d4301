"""The ready-made agents: in order, of use at once, and able to do no more than they say."""

from __future__ import annotations

import json
import stat
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.agents.ready import ready_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.1", "C12.5")

GRANTED = {
    "researcher": {
        *("web_search", "web_fetch", "memory_store", "memory_recall"),
        *("file_read", "file_list", "file_write"),
    },
    "coder": {"file_read", "file_list", "file_write", "shell_exec"},
    "code-reviewer": {"file_read", "file_list"},
}
# A program in the place of the model: it tries what it is told to, with the grants of the manifest.
TRIES = """
import json


async def run(message, context):
    said = []
    for tool, arguments in json.loads(message):
        try:
            said.append((await context.call(tool, arguments)).text)
        except context.Refused as refusal:
            said.append(f"{refusal.code}: {refusal}")
    return json.dumps(said)
"""
NO_LIMITS = "[limits]\ncells_per_minute = 1_000_000\nburst = 1_000_000"


@pytest.fixture(scope="module")
def cli(make_home: Callable[[], Cli]) -> Cli:
    made = make_home()
    made.configure(NO_LIMITS)
    for name in GRANTED:
        assert made("agents", "new", name, "--from", name).code == 0
        assert made("agents", "new", f"try-{name}", "--from", name).code == 0
        program(made, f"try-{name}")
    return made


def program(cli: Cli, name: str) -> None:
    """Have a program run in the place of the model."""
    folder = cli.home / "agents" / name
    (folder / "agent.py").write_text(TRIES)
    manifest = (folder / "agent.toml").read_text()
    (folder / "agent.toml").write_text(f'module = "python:agent.py"\n{manifest}')


def tried(cli: Cli, agent: str, *calls: tuple[str, Mapping[str, Any]]) -> list[str]:
    """What becomes of calls that an agent of these grants makes."""
    ran = cli("agents", "send", f"try-{agent}", json.dumps(calls), "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.json["response"])


def test_they_are_listed_and_shown(cli: Cli) -> None:
    listed = cli("agents", "templates", "--json").json
    assert [one["name"] for one in listed] == sorted(GRANTED)
    assert all(one["description"] for one in listed)
    assert [line.split()[0] for line in cli("agents", "templates").out.splitlines()[1:]] == sorted(
        GRANTED
    )
    shown = cli("agents", "templates", "coder")
    assert shown.out == ready_agents()["coder"]
    assert cli("agents", "templates", "nobody").code == 1


@pytest.mark.parametrize("name", GRANTED)
def test_a_copy_is_in_order_and_says_all_that_the_original_says(cli: Cli, name: str) -> None:
    ran = cli("agents", "validate", name)
    assert (ran.code, ran.out, ran.err) == (0, "", "no problems\n")
    file = cli.home / "agents" / name / "agent.toml"
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (ready_agents()[name], 0o600)
    assert cli("agents", "new", f"my-{name}", "--from", name).code == 0
    mine = (cli.home / "agents" / f"my-{name}" / "agent.toml").read_text()
    assert tomllib.loads(mine) == {**tomllib.loads(ready_agents()[name]), "name": f"my-{name}"}


def test_what_is_no_template_or_says_two_things_is_refused(cli: Cli) -> None:
    unknown = cli("agents", "new", "mine", "--from", "nobody")
    assert (unknown.code, "coder" in unknown.err) == (1, True)
    assert cli("agents", "new", "mine", "--from", "coder", "--code").code == 2
    assert cli("agents", "new", "mine", "--from", "coder", "--profile", "full").code == 2
    assert cli("agents", "new", "coder", "--from", "coder").code == 1
    assert not (cli.home / "agents" / "mine").exists()


def test_a_new_home_has_none_of_them(fresh: Cli) -> None:
    assert not set(GRANTED) & {file.name for file in (fresh.home / "agents").iterdir()}


@pytest.mark.requirement("C6.5")
def test_each_does_one_plain_thing_with_the_embedded_planner(cli: Cli) -> None:
    def send(agent: str, message: str) -> str:
        ran = cli("agents", "send", agent, message)
        assert ran.code == 0, ran.err
        return ran.out

    assert send("coder", 'write "ripe" to figs.txt') == "Wrote 4 bytes to figs.txt.\n"
    assert (cli.home / "workspaces" / "code" / "figs.txt").read_text() == "ripe"
    assert send("code-reviewer", "read figs.txt") == "ripe\n"
    assert send("researcher", "remember that my topic is figs") == "Remembered topic.\n"
    assert send("researcher", "what is my topic?") == "figs\n"


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C6.2", "C7.3")
@pytest.mark.parametrize("name", GRANTED)
def test_each_has_the_tools_that_it_names_and_no_other(cli: Cli, name: str) -> None:
    found = cli("tools", "list", "--source", "builtin", "--json").json
    tools = sorted(tool["name"] for tool in found)
    assert {"shell_exec", "file_write", "task_post", "agent_spawn"} <= set(tools)
    said = tried(cli, name, *((tool, {"nothing": 1}) for tool in tools))
    unseen = {tool for tool, one in zip(tools, said, strict=True) if "unknown_tool" in one}
    assert unseen == set(tools) - GRANTED[name]


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C6.2", "C7.6")
def test_a_reviewer_writes_nothing_even_if_somebody_grants_it_the_tool(cli: Cli) -> None:
    write = ("file_write", {"path": "review.txt", "content": "x"})
    assert tried(cli, "code-reviewer", write)[0].startswith("unknown_tool")
    assert cli("agents", "new", "try-loose", "--from", "code-reviewer").code == 0
    file = cli.home / "agents" / "try-loose" / "agent.toml"
    file.write_text(file.read_text().replace('tools = ["file_read"', 'tools = ["file_*"'))
    program(cli, "try-loose")
    (said,) = tried(cli, "loose", write)
    assert "Planning mode cannot use tools with side effects" in said
    assert not (cli.home / "workspaces" / "code" / "review.txt").exists()


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C6.2")
def test_a_coder_runs_only_what_is_named_and_only_after_a_yes(cli: Cli) -> None:
    lines = (
        "cat /etc/passwd",
        "grep -n root /etc/passwd",
        "grep -rn root ../../..",
        "grep -f /etc/passwd figs.txt",
        "wc --files0-from=/etc/passwd figs.txt",
        "ls",
    )
    said = tried(cli, "coder", *(("shell_exec", {"command": line}) for line in lines))
    assert not [one for one in said if not one.startswith("shell_not_granted")]
    (asked,) = tried(cli, "coder", ("shell_exec", {"command": "grep -n ripe figs.txt"}))
    assert "waits for a person" in asked
    (granted,) = tried(cli, "coder", ("file_write", {"path": "b.txt", "content": "x"}))
    assert granted == "Wrote 1 bytes to b.txt."


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C6.2")
def test_a_reviewer_is_closed_to_where_secrets_lie(cli: Cli) -> None:
    folder = cli.home / "workspaces" / "code"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".env").write_text("TOKEN=figs")
    (said,) = tried(cli, "code-reviewer", ("file_read", {"path": ".env"}))
    assert "figs" not in said
