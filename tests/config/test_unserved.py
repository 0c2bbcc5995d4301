"""What a manifest says in vain is named, with file and line, and is no mistake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.config import manifest_behaviour
from tests.config.test_manifest_schema import PAGE
from tests.config.test_manifests import put

from openfang.config.manifests import check_manifests, doubtful, settings
from openfang.config.unserved import UNSERVED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.1")
KEYS = [setting.key for setting in settings("agent.toml")]


def said(home: Path, text: str = "", *servers: str) -> list[str]:
    put(home, f'name = "coder"\n{text}')
    assert check_manifests(home) == ()
    return [str(doubt) for doubt in doubtful(home, (), servers)]


def test_a_manifest_that_says_nothing_in_vain_gets_no_warning(home: Path) -> None:
    assert said(home) == []
    assert said(home, 'profile = "full"\n[policy]\nproject = "default"\n') == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("published = true", "published"),
        ('priority = "high"', "priority"),
        ('[capabilities]\npaths = ["/srv"]', "capabilities.paths"),
        ("[limits]\nagent_calls = 3", "limits.agent_calls"),
        ("[limits]\nplugin_timeout_secs = 3", "limits.plugin_timeout_secs"),
        ("[safety]\nerror_window_size = 3", "safety.error_window_size"),
        ("[resources]\nmax_network_bytes_per_hour = 1", "resources.max_network_bytes_per_hour"),
        ("[autonomous]\nmax_restarts = 3", "autonomous.max_restarts"),
    ],
)
def test_a_key_that_nobody_acts_on_is_named_with_its_line(home: Path, text: str, key: str) -> None:
    line = 1 + len(text.splitlines())
    place = f"agents/coder/agent.toml:{line}"
    assert said(home, text) == [f"{place}: {key}: it has no effect in this version"]


def test_the_same_holds_for_agent_json(home: Path) -> None:
    put(home, '{"identity": {"id": "coder"}, "safety": {"errorWindowSize": 5}}', file="agent.json")
    (doubt,) = doubtful(home, (), ())
    assert doubt.key == "safety.error_window_size"


def test_a_provider_that_nobody_says_where_to_find_is_said(home: Path) -> None:
    acme = '[model]\nprovider = "acme"\nmodel = "m"\n'
    (doubt,) = said(home, acme)
    assert "model.provider: nobody says where acme is: [providers.acme]" in doubt
    assert said(home, '[model]\nprovider = "anthropic"\nmodel = "claude"') == []
    assert said(home, f'{acme}base_url = "https://acme.example/v1"') == []
    assert doubtful(home, (), (), ("acme",)) == ()


def test_a_skill_or_an_extension_that_is_not_installed_is_said(home: Path) -> None:
    (home / "skills" / "reading-time").mkdir(parents=True)
    (home / "extensions" / "com.example.words").mkdir(parents=True)
    text = 'skills = ["reading-time", "com.example.words", "nosuch", "*"]\n'
    (doubt,) = said(home, text)
    assert doubt.endswith("agent.toml:2: skills: no skill or extension nosuch is installed")


def test_a_server_that_is_not_configured_grants_nothing(home: Path) -> None:
    text = 'mcp_servers = ["ghost", "fs"]\n[capabilities]\ntools = ["mcp:ghost:x", "mcp:fs:*"]'
    ghosts = said(home, text, "fs")
    assert [doubt.partition(": ")[2] for doubt in ghosts] == [
        'capabilities.tools: "mcp:ghost:x" matches nothing: no MCP server ghost is configured',
        "mcp_servers: no MCP server ghost is configured",
    ]
    assert said(home, '[capabilities]\ntools = ["mcp:*", "mcp:gh*:x"]') == []


def test_a_program_that_is_not_there_is_said(home: Path) -> None:
    (doubt,) = said(home, 'module = "python:src/agent.py:run"')
    assert "module: there is no file src/agent.py" in doubt
    put(home, "", file="src/agent.py")
    assert said(home, 'module = "python:src/agent.py:run"') == []


def test_a_closed_path_does_not_bind_programs_and_that_is_said(home: Path) -> None:
    closed = '[capabilities]\ndeny_paths = [".git"]\n'
    assert said(home, closed) == []
    (shell,) = said(home, f'{closed}shell = ["git"]')
    assert "it does not bind what shell_exec starts" in shell
    put(home, "", file="agent.py")
    (own,) = said(home, f'module = "python:agent.py"\n{closed}')
    assert "it does not bind the agent's own program" in own


def test_the_page_lists_exactly_what_is_not_served() -> None:
    section = PAGE.partition("## What has no effect yet\n")[2].partition("\n## ")[0]
    assert re.findall(r"^- `(.*)`$", section, re.MULTILINE) == sorted(UNSERVED)


@pytest.mark.parametrize("key", sorted(UNSERVED))
def test_what_is_not_served_is_a_key_that_no_test_claims(key: str) -> None:
    assert key in KEYS
    claims = {
        test
        for name, test in manifest_behaviour.TOML.items()
        if name == key or name.startswith((f"{key}.", f"{key}[]."))
    }
    assert claims <= {manifest_behaviour.OPEN}
