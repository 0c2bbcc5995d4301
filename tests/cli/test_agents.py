"""`openfang agents`, in process and over a daemon; and the agents that a home begins with."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

from openfang.app.agents.starters import STARTERS
from openfang.config.manifests import parse_manifest, read_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C6.1", "C6.4", "C12.5")

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples" / "agents"
LIMITS = "[limits]\ncells_per_minute = 1_000_000\nburst = 1_000_000"


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    if request.param == "in-process":
        yield made
        return
    made.configure(LIMITS)
    with serving(made):
        yield made


def editing(cli: Cli, name: str, script: str) -> Ran:
    """Edit an agent with an editor that runs this shell script on the file."""
    editor = cli.home.parent / "editor"
    editor.write_text(f'#!/bin/sh\nset -e\n{script} "$1"\n')
    editor.chmod(0o700)
    return cli("agents", "edit", name, env={"EDITOR": str(editor)})


def test_a_new_home_begins_with_two_agents_that_are_in_order(fresh: Cli) -> None:
    assert sorted(read_manifests(fresh.home)[0]) == sorted(STARTERS) == ["assistant", "echo"]
    assert fresh("agents", "validate").code == 0
    folders = [fresh.home / "agents" / name for name in STARTERS]
    files = [file for folder in folders for file in folder.iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_the_echo_of_a_new_home_is_that_of_the_examples() -> None:
    found = {file.name: file.read_text() for file in (EXAMPLES / "echo").glob("agent.*")}
    assert found == STARTERS["echo"]


@pytest.mark.requirement("C19.3")
def test_what_the_page_on_agents_shows_is_right(fresh: Cli) -> None:
    text = (EXAMPLES.parents[1] / "agents.md").read_text()
    (manifest,) = re.findall(r"^```toml[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (program,) = re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert parse_manifest(manifest, fresh.home).name == "notes"
    fresh("agents", "new", "page", "--code")
    folder = fresh.home / "agents" / "page"
    (folder / "agent.py").write_text(program)
    granted = (folder / "agent.toml").read_text().replace("# tools = [", 'tools = ["system_time", ')
    (folder / "agent.toml").write_text(granted)
    assert fresh("agents", "send", "page", "when?").out.startswith("It is 20")


def test_a_home_that_is_there_gets_no_agents_back(fresh: Cli) -> None:
    manifest = fresh.home / "agents" / "assistant" / "agent.toml"
    manifest.unlink()
    manifest.parent.rmdir()
    changed = fresh.home / "agents" / "echo" / "agent.py"
    changed.write_text("# mine\n")
    assert fresh("init").code == 0
    assert (manifest.parent.exists(), changed.read_text()) == (False, "# mine\n")


def test_an_agent_that_is_there_before_the_home_is_kept(fresh: Cli, tmp_path: Path) -> None:
    own = tmp_path / "new" / "agents" / "echo"
    own.mkdir(parents=True)
    (own / "agent.toml").write_text('name = "echo"\n')
    assert fresh("init", env={"OPENFANG_HOME": str(tmp_path / "new")}).code == 0
    assert [file.name for file in own.iterdir()] == ["agent.toml"]
    assert (own / "agent.toml").read_text() == 'name = "echo"\n'
    assert (tmp_path / "new" / "agents" / "assistant" / "agent.toml").exists()


def test_they_are_listed_and_shown(cli: Cli) -> None:
    shown = cli("agents", "list")
    assert [line.split()[:2] for line in shown.out.splitlines()] == [
        ["NAME", "MODEL"],
        ["assistant", "planner"],
        ["echo", "python:agent.py"],
    ]
    body = cli("agents", "list", "--json").json
    assert cli("agents", "show", "echo", "--json").json == body[1]
    one = cli("agents", "show", "assistant").out
    assert re.search(r"^tools +(builtin:)?file_read, .*memory_store,", one, re.MULTILINE)
    assert re.search(r"^network +\*$", one, re.MULTILINE)
    assert re.search(r"^memory write +\*$", one, re.MULTILINE)
    absent = cli("agents", "show", "nobody", "--json")
    assert (absent.code, absent.json["status"]) == (1, 404)


def test_a_message_is_answered_and_the_calls_for_it_are_shown(cli: Cli) -> None:
    ran = cli("agents", "send", "assistant", "what time is it?")
    assert (ran.code, ran.out[:2], ran.out.count("\n")) == (0, "20", 1)
    assert ran.err.startswith("  system_time {}: ok, audit ")
    body = cli("agents", "send", "assistant", "hello", "--session", "work", "--json").json
    assert set(body) == {
        *("response", "session", "ending", "usage", "artifacts", "call_id", "audit"),
    }
    assert "planner" in body["response"]
    assert cli("sessions", "show", body["session"], "--json").json["name"] == "work"


def test_a_program_answers_too(cli: Cli) -> None:
    ran = cli("agents", "send", "echo", "größer, bitte")
    assert (ran.code, ran.out, ran.err) == (0, "größer, bitte\n", "")


def test_what_is_refused_ends_with_the_codes_of_calls(cli: Cli) -> None:
    ran = cli("agents", "send", "nobody", "hello", "--json")
    assert (ran.code, ran.json["rule"]) == (3, "unknown_tool")
    assert cli("agents", "send", "echo").code == 2


def test_an_answer_that_only_hands_on_an_error_has_its_code(fresh: Cli) -> None:
    grants = '[capabilities]\ntools = ["file_read", "system_time"]\n[policy]\nblacklist = {}\n'
    for name, barred in (("open", "[]"), ("shut", '["fs.read"]')):
        folder = fresh.home / "agents" / name
        folder.mkdir()
        text = f'name = "{name}"\n{grants.format(barred)}'
        (folder / "agent.toml").write_text(text)
    refused = fresh("agents", "send", "shut", "read notes/a.txt")
    assert (refused.code, "fs.read is blacklisted" in refused.out) == (3, True)
    failed = fresh("agents", "send", "open", "read notes/a.txt", "--json")
    assert (failed.code, failed.json["ending"]) == (4, "answered")
    assert fresh("agents", "send", "open", "what time is it?").code == 0


@pytest.mark.parametrize("profile", ["minimal", "coding", "full"])
@pytest.mark.parametrize("code", [(), ("--code",)])
def test_a_new_one_is_in_order_and_answers(fresh: Cli, profile: str, code: tuple[str, ...]) -> None:
    made = fresh("agents", "new", "my-agent", "--profile", profile, *code)
    folder = fresh.home / "agents" / "my-agent"
    assert (made.code, made.out) == (0, f"{folder}\n")
    assert read_manifests(fresh.home)[0]["my-agent"].profile == profile
    assert fresh("agents", "validate", "my-agent").code == 0
    files = {"agent.toml", "agent.py"} if code else {"agent.toml"}
    assert {file.name for file in folder.iterdir()} == files
    answer = fresh("agents", "send", "my-agent", "hello")
    assert answer.code == 0
    assert ("You said: hello\n" if code else "planner") in answer.out
    assert not list(fresh.home.glob(".draft*"))


def test_a_new_one_never_takes_the_place_of_another(fresh: Cli) -> None:
    fresh("agents", "new", "mine")
    manifest = fresh.home / "agents" / "mine" / "agent.toml"
    manifest.write_text('name = "mine"\n')
    again = fresh("agents", "new", "mine", "--code")
    assert (again.code, "already" in again.err) == (1, True)
    assert [file.name for file in manifest.parent.iterdir()] == ["agent.toml"]
    assert manifest.read_text() == 'name = "mine"\n'
    fresh("agents", "new", "a_b")
    near = fresh("agents", "new", "a-b")
    assert (near.code, "differs by more than - and _" in near.err) == (1, True)
    assert not (fresh.home / "agents" / "a-b").exists()


@pytest.mark.parametrize("name", ["", "A", "../x", "a/b", ".x", "x" * 50, "a\nb"])
def test_a_name_that_is_none_is_refused_before_anything_is_written(fresh: Cli, name: str) -> None:
    assert fresh("agents", "new", name).code == 2
    assert sorted(file.name for file in (fresh.home / "agents").iterdir()) == ["assistant", "echo"]


def test_an_edit_takes_effect_at_once(cli: Cli) -> None:
    cli("agents", "new", "changing")
    ran = editing(cli, "changing", "sed -i 's/^description.*/description = \"Is new.\"/'")
    assert (ran.code, ran.out) == (0, "changing is changed.\n")
    while "Is new." not in cli("agents", "show", "changing").out:
        pass
    same = editing(cli, "changing", "true")
    assert (same.code, same.out) == (0, "Nothing was changed.\n")


def test_a_bad_edit_is_kept_aside_and_the_old_stays(fresh: Cli) -> None:
    folder = fresh.home / "agents" / "echo"
    before = (folder / "agent.toml").read_text()
    bad = editing(fresh, "echo", "sed -i 's/^name.*/name = 7/'")
    assert bad.code == 1
    assert "agents/echo/agent.toml:1: name: expected" in bad.err
    assert (folder / "agent.toml").read_text() == before
    assert (folder / "agent.toml.bad").read_text().startswith("name = 7\n")
    assert str(folder / "agent.toml.bad") in bad.err
    assert fresh("agents", "send", "echo", "still here").out == "still here\n"
    mended = editing(fresh, "echo", 'sed -i \'s/^name.*/name = "echo"\\ntitle = "Echo"/\'')
    assert (mended.code, mended.out) == (0, "echo is changed.\n")
    assert 'title = "Echo"' in (folder / "agent.toml").read_text()
    assert sorted(file.name for file in folder.iterdir()) == ["agent.py", "agent.toml"]


def test_an_editor_that_fails_or_is_not_there_changes_nothing(fresh: Cli) -> None:
    folder = fresh.home / "agents" / "echo"
    before = (folder / "agent.toml").read_text()
    failed = editing(fresh, "echo", "false")
    absent = fresh("agents", "edit", "echo", env={"VISUAL": "/nothing/there", "EDITOR": "true"})
    assert (failed.code, "ended with 1" in failed.err) == (1, True)
    assert (absent.code, "/nothing/there" in absent.err) == (1, True)
    assert (folder / "agent.toml").read_text() == before
    assert sorted(file.name for file in folder.iterdir()) == ["agent.py", "agent.toml"]
    for name in ("nobody", "../agents/echo", ".."):
        assert fresh("agents", "edit", name, env={"EDITOR": "true"}).code == 1


def test_what_a_manifest_says_in_vain_is_a_warning_and_no_mistake(fresh: Cli) -> None:
    fresh("agents", "new", "vain")
    manifest = fresh.home / "agents" / "vain" / "agent.toml"
    manifest.write_text('name = "vain"\npublished = true\nmcp_servers = ["ghost"]\n')
    found = fresh("agents", "validate", "vain")
    assert (found.code, found.out) == (0, "")
    assert "agents/vain/agent.toml:2: published: it has no effect in this version" in found.err
    assert "agents/vain/agent.toml:3: mcp_servers: no MCP server ghost is configured" in found.err
    assert fresh("agents", "validate", "echo").err == "no problems\n"


def test_mistakes_are_found_and_who_has_them_is_left_out(fresh: Cli) -> None:
    for name in ("good", "bad"):
        fresh("agents", "new", name)
    manifest = fresh.home / "agents" / "bad" / "agent.toml"
    manifest.write_text(manifest.read_text() + "\n[capabilities]\n")
    assert fresh("agents", "validate", "good").code == 0
    for arguments in ((), ("bad",)):
        found = fresh("agents", "validate", *arguments)
        assert (found.code, found.out.startswith("agents/bad/agent.toml:")) == (1, True)
    (problem,) = fresh("agents", "validate", "--json").json
    assert problem["file"] == "agents/bad/agent.toml"
    listed = fresh("agents", "list")
    assert "bad is left out; see why: openfang agents validate bad" in listed.err
    assert [one["name"] for one in fresh("agents", "list", "--json").json] == [
        *("assistant", "echo", "good"),
    ]
    assert fresh("agents", "validate", "nobody").code == 1
