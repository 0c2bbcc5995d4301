"""The configuration in force, shown: complete, loadable again, and without secrets."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.config.load import load
from openfang.config.models import Config
from openfang.config.show import as_dict, as_toml, without_credentials, without_secrets
from openfang.config.tools import Toolset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C18.3")

SECRET = "hush-hush-hush-hush"
TEXT = f"""
api_key = "{SECRET}"
[storage]
url = "postgresql://user:{SECRET}@db.example.com/openfang"
[approvals.webhook]
url = "https://hooks.example.com/?token={SECRET}&room=1"
secret = "{SECRET}"
[[a2a.external_agents]]
name = "peer"
url = "https://me:{SECRET}@peer.example.com"
auth = "{SECRET}"
[[mcp_servers]]
name = "remote"
transport = {{ type = "http", url = "https://x.org/{{id}}?api_key={SECRET}", headers = {{ "X-Key" = "{SECRET}" }} }}
[[mcp_servers]]
name = "local"
env = {{ TOKEN = "{SECRET}" }}
transport = {{ type = "stdio", command = "psql", args = ["postgres://me:{SECRET}@db/x"] }}
"""  # noqa: E501 - an inline table has one line


@pytest.fixture
def folder(home: Path) -> Path:
    home.mkdir()
    return home


def test_no_secret_is_shown_and_every_one_is_marked(folder: Path) -> None:
    (folder / "config.toml").write_text(TEXT, "utf-8")
    config = load(folder, {})
    assert SECRET not in as_toml(config)
    shown = tomllib.loads(as_toml(config))
    assert shown == as_dict(config)
    assert (shown["api_key"], shown["approvals"]["webhook"]["secret"]) == ("***", "***")
    assert shown["storage"]["url"] == "postgresql://***@db.example.com/openfang"
    assert shown["a2a"]["external_agents"] == [
        {
            "name": "peer",
            "url": "https://***@peer.example.com",
            "auth": "***",
            "allow_private": False,
            "trust": "low",
        }
    ]
    remote, local = shown["mcp_servers"]
    assert remote["transport"]["headers"] == {"X-Key": "***"}
    assert remote["transport"]["url"] == "https://x.org/{id}?api_key=***"
    assert (local["env"], local["transport"]["args"]) == ({"TOKEN": "***"}, ["postgres://***@db/x"])


@pytest.mark.requirement("C2.8")
def test_what_is_shown_loads_to_the_same(folder: Path) -> None:
    (folder / "config.toml").write_text(
        """
        log_level = "debug"
        policy.blacklist = ["payments"]
        plugins.gates = ["python:gate.py:Mine"]
        [toolsets.small]
        tools = ["builtin:*"]
        rename = { "builtin:file_read" = "read" }
        [classify.tags]
        wipe = ["fs.delete", "fs.write"]
        [[mcp_servers]]
        name = "a"
        env = ["TOKEN"]
        risk = "HIGH"
        trust = "low"
        timeout_secs = 0.5
        transport = { type = "stdio", command = "x" }
        [mcp_servers.tools."odd name"]
        tags = []
        effect = "money"
        """,
        "utf-8",
    )
    config = load(folder, {})
    (folder / "config.toml").write_text(as_toml(config), "utf-8")
    again = load(folder, {})
    assert again.model_dump() == config.model_dump()


TEXTS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=20
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_any_text_is_shown_as_toml_that_reads_back(descriptions: dict[str, str]) -> None:
    config = Config(toolsets={"any": Toolset(descriptions=descriptions)})
    assert tomllib.loads(as_toml(config)) == as_dict(config)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--token=hunter2 --port 80", "--token=*** --port 80"),
        ("--api-key hunter2 rest", "--api-key *** rest"),
        ("--accessToken hunter2", "--accessToken ***"),
        ("--token --verbose rest", "--token --verbose rest"),
        ("-e API_KEY=hunter2 image", "-e API_KEY=*** image"),
        ("--env=API_KEY=hunter2", "--env=API_KEY=***"),
        ("--header Authorization:hunter2", "--header Authorization:***"),
        ("--url=https://u:hunter2@x.org/", "--url=https://***@x.org/"),
        ("--token-file /run/it --monkey=1", "--token-file /run/it --monkey=1"),
        ("host:8080 a=b=c", "host:8080 a=b=c"),
    ],
)
def test_secrets_in_the_words_of_a_command_are_hidden(words: str, shown: str) -> None:
    assert without_secrets(words.split()) == shown.split()
    assert without_secrets(shown.split()) == shown.split()
    assert without_secrets(["-c", f"run {words}"]) == ["-c", f"run {shown}"]


def test_a_value_with_blanks_is_hidden_whole() -> None:
    assert without_secrets(["Authorization: Bearer a b"]) == ["Authorization: ***"]
    assert without_secrets(["a=" * 5_000]) == ["a=" * 5_000]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@x.org/a@b", "https://***@x.org/a@b"),
        ("https://x.org/?Access_Token=1#top", "https://x.org/?Access_Token=***#top"),
        ("see https://u@x.org and ftp://v@y.org", "see https://***@x.org and ftp://***@y.org"),
        ("https://x.org/?room=1", "https://x.org/?room=1"),
        ("npm i @scope/name", "npm i @scope/name"),
    ],
)
def test_credentials_in_addresses_are_hidden(text: str, shown: str) -> None:
    assert without_credentials(text) == shown
