from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.app.connect.importing import plan
from openfang.config.clients import ClientFile, named_file, usual_files
from openfang.config.edit import with_server
from openfang.config.foreign import Around, Foreign, is_us, translated, valid_name
from openfang.config.jsonc import JsonProblem, read_json
from openfang.config.references import References, Refused

pytestmark = pytest.mark.requirement("C2.3")
# How long one example takes says more of what else the machine does than of us.
many = settings(max_examples=100, deadline=None)


def around(**variables: str) -> Around:
    references = References(variables=variables, folders={"userHome": "/home/me"})
    file = Path("/nowhere/mcp.json")
    return Around(client="X", file=file, folder=file.parent, references=references)


def read(fields: dict[str, Any], **variables: str) -> Foreign:
    return translated("a", fields, around(**variables))


def test_references_are_said_in_our_words() -> None:
    references = References(variables={"SET": "1"}, folders={"userHome": "/home/me"})
    assert (
        references.kept("${env:SET}-${SET}-${SET:-2}-${userHome}")
        == "${SET}-${SET}-${SET}-/home/me"
    )
    assert references.kept("${UNSET:-2}") == "2"
    assert references.kept("Bearer ${input:my-key.1}") == "Bearer ${MY_KEY_1}"
    assert references.taken() == ["needs MY_KEY_1: openfang secrets set MY_KEY_1"]
    assert references.value("${SET}/x") == "1/x"
    for text in ("${UNSET}", "${command:x}", "${}"):
        with pytest.raises(Refused):
            references.value(text)


def test_a_name_behind_a_dollar_is_a_reference_where_the_program_says_so() -> None:
    folders = {"userHome": "/home/me"}
    bare = References(variables={"SET": "1"}, folders=folders, bare=True)
    assert bare.kept("$SET-${SET}-$userHome") == "${SET}-${SET}-/home/me"
    assert bare.value("/x/$SET") == "/x/1"
    assert References(variables={"SET": "1"}, folders=folders).kept("$SET") == "$SET"


def test_a_command_that_is_a_table_is_read_like_any_other() -> None:
    table = {"path": "docs", "args": ["--all"], "env": {"A": "b"}}
    found = read({"command": table, "settings": {}})
    assert found == read({"command": "docs", "args": ["--all"], "env": {"A": "b"}, "settings": {}})
    assert found.entry["transport"] == {"type": "stdio", "command": "docs", "args": ["--all"]}
    assert "no text" in read({"command": {"args": []}}).refused


def test_a_file_of_the_user_is_no_projects_in_their_own_folder(tmp_path: Path) -> None:
    file = tmp_path / ".cursor/mcp.json"
    file.parent.mkdir()
    file.touch()
    assert usual_files({"HOME": str(tmp_path)}, tmp_path) == [ClientFile("Cursor", file)]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "neither a command nor an address"),
        ({"command": "  "}, "is empty"),
        ({"command": 1}, "no text"),
        ({"command": "x", "args": "y"}, "no list"),
        ({"command": "x", "env": ["A"]}, "no table"),
        ({"command": "x", "env": {"A": {}}}, "no text"),
        ({"command": "x", "args": ["${GONE}"]}, "not set"),
        ({"command": "x", "args": ["--root=../y"]}, "`..`"),
        ({"type": "smtp", "url": "https://x.example"}, "smtp"),
        ({"url": "ftp://x.example"}, "http://"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(fields: dict[str, Any], why: str) -> None:
    assert why in read(fields).refused


def test_a_secret_is_not_written_out_into_a_command() -> None:
    assert "API_KEY" in read({"command": "x", "args": ["${API_KEY}"]}, API_KEY="hush").refused
    found = read({"command": "x", "args": ["${PLACE}"]}, PLACE="/srv")
    assert found.entry["transport"]["args"] == ["/srv"]
    assert found.notes == ("the value of PLACE is written out",)


@pytest.mark.parametrize(
    ("line", "us"),
    [
        ("openfang mcp", True),
        ("/opt/bin/openfang mcp", True),
        ("C:\\\\bin\\\\openfang.exe mcp", True),
        ("npx -y openfang@1.2 mcp", True),
        ("uv tool run openfang[agents] mcp", True),
        ("python3.11 -m openfang mcp", True),
        ("env A=1 openfang mcp", True),
        ("npx -y openfang-tools", False),
        ("npx -y server-filesystem /srv/openfang", False),
        ("node openfang", False),
        ("python server.py openfang", False),
    ],
)
def test_our_own_command_is_known(line: str, *, us: bool) -> None:
    assert is_us(line.split()) is us


@given(st.text(max_size=80))
@many
def test_any_name_becomes_a_valid_one(text: str) -> None:
    assert valid_name(text).replace("-", "a").replace("_", "a").isalnum()
    assert valid_name(text).isascii()
    assert 0 < len(valid_name(text)) <= 64


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8) | st.just("${A:-b}"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *(
            "type",
            "command",
            "args",
            "env",
            "url",
            "headers",
            "cwd",
            "disabled",
            "tool_timeout_sec",
        ),
        *("env_vars", "http_headers", "bearer_token_env_var", "enabled_tools", "surprise"),
    ]
)
LIKELY = st.fixed_dictionaries({"command": st.text(min_size=1, max_size=5)})


def both(likely: dict[str, Any], odd: dict[str, Any]) -> dict[str, Any]:
    return {**likely, **odd}


@given(st.lists(st.builds(both, LIKELY, st.dictionaries(KEYS, VALUES)), max_size=3))
@many
def test_whatever_stands_there_is_taken_or_skipped_with_a_reason(
    entries: list[dict[str, Any]],
) -> None:
    found = [translated(f"n{number}", entry, around()) for number, entry in enumerate(entries)]
    text = ""
    for one in plan(found, [], frozenset()):
        one.body()
        if not one.skipped:
            text = with_server(text, one.entry)
            assert tomllib.loads(text)["mcp_servers"][-1] == one.entry


def test_the_usual_places_are_looked_at(tmp_path: Path) -> None:
    user, project = tmp_path / "me", tmp_path / "work"
    for file in (user / ".claude.json", project / ".vscode/mcp.json", user / "codex/config.toml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    environ = {"HOME": str(user), "CODEX_HOME": str(user / "codex")}
    assert usual_files(environ, project) == [
        ClientFile("Claude Code", user / ".claude.json"),
        ClientFile("Codex", user / "codex/config.toml"),
        ClientFile("VS Code", project / ".vscode/mcp.json", project=True),
    ]
    assert named_file(Path("/x/.cursor/mcp.json")).client == "Cursor"
    assert named_file(Path("/x/mcp_config.json")).client == "Windsurf"
    assert named_file(Path("/x/other.json")).client == "other.json"


def test_a_comma_too_many_is_forgiven_where_editors_forgive_it() -> None:
    text = '{"a": [1, 2,], // here\n "b": {"c": 1,},}'
    assert read_json(text, trailing=True)[0] == {"a": [1, 2], "b": {"c": 1}}
    with pytest.raises(JsonProblem, match="no comma"):
        read_json(text)
    with pytest.raises(JsonProblem):
        read_json("[1,,]", trailing=True)
