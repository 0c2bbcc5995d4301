"""AgentOS's YAML file, read in place: its rules, its folder, its lines, and hostile ones."""

# ruff: noqa: E501 - a message stands on one line, as it is printed
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.config.documents import read_document
from openfang.config.load import check, load
from openfang.config.models import Place
from openfang.config.positions import MAX_VALUES
from openfang.config.servers import StdioTransport

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.config.servers import McpServer

pytestmark = pytest.mark.requirement("C2.2")

FILE = ".agentos/mcp_servers.yaml"


@pytest.fixture
def user(home: Path) -> Path:
    """A user's home whose configuration includes AgentOS's file."""
    home.mkdir()
    (home / "config.toml").write_text('include = ["~/.agentos/mcp_servers.yaml"]\n', "utf-8")
    (home.parent / ".agentos").mkdir()
    return home.parent


def written(user: Path, text: str) -> None:
    (user / FILE).write_text(text, "utf-8")


def servers(user: Path) -> tuple[McpServer, ...]:
    return load(user / "home", {"HOME": str(user)}).mcp_servers


def reasons(user: Path) -> list[str]:
    problems = check(user / "home", {"HOME": str(user)})
    return [str(problem).removeprefix(f"{user}/.agentos/") for problem in problems]


def test_an_entry_becomes_a_server_with_the_seeds_defaults(user: Path) -> None:
    written(user, "mcp_servers:\n  - id: plain\n    command: [node, index.js]\n")
    (server,) = servers(user)
    assert server.transport == StdioTransport(type="stdio", command="node", args=("index.js",))
    assert (server.name, server.enabled, server.timeout_secs, server.env) == ("plain", True, 30, ())


def test_an_entry_says_all_that_the_seed_lets_it_say(user: Path) -> None:
    written(
        user,
        "mcp_servers:\n  - id: full\n    enabled: false\n    transport: stdio\n"
        "    command: [node]\n    allow_tools: [echo]\n    deny_side_effect_tags: [payments]\n"
        "    timeout_ms: 1500\n    env: {NODE_ENV: production}\n",
    )
    (server,) = servers(user)
    assert (server.enabled, server.timeout_secs, server.allow_tools) == (False, 1.5, ("echo",))
    assert server.deny_side_effect_tags == ("payments",)
    assert isinstance(server.env, dict)
    assert server.env["NODE_ENV"].get_secret_value() == "production"


def test_paths_that_exist_count_from_the_folder_of_the_file(user: Path) -> None:
    folder = user / ".agentos"
    (folder / "servers").mkdir()
    for name in ("servers/index.js", "servers/run", "node", "outside"):
        (folder / name).touch()
    written(
        user,
        "mcp_servers:\n  - id: a\n    command: [node, servers/index.js, gone/index.js, -y]\n"
        "  - id: b\n    command: [servers/run]\n",
    )
    first, second = servers(user)
    assert first.transport == StdioTransport(
        type="stdio",
        command="node",
        args=(str(folder / "servers/index.js"), "gone/index.js", "-y"),
    )
    assert second.transport == StdioTransport(type="stdio", command=str(folder / "servers/run"))


def test_a_server_of_the_file_remembers_its_line(user: Path) -> None:
    written(user, "# servers\nmcp_servers:\n  - command: [node]\n    id: a\n")
    config = load(user / "home", {"HOME": str(user)})
    assert config.origin("a") == Place(str(user / FILE), 3)


MISTAKES = {
    "a command that climbs": (
        "mcp_servers:\n  - id: a\n    command: [node, ../outside/index.js]\n",
        'mcp_servers.yaml:3: mcp_servers.a.command[1]: expected a path without `..`, got "../outside/index.js"',
    ),
    "another transport": (
        "mcp_servers:\n  - id: a\n    transport: https\n    command: [x]\n",
        'mcp_servers.yaml:3: mcp_servers.a.transport: expected "stdio", got "https"',
    ),
    "an empty command": (
        "mcp_servers:\n  - id: a\n    command: []\n",
        "mcp_servers.yaml:3: mcp_servers.a.command: expected a list of at least 1 entries, got a list",
    ),
    "no command": (
        "mcp_servers:\n\n  - id: a\n",
        "mcp_servers.yaml:3: mcp_servers.a.command: expected a list, got nothing",
    ),
    "a timeout of zero": (
        "mcp_servers:\n  - id: a\n    command: [x]\n    timeout_ms: 0\n",
        "mcp_servers.yaml:4: mcp_servers.a.timeout_ms: expected a whole number greater than 0, got 0",
    ),
    "a key of the other file": (
        "mcp_servers:\n  - id: a\n    command: [x]\n    timeout_secs: 1\n",
        "mcp_servers.yaml:4: mcp_servers.a.timeout_secs: unknown key; did you mean timeout_ms?",
    ),
    "a value that YAML takes for a number": (
        "mcp_servers:\n  - id: a\n    command: [x]\n    env:\n      PORT: 8080\n",
        "mcp_servers.yaml:5: mcp_servers.a.env.PORT: expected a string, got something else",
    ),
    "servers that are no list": (
        "mcp_servers:\n  a: {}\n",
        "mcp_servers.yaml:1: mcp_servers: expected a list, got a table",
    ),
    "an empty file": ("", "mcp_servers.yaml:1: expected a table with the key mcp_servers"),
    "a key twice": (
        "mcp_servers:\n  - id: a\n    id: b\n",
        "mcp_servers.yaml:3:5: expected each key once, got 'id' twice",
    ),
    "a key that is no string": (
        "1: x\n",
        "mcp_servers.yaml:1:1: expected a key that is a string",
    ),
    "an object of Python": (
        "mcp_servers: !!python/object/apply:os.getcwd []\n",
        "mcp_servers.yaml:1:14: expected a plain value, got tag:yaml.org,2002:python/object/apply",
    ),
    "a word of Python": (
        "mcp_servers: !!python/name:os.getcwd x\n",
        "mcp_servers.yaml:1:14: not valid YAML: could not determine a constructor for the tag",
    ),
    "no YAML": (
        "mcp_servers: [\n",
        "mcp_servers.yaml:2:1: not valid YAML: expected the node content, but found '<stream end>'",
    ),
    "two documents": (
        "mcp_servers: []\n---\nmcp_servers: []\n",
        "mcp_servers.yaml:2:1: not valid YAML: but found another document",
    ),
    "two entries of one name": (
        "mcp_servers:\n  - {id: a, command: [x]}\n  - {id: a, command: [x]}\n",
        "mcp_servers.yaml:3: mcp_servers.a: expected one entry of this name, got another in ",
    ),
}  # fmt: skip


@pytest.mark.requirement("C2.6")
@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_file_line_and_key(user: Path, text: str, message: str) -> None:
    written(user, text)
    (reason,) = reasons(user)
    assert reason.startswith(message)


@pytest.mark.requirement("C2.6")
def test_the_same_server_in_both_files_counts_once_and_another_is_refused(user: Path) -> None:
    toml = user / "home/config.toml"
    same = '[[mcp_servers]]\nname = "a"\ntransport = { type = "stdio", command = "x" }\n'
    toml.write_text(toml.read_text("utf-8") + same, "utf-8")
    written(user, "mcp_servers:\n  - {id: a, command: [x], timeout_ms: 30000}\n")
    assert [server.name for server in servers(user)] == ["a"]
    written(user, "mcp_servers:\n  - {id: a, command: [y]}\n")
    assert reasons(user) == [
        "mcp_servers.yaml:2: mcp_servers.a: expected one entry of this name, got another in config.toml:2"
    ]


def test_shared_values_and_merged_tables_are_read(user: Path) -> None:
    written(
        user,
        "mcp_servers:\n  - &base\n    id: a\n    command: &program [node]\n    timeout_ms: 5\n"
        "  - <<: *base\n    id: b\n  - {id: c, command: *program}\n",
    )
    assert [(s.name, s.timeout_secs) for s in servers(user)] == [
        ("a", 0.005),
        ("b", 0.005),
        ("c", 30),
    ]


def test_anchors_cannot_multiply_without_end(user: Path) -> None:
    levels = [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    written(user, "k0: &a0 [x, x, x]\n" + "\n".join(levels) + "\n")
    (reason,) = reasons(user)
    assert "expected fewer values: anchors multiply them" in reason
    assert MAX_VALUES < 10**5


@pytest.mark.parametrize(
    "text", ["&a [*a]\n", "a: &a {b: *a}\n", "&a {<<: *a}\n", "a: " + "[" * 3000]
)
def test_a_value_inside_itself_is_a_mistake_and_not_a_crash(user: Path, text: str) -> None:
    written(user, text)
    assert len(reasons(user)) == 1


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!<>|#\"'\n 01?%@,.", max_size=40))
def test_no_text_breaks_the_reading(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_text(text, "utf-8")
    assert read_document(path, "fuzz.yaml") is not None
