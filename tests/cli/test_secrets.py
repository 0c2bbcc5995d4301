"""`openfang secrets`, in process and over a daemon: the same words, and never a value."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving
from tests.forked import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C18.3", "C2.1")

PEER = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
VALUE = "not-to-be-seen-0815"
START = f"""\
[[mcp_servers]]
name = "needy"
env = {{ TOKEN = "${{NEEDY_TOKEN}}" }}
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{PEER}", "show=TOKEN"] }}

[[mcp_servers]]
name = "far"
enabled = false
[mcp_servers.transport]
type = "http"
url = "https://far.example/mcp"
headers = {{ Authorization = "Bearer ${{NEEDY_TOKEN}}", "X-Other" = "${{OTHER}}" }}
"""


@pytest.fixture(params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    made.configure(START)
    if request.param == "in-process":
        yield made
        return
    with serving(made, env={"OTHER": "from the environment"}):
        yield made


def body(name: str, *servers: str, stored: bool = True, environment: bool = False) -> object:
    return {
        "name": name,
        "stored": stored,
        "in_environment": environment,
        "servers": list(servers),
    }


def test_one_is_set_seen_by_name_and_removed(cli: Cli) -> None:
    wanted = cli("secrets", "list", "--json", env={"OTHER": "here too"}).json
    assert wanted == [body("NEEDY_TOKEN", "far", "needy", stored=False)]
    assert "openfang secrets set NEEDY_TOKEN" in cli("secrets", "list").err
    stored = cli("secrets", "set", "NEEDY_TOKEN", stdin=f"{VALUE}\n")
    assert (stored.code, stored.out) == (0, "NEEDY_TOKEN is stored.\n")
    assert "used by: far, needy" in stored.err
    lonely = cli("secrets", "set", "LONELY", "--json", stdin="another value")
    assert lonely.json == body("LONELY")
    shown = cli("secrets", "list", env={"OTHER": "here too"})
    assert [line.split() for line in shown.out.splitlines()] == [
        ["NAME", "STATE", "USED", "BY"],
        ["LONELY", "stored"],
        ["NEEDY_TOKEN", "stored", "far,", "needy"],
    ]
    held = cli("secrets", "remove", "NEEDY_TOKEN")
    assert (held.code, held.out) == (1, "")
    assert "used by far, needy" in held.err
    assert "openfang secrets remove NEEDY_TOKEN --yes" in held.err
    gone = cli("secrets", "remove", "NEEDY_TOKEN", "--yes")
    assert (gone.code, gone.out) == (0, "NEEDY_TOKEN is removed.\n")
    assert cli("secrets", "remove", "LONELY", "--json").json == body("LONELY", stored=False)
    assert cli("secrets", "remove", "LONELY").code == 1
    everything = (path for path in cli.home.rglob("*") if path.is_file())
    assert not [path for path in everything if VALUE.encode() in path.read_bytes()]


def test_a_server_that_waits_for_it_gets_it_at_once(cli: Cli) -> None:
    assert cli("servers", "health", "--json").json == {"needy": "unhealthy"}
    shown = cli("servers", "show", "needy")
    assert "NEEDY_TOKEN is not set" in shown.out
    cli("secrets", "set", "NEEDY_TOKEN", stdin=VALUE)
    assert cli("servers", "enable", "needy").out == "needy: connected, 1 tools\n"
    answer = cli.call("mcp:needy:echo")
    assert answer.json["content"][0]["text"].startswith("[redacted:")
    cli("secrets", "set", "NEEDY_TOKEN", stdin="x")
    assert cli("servers", "enable", "needy").out == "needy: connected, 1 tools\n"
    assert cli.call("mcp:needy:echo").json["content"][0]["text"] == "x"
    cli("secrets", "remove", "NEEDY_TOKEN", "--yes")
    assert "NEEDY_TOKEN is not set" in cli("servers", "show", "needy").out


def test_every_change_is_on_record_without_the_value(cli: Cli) -> None:
    cli("secrets", "set", "NEEDY_TOKEN", stdin=VALUE)
    cli("secrets", "remove", "NEEDY_TOKEN", "--yes")
    records = cli("audit", "search", "--event", "secret_changed", "--json")
    assert [one["payload"] for one in records.lines] == [
        {"name": "NEEDY_TOKEN", "act": act, "servers": ["far", "needy"]}
        for act in ("set", "remove")
    ]
    assert VALUE not in records.out


def test_what_cannot_be_a_secret_is_told(cli: Cli) -> None:
    for words, stdin, told in (
        (("set", "1ST"), "x", "cannot be the name"),
        (("set", f"TOKEN={VALUE}"), "x", "not given on the command line"),
        (("set", "EMPTY"), "\n", "empty"),
        (("set", "NUL"), "a\0b", "NUL"),
        (("set", "LONG"), "x" * 40_000, "characters"),
        (("set",), "x", "NAME"),
        (("set", "ONE", "two"), "x", "two"),
        (("remove", "nothing"), "", "There is no secret nothing"),
        (("remove", "../master.key"), "", "There is no secret ../master.key"),
    ):
        ran = cli("secrets", *words, stdin=stdin)
        assert ran.code == (1 if words[0] == "remove" else 2), words
        assert told in ran.err, ran.err
        assert "way out" in ran.err
        assert VALUE not in ran.err + ran.out
    assert [one["name"] for one in cli("secrets", "list", "--json").json if one["stored"]] == []


def test_who_is_no_administrator_sees_no_names(cli: Cli) -> None:
    key = cli("keys", "create", "user", "--role", "auditor", "--json").json["secret"]
    as_user = {"OPENFANG_API_KEY": key}
    for words in (("list",), ("set", "A"), ("remove", "A")):
        assert cli("secrets", *words, stdin="x", env=as_user).code == 3


def test_the_environment_goes_first_and_that_is_said(fresh: Cli) -> None:
    ran = fresh("secrets", "set", "OTHER", stdin=VALUE, env={"OTHER": "there"})
    assert "that one is used" in ran.err
    assert "hidden by the environment" in fresh("secrets", "list", env={"OTHER": "there"}).out


def test_a_person_is_asked_and_the_answer_is_not_shown(fresh: Cli) -> None:
    asked = ("secrets", "set", "TYPED")
    shown = b""
    with at_terminal(asked, fresh.environment(), controlling=True) as (running, screen):
        while b"TYPED (not shown): " not in shown:
            shown += os.read(screen, 1000)
        os.write(screen, f"{VALUE}\n".encode())
        while b"is stored." not in shown:
            shown += os.read(screen, 1000)
        assert running.wait(30) == 0
    assert VALUE.encode() not in shown
    assert fresh("secrets", "list", "--json").json == [body("TYPED")]


def test_servers_whose_names_are_spelled_alike_have_secrets_of_their_own(cli: Cli) -> None:
    for name, value in (("a-b", "one"), ("a_b", "two"), ("third", "${MCP_A_B_TOKEN_2}")):
        added = cli("servers", "add", name, "--env", f"TOKEN={value}", "--", "something")
        assert added.code == 0, added.err
    stored = {one["name"]: one["servers"] for one in cli("secrets", "list", "--json").json}
    assert stored["MCP_A_B_TOKEN"] == ["a-b"]
    assert stored["MCP_A_B_TOKEN_2"] == ["a_b", "third"]
    cli("servers", "remove", "a-b")
    cli("servers", "remove", "a_b")  # the third one still refers to its secret
    stored = {one["name"]: one["stored"] for one in cli("secrets", "list", "--json").json}
    assert stored["MCP_A_B_TOKEN_2"]
    assert "MCP_A_B_TOKEN" not in stored
