"""Servers that cannot be: what stops a start, what leaves the old file in force, and what is
one server's matter alone (C2.6, C2.9).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C2.6", "C2.9", "C3.8")

PEER = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
GOOD = f"""\
[[mcp_servers]]
name = "good"
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{PEER}"] }}
"""
HEAD = GOOD.count("\n")


class Mistake(NamedTuple):
    text: str
    line: int
    entry: str
    reason: str


MISTAKES = {
    "unknown transport": Mistake(
        '[[mcp_servers]]\nname = "bad"\n[mcp_servers.transport]\ntype = "smtp"\nurl = "x"\n',
        4,
        "mcp_servers.bad.transport.type",
        'expected "stdio", "sse" or "http", got "smtp"',
    ),
    "no command": Mistake(
        '[[mcp_servers]]\nname = "bad"\n[mcp_servers.transport]\ntype = "stdio"\n',
        3,
        "mcp_servers.bad.transport.command",
        "expected a string, got nothing",
    ),
    "a command that climbs": Mistake(
        '[[mcp_servers]]\nname = "bad"\ntransport = { type = "stdio", command = "../../sh" }\n',
        3,
        "mcp_servers.bad.transport.command",
        "expected a path without `..`",
    ),
    "two of one name": Mistake(
        '[[mcp_servers]]\nname = "good"\ntransport = { type = "http", url = "http://x" }\n',
        1,
        "mcp_servers.good",
        "expected one entry of this name, got another in config.toml:1",
    ),
}


def told(mistake: Mistake) -> str:
    return f"config.toml:{HEAD + mistake.line}: {mistake.entry}: {mistake.reason}"


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_stops_the_start_with_file_line_entry_and_reason(
    fresh: Cli, mistake: Mistake
) -> None:
    (fresh.home / "config.toml").write_text(GOOD + mistake.text)
    for words in (("start", "--listen", "127.0.0.1:0"), ("config", "check"), ("servers", "list")):
        ran = fresh(*words)
        assert ran.code == 1, words
        assert told(mistake) in ran.err + ran.out, words
    assert not (fresh.home / "daemon.json").exists()


@pytest.fixture
def served(fresh: Cli) -> Iterator[Cli]:
    (fresh.home / "config.toml").write_text(GOOD)
    with serving(fresh):
        assert fresh("servers", "enable", "good").out == "good: connected, 1 tools\n"
        yield fresh


def test_on_reload_the_old_file_stays_in_force_and_the_mistake_is_shown(served: Cli) -> None:
    for mistake in MISTAKES.values():
        (served.home / "config.toml").write_text(GOOD + mistake.text)
        ran = served("config", "reload")
        assert ran.code == 1
        assert told(mistake) in ran.err
        state = served("status", "--json").json["config"]
        assert state["state"] == "rejected"
        (problem,) = state["problems"]
        assert (problem["line"], problem["key"]) == (HEAD + mistake.line, mistake.entry)
        assert told(mistake) in served("status").out
        checked = served("config", "check")
        assert (checked.code, told(mistake) in checked.err + checked.out) == (1, True)
        assert served.call("mcp:good:echo", text="on").json["content"][0]["text"] == "on"
        assert served("servers", "health", "--json").json == {"good": "healthy"}
    (served.home / "config.toml").write_text(GOOD)
    assert served("config", "reload").code == 0
    assert served("status", "--json").json["config"]["state"] != "rejected"


WORLD = {
    "missing": ('command = "no-such-program"', "", "no-such-program was not found"),
    "unset": (f'command = "{sys.executable}"', 'env = ["NOT_SET_HERE"]', "NOT_SET_HERE is not set"),
    "header": (
        'url = "https://127.0.0.1/", headers = { A = "${NOT_SET_HERE}" }',
        "",
        "NOT_SET_HERE is not set",
    ),
}


def test_what_depends_on_the_world_is_that_servers_matter_alone(served: Cli) -> None:
    for name, (reached, more, _) in WORLD.items():
        kind = "http" if "url" in reached else "stdio"
        served.configure(
            f'[[mcp_servers]]\nname = "{name}"\n{more}\n'
            f'transport = {{ type = "{kind}", {reached} }}\n'
        )
    assert served("config", "reload").code == 0
    for name, (_, _, reason) in WORLD.items():
        assert "failed" in served("servers", "enable", name).out
        shown = served("servers", "show", name, "--json").json
        assert (shown["health"], shown["state"]) == ("unhealthy", "failed")
        assert reason in shown["last_error"]
        assert "config.toml:" in shown["origin"]
    assert served.call("mcp:good:echo", text="on").json["content"][0]["text"] == "on"
    health = served("servers", "health", "--json").json
    assert health == {"good": "healthy", **dict.fromkeys(WORLD, "unhealthy")}


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C3.9", "C16.2")
def test_a_server_that_is_kept_from_an_address_is_told_of_with_the_reason(fresh: Cli) -> None:
    asks = "from urllib.request import urlopen; urlopen('http://10.0.0.1/')"
    assert fresh("servers", "add", "nosy", "--", sys.executable, "-c", asks).code == 0
    tried = fresh("servers", "test", "nosy")
    assert tried.code == 1
    assert "403: Refused by openfang (private)" in tried.out
    assert "allow_private" in tried.out
