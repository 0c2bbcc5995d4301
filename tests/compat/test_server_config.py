from __future__ import annotations

from pathlib import Path

import pytest

from openfang.compat import MCPConfigManager, MCPServerConfig
from openfang.core.errors import ConfigError

pytestmark = pytest.mark.requirement("C20", "C2.2")
EXAMPLE = Path(__file__).parent.parent / "data/seeds/003-07-config.yaml"
SEVERAL = """\
mcp_servers:
  - id: files
    command: ["node", "files.js"]
    allow_tools: [read_file]
    deny_side_effect_tags: [fs.delete]
    env: {TOKEN: hunter2}
  - id: idle
    enabled: false
    command: [node]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp_servers.yaml"
    path.write_text(SEVERAL)
    return path


def test_the_seeds_example_reads_as_it_is_written() -> None:
    assert MCPConfigManager(EXAMPLE).load_config() == [
        MCPServerConfig(
            id="echo-math",
            command=["node", "servers/echo-math/index.js"],
            timeout_ms=5000,
            env={"NODE_ENV": "production"},
        )
    ]


def test_the_questions_are_answered_from_the_file(file: Path) -> None:
    manager = MCPConfigManager(str(file))
    assert [server.id for server in manager.get_enabled_servers()] == ["files"]
    assert manager.is_tool_allowed("files", "read_file")
    assert not manager.is_tool_allowed("files", "write_file")
    assert manager.is_tool_allowed("idle", "anything")
    assert manager.is_side_effect_denied("files", ["fs.read", "fs.delete"])
    assert manager.is_side_effect_denied("files", "fs.delete")
    assert not manager.is_side_effect_denied("files", ["fs.read"])


def test_a_server_that_is_not_there_may_do_nothing(file: Path) -> None:
    manager = MCPConfigManager(file)
    assert not manager.is_tool_allowed("nobody", "read_file")
    assert manager.is_side_effect_denied("nobody", [])


def test_variables_are_not_shown(file: Path) -> None:
    (files, _) = MCPConfigManager(file).load_config()
    assert files.env == {"TOKEN": "hunter2"}
    assert "hunter2" not in repr(files)


def test_the_usual_file_is_in_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert MCPConfigManager().load_config() == []
    (tmp_path / ".agentos").mkdir()
    (tmp_path / ".agentos/mcp_servers.yaml").write_text(SEVERAL)
    assert [server.id for server in MCPConfigManager().load_config()] == ["files", "idle"]
    assert MCPConfigManager("~/.agentos/mcp_servers.yaml").get_enabled_servers()


@pytest.mark.requirement("C2.6")
@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("mcp_servers:\n  - id: a\n    command: []\n", 3, "mcp_servers.a.command"),
        ("mcp_servers:\n  - id: a\n    command: [x]\n    timeout_ms: 0\n", 4, "greater than 0"),
        ("mcp_servers:\n  - id: a\n    command: [x]\n    transport: tcp\n", 4, "transport"),
        ("mcp_servers:\n  - id: a\n    commnad: [x]\n", 3, "did you mean command?"),
        ("mcp_servers:\n  - {id: a, command: [x]}\n  - {id: a, command: [x]}\n", 3, "one entry"),
        ("mcp_servers: [\n", 2, "YAML"),
        ("- a\n", 1, "expected a table"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_changes_nothing(
    file: Path, text: str, line: int, expected: str
) -> None:
    manager = MCPConfigManager(file)
    manager.load_config()
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        manager.load_config()
    assert f"{file}:{line}:" in str(caught.value)
    assert expected in str(caught.value)
    assert [server.id for server in manager.get_enabled_servers()] == ["files"]


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        MCPConfigManager(tmp_path / "nothing.yaml").load_config()
