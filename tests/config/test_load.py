"""From files to a configuration: defaults, includes, overrides, and where things came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from openfang.config.home import find_home
from openfang.config.load import check, load
from openfang.config.models import Config, Place
from openfang.config.node import Plugin
from openfang.config.servers import HttpTransport, StdioTransport
from openfang.core.errors import ConfigError
from openfang.core.tools import Effect, Risk, Trust

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C2.1")

NOTHING: Mapping[str, str] = {}
SERVER = '[[mcp_servers]]\nname = "{}"\ntransport = {{ type = "stdio", command = "{}" }}\n'


@pytest.fixture
def folder(home: Path) -> Path:
    home.mkdir()
    return home


def written(folder: Path, text: str, name: str = "config.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def reasons(folder: Path, environ: Mapping[str, str] = NOTHING) -> list[str]:
    return [str(problem) for problem in check(folder, environ)]


def test_a_missing_file_means_the_defaults(home: Path) -> None:
    config = load(home, NOTHING)
    file = str(home / "checkpoints/checkpoints.jsonl")
    assert config.audit.checkpoint_file == file
    audit = config.audit.model_copy(update={"checkpoint_file": "checkpoints/checkpoints.jsonl"})
    assert config.model_copy(update={"audit": audit}) == Config()


def test_the_home_is_the_named_one_or_that_of_the_user() -> None:
    assert find_home({"HOME": "/home/user"}) == Path("/home/user/.openfang")
    assert find_home({"HOME": "/home/user", "OPENFANG_HOME": "/srv/node"}) == Path("/srv/node")
    assert find_home({"HOME": "/home/user", "OPENFANG_HOME": "~/node"}) == Path("/home/user/node")


@pytest.mark.requirement("C12.3", "C10.4", "C7.12", "C8.2")
def test_the_defaults_are_those_of_the_contract() -> None:
    config = Config()
    assert (config.api_key, config.listen) == (None, ("127.0.0.1", 50051))
    assert (config.limits.cells_per_minute, config.limits.burst) == (500, 500)
    assert config.limits.costs.model_dump() == {"message": 30, "call": 5, "health": 1}
    assert (config.loops.warn, config.loops.block, config.loops.no_progress) == (3, 5, 30)
    assert (config.guard.max_depth, config.guard.agent_calls, config.guard.tool_calls) == (
        5,
        64,
        500,
    )
    assert (config.results.max_chars, config.results.keep_secs) == (50_000, 3600)
    assert (config.a2a.enabled, config.a2a.listen_path, config.a2a.max_tasks) == (
        False,
        "/a2a",
        1000,
    )
    assert (config.policy.profile, config.auth.require_key, config.tools.timeout_secs) == (
        "guided",
        True,
        60,
    )


def test_no_default_program_of_the_shell_can_start_another() -> None:
    starters = {
        "env",
        "sh",
        "bash",
        "xargs",
        "find",
        "sed",
        "awk",
        "sort",
        "split",
        "diff",
        "tar",
        "git",
    }
    assert not starters & set(Config().tools.shell_exec.programs)


def test_an_mcp_server_has_every_key_of_the_contract(folder: Path) -> None:
    written(
        folder,
        """
        [[mcp_servers]]
        name = "github"
        timeout_secs = 2.5
        env = { TOKEN = "${GITHUB_TOKEN}" }
        enabled = false
        allow_tools = ["create_issue"]
        deny_side_effect_tags = ["payments"]
        trust = "high"
        risk = "MED"
        allow_private = true
        lazy = true
        sandbox = "required"
        network = false
        fs_read = ["/srv/data"]
        fs_write = ["~/out"]
        max_concurrency = 3
        [mcp_servers.transport]
        type = "http"
        url = "https://mcp.example.com/api"
        headers = { Authorization = "Bearer ${TOKEN}" }
        [mcp_servers.tools.create_issue]
        risk = "CRITICAL"
        tags = ["network.http"]
        effect = "external_write"
        targets = ["repo"]
        enabled = true
        polls = false
        requires_admin_token = true
        timeout_secs = 5
        """,
    )
    (server,) = load(folder, {"HOME": "/home/user"}).mcp_servers
    assert isinstance(server.transport, HttpTransport)
    assert server.transport.headers["Authorization"].get_secret_value() == "Bearer ${TOKEN}"
    assert isinstance(server.env, dict)
    assert server.env["TOKEN"].get_secret_value() == "${GITHUB_TOKEN}"
    assert (server.timeout_secs, server.trust, server.risk) == (2.5, Trust.HIGH, Risk.MEDIUM)
    assert (server.fs_read, server.fs_write) == (("/srv/data",), ("/home/user/out",))
    override = server.tools["create_issue"]
    assert (override.risk, override.effect) == (Risk.CRITICAL, Effect.EXTERNAL_WRITE)
    assert (override.tags, override.targets) == (("network.http",), ("repo",))


def test_the_child_variables_may_be_a_list_of_names(folder: Path) -> None:
    written(folder, SERVER.format("one", "npx") + 'env = ["TOKEN"]\n')
    (server,) = load(folder, NOTHING).mcp_servers
    assert server.env == ("TOKEN",)
    assert server.transport == StdioTransport(type="stdio", command="npx")


def test_the_environment_overrides_where_the_node_listens(folder: Path) -> None:
    written(folder, 'api_listen = "127.0.0.1:1"\n')
    assert load(folder, {"OPENFANG_LISTEN": "[::1]:8080"}).listen == ("::1", 8080)
    assert reasons(folder, {"OPENFANG_LISTEN": "nowhere"}) == [
        'OPENFANG_LISTEN: api_listen: expected host:port, got "nowhere"'
    ]


def test_the_credential_of_the_command_line_is_no_configuration(folder: Path) -> None:
    assert load(folder, {"OPENFANG_API_KEY": "of_secret"}).api_key is None


@pytest.mark.requirement("C7.8")
def test_a_plugin_is_a_file_beside_the_configuration_and_a_class(folder: Path) -> None:
    written(folder, '[plugins]\ngates = ["python:gates/mine.py:Quiet", "python:/srv/a.py:B"]\n')
    assert load(folder, NOTHING).plugins.gates == (
        Plugin(path=folder / "gates/mine.py", name="Quiet"),
        Plugin(path=Path("/srv/a.py"), name="B"),
    )


def test_audit_files_count_from_the_home(folder: Path) -> None:
    written(folder, '[audit]\njsonl = "log/audit.jsonl"\ncheckpoint_file = "/mnt/other/points"\n')
    audit = load(folder, NOTHING).audit
    assert (audit.jsonl, audit.checkpoint_file) == (
        str(folder / "log/audit.jsonl"),
        "/mnt/other/points",
    )


def test_storage_is_a_file_of_the_home_or_another_server(folder: Path) -> None:
    assert load(folder, NOTHING).storage.file(folder) == folder / "openfang.db"
    written(folder, '[storage]\nurl = "postgresql://db.example.com/openfang"\n')
    assert load(folder, NOTHING).storage.file(folder) is None


def test_what_depends_on_the_world_is_no_mistake_of_the_file(folder: Path) -> None:
    written(
        folder,
        SERVER.format("missing-program", "no-such-program") + 'env = ["UNSET_VARIABLE"]\n'
        '[[mcp_servers]]\nname = "refused"\n'
        'transport = { type = "http", url = "http://169.254.169.254/" }\n',
    )
    assert reasons(folder) == []


def test_included_files_join_their_tables_and_servers(folder: Path) -> None:
    written(
        folder,
        'include = ["more/servers.toml", "limits.toml"]\n[limits]\nburst = 7\n'
        + SERVER.format("a", "x"),
    )
    written(folder, SERVER.format("b", "y"), "more/servers.toml")
    written(folder, "[limits]\ncells_per_minute = 9\n[limits.costs]\ncall = 2\n", "limits.toml")
    config = load(folder, NOTHING)
    assert [server.name for server in config.mcp_servers] == ["a", "b"]
    assert (config.limits.burst, config.limits.cells_per_minute, config.limits.costs.call) == (
        7,
        9,
        2,
    )


@pytest.mark.requirement("C2.6")
def test_a_server_remembers_where_it_was_written(folder: Path) -> None:
    written(folder, 'include = ["more.toml"]\n\n' + SERVER.format("a", "x"))
    written(folder, "# more\n" + SERVER.format("b", "y"), "more.toml")
    config = load(folder, NOTHING)
    assert (config.origin("a"), config.origin("b")) == (
        Place("config.toml", 3),
        Place("more.toml", 2),
    )
    assert config.origin("c") is None


@pytest.mark.requirement("C2.6")
def test_two_files_may_say_the_same_of_one_server(folder: Path) -> None:
    written(folder, 'include = ["more.toml"]\nlog_level = "error"\n' + SERVER.format("a", "x"))
    written(folder, 'log_level = "error"\n' + SERVER.format("a", "x"), "more.toml")
    assert [server.name for server in load(folder, NOTHING).mcp_servers] == ["a"]


@pytest.mark.requirement("C2.6")
def test_a_mistake_in_an_included_file_is_shown_in_that_file(folder: Path) -> None:
    written(folder, 'include = ["more.toml"]\n' + SERVER.format("a", "x"))
    written(folder, "\n" + SERVER.format("b", "y") + "timeout_secs = 0\n", "more.toml")
    assert reasons(folder) == [
        "more.toml:5: mcp_servers.b.timeout_secs: expected a number greater than 0, got 0"
    ]


@pytest.mark.requirement("C2.6")
def test_all_mistakes_of_all_files_come_at_once_and_in_order(folder: Path) -> None:
    written(
        folder, 'include = ["more.toml", "gone.toml"]\nlog_level = "loud"\n[limits]\nburst = 0\n'
    )
    written(folder, "[loops]\nwarn = 1.5\n", "more.toml")
    gone = folder / "gone.toml"
    with pytest.raises(ConfigError) as caught:
        load(folder, NOTHING)
    assert caught.value.message.splitlines() == [
        f"config.toml:1: include[1]: expected an existing .toml or .yaml file, got {gone}",
        'config.toml:2: log_level: expected "debug", "info", "warning" or "error", got "loud"',
        "config.toml:4: limits.burst: expected a whole number of at least 1, got 0",
        "more.toml:2: loops.warn: expected a whole number, got 1.5",
    ]
    assert caught.value.way_out == "mend the file, then: openfang config check"


@pytest.mark.requirement("C12.1")
def test_doing_without_keys_is_accepted_on_loopback_only(folder: Path) -> None:
    written(folder, "\n[auth]\nrequire_key = false\n")
    assert load(folder, NOTHING).auth.require_key is False
    assert reasons(folder, {"OPENFANG_LISTEN": "0.0.0.0:1"}) == [
        "config.toml:3: auth.require_key: expected true while api_listen is 0.0.0.0:1, got false"
    ]


@pytest.mark.requirement("C2.6")
def test_a_file_that_cannot_be_read_is_a_mistake_and_not_an_empty_one(folder: Path) -> None:
    (folder / "config.toml").symlink_to(folder / "gone.toml")
    assert reasons(folder) == ["config.toml: cannot be read: No such file or directory"]


@pytest.mark.requirement("C2.6")
def test_a_pipe_does_not_keep_the_start_waiting(folder: Path) -> None:
    os.mkfifo(folder / "config.toml")
    assert reasons(folder) == ["config.toml: cannot be read: it is not a plain file"]


@pytest.mark.requirement("C18.3")
def test_a_secret_is_in_no_representation(folder: Path) -> None:
    written(
        folder,
        'api_key = "hush-hush"\n[[mcp_servers]]\nname = "a"\nenv = { T = "hush-hush" }\n'
        'transport = { type = "http", url = "https://x.org", headers = { A = "hush-hush" } }\n'
        '[approvals.webhook]\nurl = "https://x.org"\nsecret = "hush-hush-hush-hush"\n',
    )
    config = load(folder, NOTHING)
    assert "hush" not in f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"
