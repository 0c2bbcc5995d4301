"""`openfang import`: the servers of other programs, from their own files."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C2.3", "C2.1")

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
CLAUDE_DESKTOP = {
    "mcpServers": {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_TOKEN": SECRET, "LOG_LEVEL": "debug"},
        },
        "openfang": {"command": "openfang", "args": ["mcp"]},
        "through uvx": {"command": "uvx", "args": ["openfang@latest", "mcp"]},
        "my files!": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/openfang"],
            "disabled": True,
            "autoApprove": ["read_file"],
        },
    }
}
CURSOR = """\
{
  // of the project
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], },
    "remote": {"url": "https://tools.example/mcp", "headers": {"Authorization": "Bearer %s"}},
    "up": {"command": "node", "args": ["../outside.js"]},
  },
}
"""
VSCODE = {
    "inputs": [{"type": "promptString", "id": "api-key", "password": True}],
    "servers": {
        "asks": {
            "type": "http",
            "url": "https://asks.example/mcp",
            "headers": {"X-Api-Key": "${input:api-key}"},
        },
        "here": {
            "command": "node",
            "args": ["${workspaceFolder}/server.js"],
            "envFile": ".env",
        },
        "odd": {"type": "carrier-pigeon"},
    },
}
CODEX = """\
model = "x"
[mcp_servers.docs]
url = "https://docs.example/mcp"
bearer_token_env_var = "DOCS_TOKEN"
tool_timeout_sec = 45
[mcp_servers.local]
command = "docs-server"
env_vars = ["LANG"]
"""
AGENTOS = "mcp_servers:\n- id: echo-math\n  command: [node, index.js]\n  timeout_ms: 5000\n"


def write(path: Path, text: str | dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))


@pytest.fixture
def cli(fresh: Cli) -> Cli:
    """A home of the test's own, and a user who has used other programs before."""
    user = fresh.home.parent
    write(user / ".config/Claude/claude_desktop_config.json", CLAUDE_DESKTOP)
    write(user / ".cursor/mcp.json", CURSOR % SECRET)
    write(user / ".config/Code/User/mcp.json", VSCODE)
    write(user / ".codex/config.toml", CODEX)
    write(user / ".agentos/mcp_servers.yaml", AGENTOS)
    return fresh


def by_name(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    return {one["written_as"]: one for one in ran.json["servers"] if not one["skipped"]}


def skipped(ran: Ran) -> dict[str, str]:
    return {one["written_as"]: one["skipped"] for one in ran.json["servers"] if one["skipped"]}


def servers(cli: Cli) -> dict[str, Any]:
    entries = tomllib.loads((cli.home / "config.toml").read_text()).get("mcp_servers", [])
    return {entry["name"]: entry for entry in entries}


def test_it_shows_what_it_would_do_and_does_nothing(cli: Cli) -> None:
    before = (cli.home / "config.toml").read_text()
    shown = cli("import")
    assert shown.code == 0
    assert "Nothing was changed" in shown.err
    for told in ("github", "Claude Desktop", "my-files", "skipped: it starts openfang itself"):
        assert told in shown.out
    assert SECRET not in shown.out + shown.err
    assert (cli.home / "config.toml").read_text() == before
    assert not (cli.home / "secrets.json").exists()


def test_every_program_is_read_in_its_own_way(cli: Cli) -> None:
    ran = cli("import", "--json")
    found = by_name(ran)
    assert {one["from"] for one in found.values()} == {
        *("Claude Desktop", "Cursor", "VS Code", "Codex", "AgentOS")
    }
    told = skipped(ran)
    assert told["openfang"] == told["through uvx"] == "it starts openfang itself"
    assert told["github"] == "it is the same as github"
    assert "`..`" in told["up"]
    assert "carrier-pigeon" in told["odd"]
    assert found["my files!"]["name"] == "my-files"
    notes = " ".join(found["my files!"]["notes"])
    assert "switched off there" in notes
    assert "not approved here" in notes
    assert found["github"]["secrets"] == ["MCP_GITHUB_GITHUB_TOKEN"]
    assert "left out: envFile" in found["here"]["notes"]
    assert "needs API_KEY: openfang secrets set API_KEY" in found["asks"]["notes"]
    assert "needs DOCS_TOKEN: openfang secrets set DOCS_TOKEN" in found["docs"]["notes"]
    assert found["local"]["notes"] == []
    assert SECRET not in ran.out


@pytest.mark.parametrize("daemon", [False, True])
def test_what_is_imported_waits_and_its_secrets_are_stored(cli: Cli, *, daemon: bool) -> None:
    if daemon:
        with serving(cli):
            done = cli("import", "--yes")
    else:
        done = cli("import", "--yes")
    assert done.code == 0, done.err
    assert "openfang servers enable" in done.out
    found = servers(cli)
    assert set(found) == {
        *("github", "my-files", "remote", "asks", "here", "docs", "local", "echo-math")
    }
    assert not [name for name, entry in found.items() if entry["enabled"]]
    env = found["github"]["env"]
    assert env == {"GITHUB_TOKEN": "${MCP_GITHUB_GITHUB_TOKEN}", "LOG_LEVEL": "debug"}
    headers = found["remote"]["transport"]["headers"]
    assert headers == {"Authorization": "${MCP_REMOTE_AUTHORIZATION}"}
    assert found["asks"]["transport"]["headers"] == {"X-Api-Key": "${API_KEY}"}
    assert found["docs"]["transport"]["headers"] == {"Authorization": "Bearer ${DOCS_TOKEN}"}
    assert (found["docs"]["timeout_secs"], found["local"]["env"]) == (45, ["LANG"])
    assert found["echo-math"]["timeout_secs"] == 5
    assert cli("config", "check").code == 0
    inside = [path for path in cli.home.rglob("*") if path.is_file()]
    assert not [path for path in inside if SECRET.encode() in path.read_bytes()]
    again = cli("import", "--json")
    assert by_name(again) == {}
    records = cli("audit", "search", "--event", "server_changed", "--json").lines
    assert [one["payload"]["act"] for one in records] == ["add"] * 8


def test_one_file_is_named(cli: Cli, tmp_path: Path) -> None:
    user = {"mcpServers": {"mine": {"command": "mine", "env": {"A": "${B:-c}"}}}}
    project = {"mcpServers": {"ours": {"command": "./run.sh"}}}
    write(tmp_path / "run.sh", "")
    write(tmp_path / ".claude.json", {**user, "projects": {str(tmp_path): project}})
    ran = cli("import", str(tmp_path / ".claude.json"), "--yes", "--json")
    assert set(by_name(ran)) == {"mine", "ours"}
    found = servers(cli)
    assert found["mine"]["env"] == {"A": "c"}
    assert found["ours"]["transport"]["command"] == str(tmp_path / "run.sh")
    write(tmp_path / "settings.json", '{"mcp": {"servers": {"s": {"command": "s"}}}} // end\n')
    assert set(by_name(cli("import", str(tmp_path / "settings.json"), "--json"))) == {"s"}
    write(tmp_path / "mcp_config.json", {"mcpServers": {"w": {"serverUrl": "https://w.example"}}})
    windsurf = by_name(cli("import", str(tmp_path / "mcp_config.json"), "--json"))
    assert (windsurf["w"]["from"], windsurf["w"]["transport"]) == ("Windsurf", "http")


def test_a_name_that_is_taken_gets_a_number(cli: Cli, tmp_path: Path) -> None:
    cli("servers", "add", "mine", "--", "something")
    write(tmp_path / ".mcp.json", {"mcpServers": {"mine": {"command": "other"}}})
    found = by_name(cli("import", str(tmp_path / ".mcp.json"), "--yes", "--json"))
    assert found["mine"]["name"] == "mine-2"
    assert set(servers(cli)) == {"mine", "mine-2"}


def test_doing_it_twice_is_doing_it_once(cli: Cli, tmp_path: Path) -> None:
    cli("servers", "add", "taken", "--", "something")
    header = {"Authorization": f"Bearer {SECRET}"}
    entries = {
        "taken": {"command": "other"},
        "database": {"command": "db", "args": ["postgresql://me:hunter22@localhost/mine"]},
        "bridge": {"command": "npx", "args": ["mcp-remote", "--header", f"X: Bearer {SECRET}"]},
        "by key": {"url": f"https://keyed.example/mcp?api_key={SECRET}"},
        "one": {"url": "https://two.example/mcp", "headers": header},
        "other": {"url": "https://two.example/mcp", "headers": {"Authorization": "Bearer b"}},
        "without": {"url": "https://two.example/mcp"},
    }
    file = tmp_path / ".mcp.json"
    write(file, {"mcpServers": entries})
    first = cli("import", str(file), "--yes", "--json")
    names = {name: one["name"] for name, one in by_name(first).items()}
    assert names == {
        **{name: name for name in ("database", "bridge", "one", "other")},
        "taken": "taken-2",
        "by key": "by-key",
    }
    assert skipped(first) == {"without": "it is the same as one"}
    again = cli("import", str(file), "--yes", "--json")
    assert by_name(again) == {}
    assert skipped(again) == {
        **dict.fromkeys(names, "it is there already"),
        "without": "it is the same as one",
    }
    assert len(servers(cli)) == 7
    assert SECRET not in first.out + again.out


def test_what_needs_a_hand_is_said(cli: Cli, tmp_path: Path) -> None:
    entries = {
        "near": {"url": "http://localhost:3845/sse"},
        "inside": {"url": "http://192.168.1.9/mcp"},
        "line": {"command": "uvx mcp-server-time --local-timezone=UTC"},
        "odd": {"command": "say 'never ends"},
    }
    write(tmp_path / ".mcp.json", {"mcpServers": entries})
    ran = cli("import", str(tmp_path / ".mcp.json"), "--yes", "--json")
    found = by_name(ran)
    private = "its address is private: set allow_private = true in its entry"
    assert found["near"]["notes"] == found["inside"]["notes"] == [private]
    assert skipped(ran) == {"odd": "its command is a line that cannot be read"}
    line = servers(cli)["line"]["transport"]
    assert (line["command"], line["args"]) == ("uvx", ["mcp-server-time", "--local-timezone=UTC"])


@pytest.mark.requirement("C18.3")
def test_no_file_takes_the_secret_of_another_server(cli: Cli, tmp_path: Path) -> None:
    assert cli("servers", "add", "q-1", "--env", f"TOKEN={SECRET}", "--", "server").code == 0
    for name in ("OWN_TOKEN", "SHARED"):
        assert cli("secrets", "set", name, stdin=SECRET).code == 0
    assert cli("servers", "add", "other", "--env", "SHARED", "--", "server").code == 0
    entries = {
        "thief": {"command": "thief", "env": {"IT": "${MCP_Q_1_TOKEN}"}},
        "q": {"url": "https://q.example/mcp", "headers": {"It": "Bearer ${MCP_Q_1_TOKEN}"}},
        "names": {"command": "thief", "env_vars": ["MCP_Q_1_TOKEN"]},
        "early": {"command": "thief", "env": {"IT": "${env:MCP_LATE_TOKEN}"}},
        "late": {"command": "late", "env": {"TOKEN": SECRET}},
        "open": {"command": "open", "env": {"A": "${SHARED}", "B": "${OWN_TOKEN}", "C": "${NEW}"}},
    }
    write(tmp_path / ".mcp.json", {"mcpServers": entries})
    ran = cli("import", str(tmp_path / ".mcp.json"), "--yes", "--json")
    taking = "it refers to MCP_Q_1_TOKEN, which is a secret of q-1"
    assert skipped(ran) == {
        **dict.fromkeys(("thief", "q", "names"), taking),
        "early": "it refers to MCP_LATE_TOKEN, which is a secret of late",
    }
    assert by_name(ran)["open"]["notes"] == [
        "needs NEW: openfang secrets set NEW",
        "CAREFUL: it gets the stored secret OWN_TOKEN",
        "CAREFUL: it gets the stored secret SHARED, as other does",
    ]
    assert set(servers(cli)) == {"q-1", "other", "late", "open"}


def test_the_next_step_can_be_typed(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "my servers" / ".mcp.json"
    write(file, {"mcpServers": {"a": {"command": "a", "env": {"API_KEY": "1", "B_TOKEN": "2"}}}})
    shown = cli("import", str(file))
    assert f"openfang import '{file}' --yes" in shown.err
    assert "2 secrets go to the secret store" in shown.out


def test_one_that_cannot_be_written_keeps_no_other_out(cli: Cli, tmp_path: Path) -> None:
    main = cli.home / "config.toml"
    main.write_text("mcp_servers = []\n")  # no table can be added to this
    write(tmp_path / ".mcp.json", {"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}})
    ran = cli("import", str(tmp_path / ".mcp.json"), "--yes", "--json")
    assert ran.code == 1
    reasons = {one["name"]: one["skipped"] for one in ran.json["servers"]}
    assert set(reasons) == {"a", "b"}
    assert all(reason.startswith("not written: ") for reason in reasons.values())


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.json", "{", "not valid JSON"),
        ("x.json", "[]", "a table in braces"),
        ("x.json", '{"a": 1}', "expected mcpServers"),
        ("x.toml", "a = ", "not valid TOML"),
        ("config.toml", "[[mcp_servers]]\nname = 'a'\n", "include"),
        ("x.yaml", "mcp_servers:\n- id: a\n", "x.yaml:2"),
    ],
)
def test_a_file_that_is_none_is_told_with_its_place(
    cli: Cli, tmp_path: Path, name: str, text: str, told: str
) -> None:
    write(tmp_path / name, text)
    ran = cli("import", str(tmp_path / name))
    assert (ran.code, told in ran.err) == (1, True), ran.err
    assert cli("import", str(tmp_path / "gone.json")).code == 1


def test_one_bad_file_does_not_hide_the_others(cli: Cli) -> None:
    write(cli.home.parent / ".cursor/mcp.json", "{")
    ran = cli("import")
    assert ran.code == 0
    assert "not read" in ran.err
    assert "github" in ran.out


def test_an_entry_that_leads_back_to_us_is_skipped(cli: Cli, tmp_path: Path) -> None:
    entries = {
        "module": {"command": "/usr/bin/python3", "args": ["-m", "openfang", "mcp"]},
        "shell": {"command": "sh", "args": ["-c", "openfang mcp"]},
        "windows": {"command": "cmd", "args": ["/c", "openfang", "mcp"]},
        "address": {"url": "http://127.0.0.1:50051/mcp"},
        "other": {"command": "uvx", "args": ["mcp-server-git", "--repository", "/src/openfang"]},
    }
    write(tmp_path / ".mcp.json", {"mcpServers": entries})
    ran = cli("import", str(tmp_path / ".mcp.json"), "--json")
    assert set(by_name(ran)) == {"other"}
