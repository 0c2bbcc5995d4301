"""`openfang connect`: the entry in another program's file, from the preview to the undo."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests import forked
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C4.9")

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
CURSOR = """\
{
  // mine
  "mcpServers": {
    "github": {"command": "npx", "env": {"GITHUB_TOKEN": "%s"}} // keep
  },
}
"""


@pytest.fixture
def cli(fresh: Cli) -> Cli:
    """A home of the test's own, and a user who uses Cursor."""
    cursor(fresh).parent.mkdir()
    cursor(fresh).write_text(CURSOR % SECRET)
    return fresh


def cursor(cli: Cli) -> Path:
    return cli.home.parent / ".cursor" / "mcp.json"


def entry(file: Path, table: str = "mcpServers") -> dict[str, Any]:
    """Read our entry; the comments of these tests fill whole lines or end them."""
    text = file.read_text()
    if file.suffix == ".toml":
        return tomllib.loads(text)[table]["openfang"]
    lines = (line.partition(" //")[0] for line in text.splitlines())
    plain = "\n".join(lines).replace("},\n}", "}\n}")
    return json.loads(plain)[table]["openfang"]


def keys(cli: Cli) -> dict[str, str]:
    return {key["name"]: key["state"] for key in cli("keys", "list", "--json").json}


def at_terminal(cli: Cli, answer: str, *arguments: str) -> str:
    """Run a command as a person does, who types this answer."""
    environment = cli.environment({"TERM": "xterm", "NO_COLOR": "1"})
    shown = b""
    with forked.at_terminal(("connect", *arguments), environment) as (running, screen):
        os.write(screen, answer.encode())
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(screen, 10_000):
                shown += chunk
        assert running.wait(timeout=60) == 0
    return shown.decode().replace("\r\n", "\n")


def refusal(ran: Ran) -> tuple[int, str]:
    """An error's code, and its message in one line."""
    assert "way out: " in ran.err
    return ran.code, ran.err.partition("\n")[0]


def test_where_nobody_can_be_asked_it_is_only_shown(cli: Cli) -> None:
    ran = cli("connect", "cursor")
    assert ran.code == 0
    assert '+    "openfang": {' in ran.out
    assert ran.out.startswith(f"--- {cursor(cli)}\n+++ {cursor(cli)}\n@@ ")
    assert "Nothing was changed. Do it: openfang connect cursor --yes" in ran.err
    assert SECRET not in ran.out + ran.err
    assert cursor(cli).read_text() == CURSOR % SECRET
    assert not (cli.home / "connections").exists()


def test_the_next_step_can_be_typed(cli: Cli) -> None:
    options = ("--agent", "assistant", "--name", "mine", "--http", "--project")
    ran = cli("connect", "vscode", *options)
    assert f"Do it: openfang connect vscode {' '.join(options)} --yes" in ran.err
    assert "CAREFUL: a key will stand in a file of the project" in ran.err


def test_it_is_written_copied_and_undone_to_the_byte(cli: Cli) -> None:
    before = cursor(cli).read_bytes()
    dry = cli("connect", "cursor", "--yes", "--dry-run")
    assert "Nothing was changed" in dry.err
    assert cursor(cli).read_bytes() == before
    done = cli("connect", "cursor", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"Cursor is connected: {cursor(cli)}")
    written = entry(cursor(cli))
    assert written["args"] == ["mcp"]
    assert written["env"] == {"OPENFANG_HOME": str(cli.home)}
    version = subprocess.run([written["command"], "--version"], check=True, capture_output=True)
    assert version.stdout.strip()
    (copy,) = (cli.home / "connections").glob("cursor-*.bak")
    assert str(copy) in done.err
    assert copy.read_bytes() == before
    again = cli("connect", "cursor", "--yes")
    assert again.out == f"Cursor is connected already: {cursor(cli)}\n"
    undone = cli("connect", "cursor", "--undo", "--yes")
    assert "to the byte" in undone.err
    assert cursor(cli).read_bytes() == before
    nothing = cli("connect", "cursor", "--undo", "--yes")
    assert (nothing.code, nothing.out) == (0, f"Cursor is not connected: {cursor(cli)}\n")


def test_undo_says_that_others_wrote_since(cli: Cli) -> None:
    cli("connect", "cursor", "--yes")
    cursor(cli).write_text(cursor(cli).read_text() + "// theirs\n")
    shown = cli("connect", "cursor", "--undo")
    assert "--undo --yes" in shown.err
    undone = cli("connect", "cursor", "--undo", "--yes")
    assert "the file was changed since: only our entry is taken out" in undone.err
    assert "to the byte" not in undone.err
    assert cursor(cli).read_text() == CURSOR % SECRET + "// theirs\n"


def test_a_person_is_asked(cli: Cli) -> None:
    shown = at_terminal(cli, "\n", "cursor")
    assert "Write this? [y/N]" in shown
    assert shown.endswith("Nothing was changed.\n")
    assert cursor(cli).read_text() == CURSOR % SECRET
    shown = at_terminal(cli, "y\n", "cursor")
    assert "Cursor is connected" in shown
    assert SECRET not in shown
    assert entry(cursor(cli))["args"] == ["mcp"]


def test_a_person_who_says_nothing_keeps_the_file(cli: Cli) -> None:
    assert "Zed was not found here: its folder is made" in cli("connect", "zed", "--yes").err
    folder = cli.home.parent / ".config"
    assert "Remove the file? [y/N]" in at_terminal(cli, "\x04", "zed", "--undo")
    assert folder.exists()
    cli("connect", "zed", "--undo", "--yes")
    assert not folder.exists()


@pytest.mark.requirement("C18.1", "C18.3")
def test_over_http_a_client_gets_a_key_that_ends_with_it(cli: Cli) -> None:
    shown = cli("connect", "cursor", "--http")
    assert '"Authorization": "Bearer ***"' in shown.out
    assert "cursor" not in keys(cli)
    done = cli("connect", "cursor", "--http", "--yes", "--json")
    assert (done.json["done"], done.json["key"]) == (True, "cursor")
    written = entry(cursor(cli))
    assert written["url"] == "http://127.0.0.1:50051/mcp"
    secret = written["headers"]["Authorization"].removeprefix("Bearer ")
    assert secret not in done.out + done.err
    assert keys(cli)["cursor"] == "in force"
    (key,) = [one for one in cli("keys", "list", "--json").json if one["name"] == "cursor"]
    assert (key["edges"], key["role"]) == (["mcp"], "user")
    refused = cli("tools", "list", env={"OPENFANG_API_KEY": secret})
    assert refused.code == 3  # it opens MCP alone
    inside = [path for path in cli.home.rglob("*") if path.is_file()]
    assert not [path for path in inside if secret.encode() in path.read_bytes()]
    again = cli("connect", "cursor", "--http", "--yes")
    assert "is connected already" in again.out
    undone = cli("connect", "cursor", "--undo", "--yes")
    assert "its key ends" in undone.err
    assert keys(cli)["cursor"] == "revoked"
    assert cursor(cli).read_text() == CURSOR % SECRET


def test_a_key_is_kept_as_long_as_it_is_good(cli: Cli) -> None:
    cli("keys", "create", "cursor")
    done = cli("connect", "cursor", "--http", "--yes")
    assert "The key is called cursor-2" in done.err
    first = entry(cursor(cli))["headers"]
    listen = {"OPENFANG_LISTEN": "127.0.0.1:50052"}
    cli("connect", "cursor", "--http", "--yes", env=listen)
    moved = entry(cursor(cli))
    assert moved["url"] == "http://127.0.0.1:50052/mcp"
    assert moved["headers"] == first
    cli("keys", "revoke", "cursor-2")
    renewed = cli("connect", "cursor", "--http", "--yes")
    assert "The key is called cursor-3" in renewed.err  # no key inherits another's name
    assert entry(cursor(cli))["headers"] != first
    cli("connect", "cursor", "--yes")
    ended = dict.fromkeys(("cursor-2", "cursor-3"), "revoked")
    assert keys(cli) == {"admin": "in force", "cursor": "in force", **ended}
    assert "url" not in entry(cursor(cli))


@pytest.mark.requirement("C18.1")
def test_a_key_opens_the_toolset_or_the_agent_that_was_wished_and_nothing_else(cli: Cli) -> None:
    cli.configure('[toolsets.small]\ntools = ["file_read"]')
    wishes: tuple[tuple[tuple[str, ...], list[str], list[str]], ...] = (
        (("--toolset", "small"), ["small"], []),
        (("--agent", "assistant"), [], ["assistant"]),
        ((), ["*"], ["*"]),
    )
    for number, (options, toolsets, agents) in enumerate(wishes, 1):
        done = cli("connect", "cursor", "--http", "--yes", *options)
        name = "cursor" if number == 1 else f"cursor-{number}"
        made = {one["name"]: one for one in cli("keys", "list", "--json").json}
        assert f"The key is called {name}" in done.err
        assert (made[name]["toolsets"], made[name]["agents"]) == (toolsets, agents)
        assert "is connected already" in cli("connect", "cursor", "--http", "--yes", *options).out
    assert keys(cli)["cursor"] == keys(cli)["cursor-2"] == "revoked"


def test_an_entry_that_was_taken_out_by_hand_leaves_no_key_behind(cli: Cli) -> None:
    cli("connect", "cursor", "--http", "--yes")
    cursor(cli).write_text("{}")
    ran = cli("connect", "cursor", "--undo", "--yes")
    assert "the entry is gone already" in ran.err
    assert keys(cli)["cursor"] == "revoked"
    assert cursor(cli).read_text() == "{}"


def test_the_address_is_that_of_the_running_daemon_and_import_knows_it(cli: Cli) -> None:
    with serving(cli):
        daemon = json.loads((cli.home / "daemon.json").read_text())
        done = cli("connect", "cursor", "--http", "--yes")
        assert entry(cursor(cli))["url"] == f"http://{daemon['listen_addr']}/mcp"
        assert "only until it is started again" in done.err
        told = {
            one["written_as"]: one["skipped"] for one in cli("import", "--json").json["servers"]
        }
        assert told == {"github": "", "openfang": "it starts openfang itself"}
        (listed,) = [one for one in cli("connect", "--json").json if one["connected"]]
        assert (listed["word"], listed["connected"]) == ("cursor", {"openfang": "http"})


def test_a_port_that_nobody_knows_yet_is_no_address(cli: Cli) -> None:
    listen = {"OPENFANG_LISTEN": "127.0.0.1:0"}
    code, told = refusal(cli("connect", "cursor", "--http", "--yes", env=listen))
    assert (code, "any port" in told) == (1, True)
    assert cursor(cli).read_text() == CURSOR % SECRET


def test_claude_desktop_starts_a_command_and_is_told_why(cli: Cli) -> None:
    ran = cli("connect", "claude-desktop", "--http", "--yes")
    assert "ignores addresses in its file" in ran.err
    file = cli.home.parent / ".config" / "Claude" / "claude_desktop_config.json"
    assert set(entry(file)) == {"command", "args", "env"}
    assert set(keys(cli)) == {"admin"}


def test_a_toolset_or_an_agent_is_passed_on_if_it_is_there(cli: Cli) -> None:
    cli.configure('[toolsets.small]\ntools = ["file_read"]')
    cli("connect", "cursor", "--toolset", "small", "--yes")
    assert entry(cursor(cli))["args"] == ["mcp", "--toolset", "small"]
    cli("connect", "codex", "--agent", "assistant", "--yes")
    codex = cli.home.parent / ".codex" / "config.toml"
    assert entry(codex, "mcp_servers")["args"] == ["mcp", "--agent", "assistant"]
    cli("connect", "codex", "--toolset", "small", "--http", "--yes")
    assert entry(codex, "mcp_servers")["url"] == "http://127.0.0.1:50051/mcp/small"
    for options in (("--toolset", "large"), ("--agent", "nobody")):
        ran = cli("connect", "cursor", *options, "--yes")
        assert (ran.code, options[1] in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("emacs",), 1, "one of cursor, vscode"),
        (("windsurf", "--project"), 1, "no file of a project"),
        (("cursor", "--name", "a b"), 2, "no name for an entry"),
        (("cursor", "--toolset", "a", "--agent", "b"), 2, "give one of them"),
        (("cursor", "--undo", "--http"), 2, "--undo takes no --http"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cli: Cli, arguments: tuple[str, ...], code: int, told: str
) -> None:
    ran = cli("connect", *arguments, "--yes")
    assert (ran.code, told in ran.err) == (code, True), ran.err


def test_a_file_that_cannot_be_changed_is_left_alone(cli: Cli) -> None:
    cursor(cli).write_text("{\n  oops\n}")
    code, told = refusal(cli("connect", "cursor", "--yes"))
    assert (code, f"{cursor(cli)}:2: not valid JSON" in told) == (1, True)
    cursor(cli).write_text('{"mcpServers": {"openfang": {"command": "other"}}}')
    code, told = refusal(cli("connect", "cursor", "--yes"))
    assert (code, "not this program" in told) == (1, True)
    assert cli("connect", "cursor", "--name", "of", "--yes").code == 0
    cursor(cli).write_text("{}")
    cursor(cli).chmod(0o400)
    shown = cli("connect", "cursor", "--http", "--yes")
    assert (shown.code, "is read-only" in shown.err) == (1, True)
    assert '+  "mcpServers": {' in shown.out
    assert set(keys(cli)) == {"admin"}
    assert cursor(cli).read_text() == "{}"
    cursor(cli).unlink()
    cursor(cli).mkdir()
    assert refusal(cli("connect", "cursor", "--yes")) == (1, f"error: {cursor(cli)} is a folder.")


def test_without_a_home_there_is_nothing_to_connect_to(cli: Cli, tmp_path: Path) -> None:
    elsewhere = {"OPENFANG_HOME": str(tmp_path / "none")}
    ran = cli("connect", "cursor", "--yes", env=elsewhere)
    assert (ran.code, "openfang init" in ran.err) == (1, True)
    assert not (tmp_path / "none").exists()
    assert cli("connect", env=elsewhere).code == 0


def test_all_clients_are_listed_with_how_they_are(cli: Cli) -> None:
    cli("connect", "cursor", "--yes")
    (cli.home.parent / ".gemini").mkdir()
    (cli.home.parent / ".claude.json").write_text("{")
    ran = cli("connect")
    rows = {line.split()[0]: line for line in ran.out.splitlines()[1:]}
    assert list(rows) == [
        *("cursor", "vscode", "claude-desktop", "claude-code", "windsurf", "codex", "gemini", "zed")
    ]
    assert "connected: openfang (stdio)" in rows["cursor"]
    assert "not found" in rows["windsurf"]
    assert "not connected" in rows["gemini"]
    assert "cannot be read" in rows["claude-code"]
    assert str(cursor(cli)) in rows["cursor"]


def test_programs_get_the_same_as_json(cli: Cli) -> None:
    shown = cli("connect", "cursor", "--json").json
    assert (shown["client"], shown["changes"], shown["done"]) == ("Cursor", True, False)
    assert shown["file"] == str(cursor(cli))
    done = cli("connect", "cursor", "--yes", "--json").json
    assert (done["done"], done["diff"]) == (True, shown["diff"])
    assert done["backup"].startswith(str(cli.home / "connections"))
    again = cli("connect", "cursor", "--yes", "--json").json
    assert (again["changes"], again["done"], again["diff"]) == (False, False, "")
