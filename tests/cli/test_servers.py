"""`openfang servers`, in process and over a daemon: the same words, the same effect."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C14.1", "C4.8", "C2.1")

PEER = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
TOKEN = "sk-not-to-be-seen-1234"
START = f"""\
# kept as it is

[[mcp_servers]]  # the files
name = "files"
[mcp_servers.transport]
type = "stdio"
command = "{sys.executable}"
args = ["{PEER}", "say=good morning", "broken"]

[[mcp_servers]]
name = "dead"
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{PEER}", "refuse"] }}
"""


@pytest.fixture(params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    made.configure(START)
    if request.param == "in-process":
        yield made
        return
    with serving(made):
        yield made


def configuration(cli: Cli) -> dict[str, Any]:
    return tomllib.loads((cli.home / "config.toml").read_text())


def add(cli: Cli, name: str, *options: str, command: tuple[str, ...]) -> None:
    ran = cli("servers", "add", name, *options, "--", *command)
    assert ran.code == 0, ran.err


def test_what_there_is_and_how_it_is(cli: Cli) -> None:
    cli("servers", "enable", "files")  # over a daemon: wait until it is connected
    listed = cli("servers", "list", "--json").json
    assert [one["name"] for one in listed["configured"]] == ["files", "dead"]
    assert [one["name"] for one in listed["connected"]] == ["files"]
    shown = cli("servers", "list")
    assert "connected" in shown.out
    assert "unhealthy" in shown.out
    assert cli("servers", "health", "--json").json == {"files": "healthy", "dead": "unhealthy"}
    details = cli("servers", "show", "files")
    assert "2025-06-18" in details.out
    assert "broken has no inputSchema" in details.out
    assert [tool["id"] for tool in cli("servers", "tools", "files", "--json").json] == [
        "mcp:files:echo"
    ]
    assert "mcp_files_echo" in cli("servers", "tools", "files").out
    assert cli("servers", "logs", "files").out == "good morning\n"
    refreshed = cli("servers", "refresh", "--json").json
    assert refreshed["refreshed"] == 1
    assert [one["name"] for one in refreshed["failed"]] == ["dead"]
    told = cli("servers", "refresh")
    assert told.out == "1 server refreshed.\n"
    assert "dead did not answer: It ended with exit code" in told.err


def test_one_is_added_tried_enabled_called_and_removed(cli: Cli) -> None:
    before = configuration(cli)
    command = (sys.executable, str(PEER), "show=API_TOKEN")
    add(cli, "mine", "--env", f"API_TOKEN={TOKEN}", "--timeout", "9", command=command)
    shown = cli("servers", "show", "mine", "--json").json
    assert shown["state"] == "disabled"
    assert "run in a sandbox, or bare where there is none" in shown["may"]
    assert "know the variables: API_TOKEN" in shown["may"]
    assert "reach the network through the guarded egress, and no private address" in shown["may"]
    assert cli.call("mcp:mine:echo").code == 3
    tried = cli("servers", "test", "mine", "--json")
    assert (tried.code, tried.json["ok"], tried.json["tools"]) == (0, True, ["echo"])
    (offer,) = tried.json["offers"]
    assert (offer["risk"], offer["side_effects"]) == ("LOW", [])
    enabled = cli("servers", "enable", "mine")
    assert enabled.out == "mine: connected, 1 tools\n"
    answered = cli.call("mcp:mine:echo")
    assert answered.json["content"][0]["text"].startswith("[redacted:")
    assert cli("servers", "disable", "mine").out == "mine: disabled\n"
    entry = configuration(cli)["mcp_servers"][-1]
    assert (entry["enabled"], entry["timeout_secs"]) == (False, 9)
    assert cli("servers", "remove", "mine").code == 0
    assert configuration(cli) == before
    text = (cli.home / "config.toml").read_text()
    assert "# kept as it is" in text
    assert "[[mcp_servers]]  # the files" in text
    everything = (path for path in cli.home.rglob("*") if path.is_file())
    assert not [path for path in everything if TOKEN.encode() in path.read_bytes()]


def test_a_test_says_what_is_wrong(cli: Cli) -> None:
    dead = cli("servers", "test", "dead")
    assert dead.code == 1
    assert "I will not." in dead.out
    assert "way out" in dead.out
    add(cli, "gone", command=("no-such-program",))
    gone = cli("servers", "test", "gone", "--json")
    assert (gone.code, gone.json["ok"]) == (1, False)
    assert "no-such-program was not found" in gone.json["problem"]
    assert cli("servers", "add", "near", "--url", "http://127.0.0.1:9/mcp").code == 0
    near = cli("servers", "test", "near", "--json").json
    assert "allow_private" in near["way_out"]
    cli("servers", "add", "unset", "--env", "NOT_SET_HERE", "--", sys.executable)
    assert "NOT_SET_HERE is not set" in cli("servers", "test", "unset").out


@pytest.mark.requirement("C2.6")
def test_what_cannot_be_changes_nothing(cli: Cli) -> None:
    before = (cli.home / "config.toml").read_text()
    for words, told in (
        (("add", "up", "--", "../program"), "a path without `..`"),
        (("add", "files", "--", "x"), "already"),
        (("add", "nothing"), "a command or an address"),
        (("add", "both", "--url", "http://x", "--", "x"), "a command or an address"),
        (("add", "a.b", "--", "x"), "name: expected a name of letters"),
        (("add", "ftp", "--url", "ftp://x"), "transport.url: expected an http"),
        (("add", "odd", "--timeout", "-1", "--", "x"), "timeout_secs: expected a number greater"),
        (("add", "odd", "--env", "1A=b", "--", "x"), "env.1A: expected a name"),
        (
            ("add", "in", "--url", f"https://me:{TOKEN}@x.example/mcp"),
            "carries user information in front of its host",
        ),
        (("enable", "nobody"), "No MCP server nobody"),
        (("remove", "nobody"), "No MCP server nobody"),
        (("test", "nobody"), "No MCP server nobody"),
        (("logs", "nobody"), "No MCP server nobody"),
    ):
        ran = cli("servers", *words)
        assert ran.code in {1, 2}, words
        assert told in ran.err, ran.err
        assert "way out" in ran.err
        assert TOKEN not in ran.err
        assert "config.toml" not in ran.err  # nothing of it stands there
    assert (cli.home / "config.toml").read_text() == before


@pytest.mark.requirement("C18.3")
def test_a_secret_among_the_arguments_is_hidden_and_told_of(cli: Cli) -> None:
    words = ("server", f"--token={TOKEN}", "--password", TOKEN, "--port", "80")
    added = cli("servers", "add", "open", "--", *words)
    assert "holds a secret, which stays there: use env or headers" in added.err
    shown = cli("servers", "show", "open", "--json")
    assert shown.json["transport"]["args"] == [
        *("--token=***", "--password", "***", "--port", "80")
    ]
    listed = cli("servers", "list")
    assert "--token=*** --password *** --port 80" in listed.out
    everything = (added, shown, listed, cli("servers", "show", "open"), cli("config", "show"))
    assert not [ran for ran in everything if TOKEN in ran.out + ran.err]
    assert "holds a secret" not in cli("servers", "add", "closed", "--", "server", "--port").err


PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "see:"},
    {"type": "resource", "resource": {"uri": "notes://1", "text": "the note itself"}},
    {"type": "resource", "resource": {"uri": "notes://2", "blob": "AAAA"}},
    {"type": "resource_link", "uri": "notes://3", "name": "the third"},
    {"type": "image", "mimeType": "image/png", "data": "AAAA"},
]


@pytest.mark.requirement("C3.4")
def test_what_comes_along_with_a_result_is_printed(cli: Cli) -> None:
    add(cli, "notes", command=(sys.executable, str(PEER), f"parts={json.dumps(PARTS)}"))
    assert cli("servers", "enable", "notes").code == 0
    assert cli("tools", "call", "mcp:notes:echo").out.splitlines() == [
        "see:",
        "the note itself",
        "[resource notes://2]",
        "the third: notes://3",
        "[image image/png, 4 characters of base64]",
    ]


def test_why_there_is_nothing_to_see_is_said(cli: Cli) -> None:
    add(cli, "idle", command=("something",))
    assert "idle is disabled: openfang servers enable idle" in cli("servers", "tools", "idle").err
    refused = cli("servers", "restart", "idle")
    assert (refused.code, "idle is disabled" in refused.err) == (1, True)
    failed = cli("servers", "enable", "idle")
    assert (failed.code, failed.out) == (0, "idle: failed\n")
    assert "idle cannot be reached: The program something was not found" in failed.err
    assert "openfang servers test idle" in failed.err
    removed = cli("servers", "remove", "idle")
    assert "config.toml.bak has it as it was" in removed.err
    assert 'name = "idle"' in (cli.home / "config.toml.bak").read_text()


def test_an_included_file_is_changed_where_the_server_stands(cli: Cli) -> None:
    (cli.home / "more.toml").write_text(
        '[[mcp_servers]]\nname = "other"\nenabled = false\n'
        'transport = { type = "stdio", command = "x" }\n'
    )
    (cli.home / "mcp_servers.yaml").write_text("mcp_servers:\n- {id: theirs, command: [x]}\n")
    main = cli.home / "config.toml"
    main.write_text('include = ["more.toml", "mcp_servers.yaml"]\n' + main.read_text())
    cli("config", "reload")
    assert cli("servers", "enable", "other").code == 0
    assert tomllib.loads((cli.home / "more.toml").read_text())["mcp_servers"][0]["enabled"]
    theirs = cli("servers", "disable", "theirs")
    assert (theirs.code, "another program's" in theirs.err) == (1, True)


def test_who_is_no_administrator_changes_nothing(cli: Cli) -> None:
    secret = cli("keys", "create", "user", "--json").json["secret"]
    as_user = {"OPENFANG_API_KEY": secret}
    assert cli("servers", "disable", "files", env=as_user).code == 3
    assert cli("servers", "show", "files", env=as_user).code == 3
    assert configuration(cli)["mcp_servers"][0].get("enabled", True)


def test_a_restart_needs_a_daemon(cli: Cli) -> None:
    cli("servers", "enable", "files")
    ran = cli("servers", "restart", "files", "--json")
    if (cli.home / "daemon.json").exists():
        assert (ran.code, ran.json["state"]) == (0, "connected")
    else:
        assert (ran.code, ran.json["rule"]) == (1, "conflict")


@pytest.mark.requirement("C19.3")
def test_what_the_page_says_of_entries_loads(fresh: Cli) -> None:
    page = (Path(__file__).parents[2] / "docs/mcp.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert blocks
    for block in blocks:
        (fresh.home / "config.toml").write_text(block)
        assert fresh("config", "check").code == 0
