from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openfang.app.servers.sealing import handed_over, own_secrets, referred, seal
from openfang.config.servers import McpServer
from openfang.sources.mcp.spec import Http, Stdio

pytestmark = pytest.mark.requirement("C2.3", "C18.3")


def sealed(env: dict[str, str]) -> dict[str, str]:
    entry = {"name": "a-b", "transport": {"type": "stdio", "command": "x"}, "env": env}
    return seal(entry).secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "short"),
        ("apiKey", "x"),
        ("DB_PASSWORD", "hunter2"),
        ("ANYTHING", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("WHERE", "postgres://me:hunter2@db.example/x"),
        ("OPAQUE", "a8f5f167f44f4964e6c998dee827110c"),
        ("DATABASE_URL", "file.db"),
    ],
)
def test_what_is_secret_by_name_or_form_is_stored(name: str, value: str) -> None:
    assert list(sealed({name: value}).values()) == [value]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "debug"),
        ("NODE_ENV", "production"),
        ("HOST", "https://api.example.com/v1/long/path/of/it"),
        ("KEYBOARD", "qwerty"),
        ("TOKEN", "${MY_TOKEN}"),
        ("AUTHORIZATION", "Bearer ${MY_TOKEN}"),
        ("EMPTY_SECRET", ""),
        ("DATA", "/srv/data/of/2026/and/more/of/it"),
    ],
)
def test_what_is_none_stays_in_the_file(name: str, value: str) -> None:
    assert sealed({name: value}) == {}


def test_headers_are_secret_unless_they_are_known_not_to_be() -> None:
    headers = {"Authorization": "Bearer abc", "X-Thing": "1", "Accept": "text/plain"}
    transport = {"type": "http", "url": "https://x.example", "headers": headers}
    entry: dict[str, Any] = {"name": "far", "transport": transport}
    found = seal(entry)
    assert found.secrets == {"MCP_FAR_AUTHORIZATION": "Bearer abc", "MCP_FAR_X_THING": "1"}
    assert found.entry["transport"]["headers"] == {
        "Authorization": "${MCP_FAR_AUTHORIZATION}",
        "X-Thing": "${MCP_FAR_X_THING}",
        "Accept": "text/plain",
    }
    assert entry["transport"]["headers"] is headers
    assert "Bearer abc" not in repr(found)


def test_only_what_was_made_for_a_server_goes_with_it() -> None:
    env = {"A": "${MCP_FAR_X}", "B": "Bearer ${SHARED}", "C": "${MCP_FARTHER_X} ${D"}
    server = configured(env=env)
    assert referred(server) == {"MCP_FAR_X", "SHARED", "MCP_FARTHER_X"}
    assert own_secrets(server) == {"MCP_FAR_X"}
    assert referred(configured(env=("HOME", "MCP_FAR_Y"))) == {"HOME", "MCP_FAR_Y"}


def configured(**more: Any) -> McpServer:
    transport = {"type": "stdio", "command": "x"}
    return McpServer.model_validate({"name": "far", "transport": transport, **more})


def test_a_name_that_stands_for_something_else_is_not_taken() -> None:
    entry = {"name": "a-b", "transport": {"type": "stdio"}, "env": {"TOKEN": "one"}}
    found = seal(entry, {"MCP_A_B_TOKEN", "MCP_A_B_TOKEN_2"})
    assert found.secrets == {"MCP_A_B_TOKEN_3": "one"}
    assert found.entry["env"] == {"TOKEN": "${MCP_A_B_TOKEN_3}"}
    twins = {"name": "x", "transport": {"type": "stdio"}, "env": {"A_KEY": "one", "a_key": "two"}}
    assert sorted(seal(twins).secrets.values()) == ["one", "two"]


def test_what_a_server_is_given_is_known_and_ordinary_words_are_not() -> None:
    given = {
        "PATH": "/usr/bin",
        "GITHUB_TOKEN": "not-a-real-1",
        "dbPassword": "hunter2 or 3",
        "API_VERSION": "2026-01-01",
        "TENANT_ID": "72f988bf-86f1-41af-91ab-2d7cd011db47",
        "DB_PASSWORD": "postgres",
    }
    stdio = Stdio(argv=("x",), cwd=Path("/"), environment=given)
    assert handed_over(stdio) == ["not-a-real-1", "hunter2 or 3"]
    headers = {"Authorization": "Bearer not-a-real-2", "Accept": "text/plain; q=0.9", "X-On": "yes"}
    assert handed_over(Http(url="https://x.example", headers=headers)) == ["not-a-real-2"]
