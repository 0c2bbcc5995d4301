"""Manifests: two files, one model, no grant that is not written, and every mistake in its place."""

# ruff: noqa: E501 - one case a line, so that the tables read as such
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openfang.config.load import check
from openfang.config.manifest_models import Manifest
from openfang.config.manifest_parts import MIB
from openfang.config.manifest_schedules import Schedule
from openfang.config.manifests import check_manifests, read_manifests
from openfang.config.profiles import PROFILES
from openfang.core.calls import EVERYTHING, Grants

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C2.4", "C2.6", "C6.1")

SEEDS = Path(__file__).parent.parent / "data/seeds"


def put(home: Path, text: str, agent: str = "coder", file: str = "agent.toml") -> Path:
    path = home / "agents" / agent / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def loaded(home: Path) -> Mapping[str, Manifest]:
    manifests, problems = read_manifests(home)
    assert problems == ()
    return manifests


def toml(home: Path, text: str = "") -> Manifest:
    put(home, f'name = "coder"\n{text}')
    return loaded(home)["coder"]


def starry(home: Path, **sections: Any) -> Manifest:
    put(home, json.dumps({"identity": {"id": "coder"}, **sections}), file="agent.json")
    return loaded(home)["coder"]


# What loads


def test_a_home_without_agents_has_none(home: Path) -> None:
    assert loaded(home) == {}
    (home / "agents").mkdir(parents=True)
    (home / "agents/README.md").write_text("files beside agents are none")
    (home / "agents/.git").mkdir()
    assert loaded(home) == {}


def test_the_smallest_manifest_is_a_name_and_means_the_defaults(home: Path) -> None:
    assert toml(home) == Manifest(name="coder")


def test_every_agent_is_loaded_by_its_name(home: Path) -> None:
    put(home, 'name = "b"', "b")
    put(home, '{"identity": {"id": "a"}}', "a", "agent.json")
    assert list(loaded(home)) == ["a", "b"]


@pytest.mark.requirement("C2.7")
def test_the_fragment_of_the_seed_loads_with_its_comments(home: Path) -> None:
    fragment = (SEEDS / "004-02-document.json").read_text("utf-8")
    assert "//" in fragment
    put(home, f'{{"identity": {{"id": "coder"}},\n{fragment}}}', file="agent.json")
    mcp = loaded(home)["coder"].mcp
    assert mcp.expose_tools == ("fs:read_file", "git:status")
    assert mcp.private_tools == ("admin:reset",)
    assert mcp.expose_resources == ()


def test_a_manifest_cannot_be_changed(home: Path) -> None:
    manifest = toml(home)
    with pytest.raises(ValueError, match="frozen"):
        manifest.name = "other"


@pytest.mark.parametrize("word", ["critical", "Critical"])
def test_priorities_are_read_with_and_without_a_capital(home: Path, word: str) -> None:
    assert toml(home, f'priority = "{word}"').priority == "critical"


WAYS = {
    '"reactive"': "reactive",
    '{ periodic = { cron = "every 1h" } }': {"periodic": {"cron": "every 1h"}},
    '{ proactive = { conditions = ["a", "b"] } }': {"proactive": {"conditions": ("a", "b")}},
    "{ continuous = {} }": {"continuous": {"check_interval_secs": 60}},
}


@pytest.mark.parametrize(("text", "meant"), WAYS.items(), ids=WAYS)
def test_a_schedule_is_a_word_or_one_of_three_ways(home: Path, text: str, meant: object) -> None:
    schedule = toml(home, f"schedule = {text}").schedule
    dumped = schedule.model_dump(exclude_none=True) if isinstance(schedule, Schedule) else schedule
    assert dumped == meant


def test_both_files_say_the_same_of_one_agent(home: Path) -> None:
    ours = toml(
        home / "one",
        """
        title = "Coder"
        version = "2.0.0"
        description = "Writes code."
        max_history_messages = 10
        guide = "default-guide"
        plugins = [{ name = "fs", path = "plugins/fs", config = { roots = ["."] } }]
        [model]
        provider = "openai"
        model = "m"
        temperature = 0.5
        max_tokens = 8192
        [capabilities]
        tools = ["fs.read"]
        agent_message = ["helper"]
        paths = ["."]
        deny_paths = [".git"]
        [policy]
        mode = "planning"
        project = "p"
        spec = "abc"
        blacklist = ["payments"]
        [mcp]
        expose_tools = ["fs:read"]
        private_tools = ["fs:reset"]
        expose_resources = ["file:///a"]
        [limits]
        tool_rounds = 7
        tools_at_once = 2
        tool_timeout_secs = 1.5
        model_timeout_secs = 60
        plugin_timeout_secs = 2
        [resources]
        max_memory_bytes = 67108864
        max_cpu_time_ms = 1000
        [safety]
        max_loop_ticks = 9
        max_token_usage = 8
        repetitive_fail_threshold = 7
        frustration_threshold = 6
        error_window_size = 5
        error_rate_threshold = 0.4
        [communication]
        receive_from = ["boss"]
        expose_tools = ["ask"]
        max_message_bytes = 4096
        events = ["agent:started"]
        timeout_secs = 3
        max_retries = 3
        grace_secs = 0
        """,
    )
    theirs = starry(
        home / "two",
        identity={"id": "coder", "name": "Coder", "description": "Writes code.", "version": "2.0.0"},
        cognition={"provider": "openai", "model": "m", "temperature": 0.5, "maxTokens": 8192, "maxToolRounds": 7},
        capabilities={"tools": ["fs.read"], "allowedPaths": ["."]},
        policy={
            "maxConcurrentTools": 2, "toolTimeout": 1500, "llmTimeout": 60000, "pathRestrictions": [".git"],
            "mode": "planning", "project": "p", "spec": "abc", "blacklist": ["payments"],
        },
        memory={"slidingWindowSize": 10},
        plugins=[{"name": "fs", "path": "plugins/fs", "config": {"roots": ["."]}}],
        guide="default-guide",
        safety={
            "maxLoopTicks": 9, "maxTokenUsage": 8, "repetitiveFailThreshold": 7,
            "frustrationThreshold": 6, "errorWindowSize": 5, "errorRateThreshold": 0.4,
        },
        sandbox={"memoryLimitMb": 64, "rpcTimeoutMs": 2000, "cpuTimeoutMs": 1000},
        communication={
            "canSendTo": ["helper"], "canReceiveFrom": ["boss"], "exposedTools": ["ask"], "maxMessageSize": 4096,
            "eventSubscriptions": ["agent:started"], "timeoutMs": 3000, "maxRetries": 3, "gracePeriodMs": 0,
        },
        mcp={"expose_tools": ["fs:read"], "private_tools": ["fs:reset"], "expose_resources": ["file:///a"]},
    )  # fmt: skip
    assert ours == theirs


def test_every_largest_value_of_agent_json_fits_the_manifest(home: Path) -> None:
    day, most = 86_400_000, 1_000_000_000
    manifest = starry(
        home,
        identity={"id": "coder", "name": "n"},
        cognition={
            "provider": "",
            "model": "",
            "temperature": 2,
            "maxTokens": most,
            "maxToolRounds": most,
        },
        policy={"maxConcurrentTools": most, "toolTimeout": day, "llmTimeout": day},
        memory={"slidingWindowSize": most},
        sandbox={"memoryLimitMb": 1 << 20, "rpcTimeoutMs": day, "cpuTimeoutMs": day},
        communication={
            "maxMessageSize": 1 << 40,
            "timeoutMs": day,
            "maxRetries": 100,
            "gracePeriodMs": 300_000,
        },
    )
    assert manifest.model.provider == manifest.model.model == "default"
    assert manifest.resources.max_memory_bytes == MIB << 20


# Grants


def test_no_grant_means_no_access(home: Path) -> None:
    assert toml(home / "one").grants() == Grants(agents=())
    assert starry(home / "two").grants() == Grants(agents=())
    assert toml(home / "three", "[capabilities]\ntools = []\nnetwork = []").grants() == Grants(
        agents=()
    )


def test_everything_must_be_written(home: Path) -> None:
    stars = '[capabilities]\ntools = ["*"]\nnetwork = ["*"]\nshell = ["*"]\nmemory_read = ["*"]\nmemory_write = ["*"]\nagent_message = ["*"]\nagent_spawn = true\nagent_kill = ["*"]'
    assert toml(home, stars).grants() == replace(
        EVERYTHING, agents=("*",), agent_spawn=True, agent_kill=("*",)
    )
    assert starry(home / "two", capabilities={"tools": ["*"]}).grants() == Grants(
        tools=("*",), agents=()
    )


def test_grants_pass_as_they_are_written(home: Path) -> None:
    text = '[capabilities]\ntools = ["file_*"]\nnetwork = ["*.org:443"]\nshell = ["git *"]\nmemory_read = ["a.*"]\nmemory_write = ["b"]'
    assert toml(home, text).grants() == Grants(  # noqa: S604 - a grant, not a shell
        tools=("file_*",),
        network=("*.org:443",),
        shell=("git *",),
        memory_read=("a.*",),
        memory_write=("b",),
        agents=(),
    )


def test_a_built_in_is_granted_by_its_id_whichever_of_its_names_is_written(home: Path) -> None:
    text = '[capabilities]\ntools = ["file_read", "bash_exec", "builtin:bash_exec", "a_b"]'
    assert toml(home, text).grants().tools == (
        "builtin:file_read", "builtin:shell_exec", "builtin:shell_exec", "a_b",
    )  # fmt: skip


def test_servers_and_skills_are_granted_as_tools_and_agents_by_name(home: Path) -> None:
    text = 'mcp_servers = ["github"]\nskills = ["*"]\n[capabilities]\nagent_message = ["helper"]'
    assert toml(home, text).grants() == Grants(
        tools=("mcp:github:*", "ext:*:*"), agents=("helper",)
    )


PROFILE_TOOLS = {
    "minimal": "file_read file_list",
    "coding": "file_read file_list file_write shell_exec web_fetch",
    "research": "web_fetch web_search file_read file_write",
    "messaging": "agent_send agent_list memory_store memory_recall",
    "automation": "file_read file_list file_write shell_exec web_fetch web_search agent_send agent_list memory_store memory_recall",
    "full": "*",
}


@pytest.mark.parametrize(("profile", "tools"), PROFILE_TOOLS.items())
def test_a_profile_grants_its_tools_and_what_they_need(
    home: Path, profile: str, tools: str
) -> None:
    grants = toml(home, f'profile = "{profile}"').grants()
    whole = profile == "full"
    assert {tool.removeprefix("builtin:") for tool in grants.tools} == set(tools.split())
    assert grants.agents == (("*",) if whole or "agent_send" in tools else ())
    assert (grants.agent_spawn, grants.agent_kill) == (whole, ("*",) if whole else ())
    assert grants.network == (("*",) if whole or "web_" in tools else ())
    assert grants.shell == (("*",) if whole or "shell_exec" in tools else ())
    assert grants.memory_read == (("*",) if whole or "memory_" in tools else ())
    assert grants.memory_write == (("*",) if whole else ("self.*",) if "memory_" in tools else ())


def test_the_table_of_profiles_is_whole() -> None:
    assert set(PROFILES) == set(PROFILE_TOOLS)
    assert [name for name, granted in PROFILES.items() if granted.agent_spawn] == ["full"]
    assert [name for name, granted in PROFILES.items() if granted.agent_kill] == ["full"]


def test_what_the_manifest_writes_replaces_that_of_its_profile(home: Path) -> None:
    text = 'profile = "coding"\n[capabilities]\ntools = []\nshell = ["git *"]'
    assert toml(home, text).grants() == Grants(network=("*",), shell=("git *",), agents=())  # noqa: S604 - a grant


# What is refused as a whole


def test_two_manifests_in_one_folder_are_refused_and_so_is_none(home: Path) -> None:
    put(home, 'name = "a"', "a")
    put(home, '{"identity": {"id": "a"}}', "a", "agent.json")
    put(home, "", "b", "agents.toml")
    assert [str(problem) for problem in check_manifests(home)] == [
        "agents/a: expected agent.toml or agent.json, got both",
        "agents/b: expected agent.toml or agent.json, got neither",
    ]


def test_two_agents_that_would_share_a_wire_name_are_refused(home: Path) -> None:
    put(home, 'name = "a-b"', "a-b")
    put(home, '\nname = "a_b"', "a_b")
    (problem,) = check_manifests(home)
    assert problem.place.file == "agents/a_b/agent.toml"
    assert problem.message.endswith("from the one in agents/a-b/agent.toml:1")


def test_a_manifest_that_is_not_there_to_be_read_is_an_error_and_no_absence(home: Path) -> None:
    folder = home / "agents/coder"
    folder.mkdir(parents=True)
    (folder / "agent.toml").symlink_to(home / "nowhere")
    (problem,) = check_manifests(home)
    assert problem.message == "cannot be read: No such file or directory"


def test_a_file_in_the_place_of_the_folder_is_an_error(home: Path) -> None:
    home.mkdir()
    (home / "agents").write_text("")
    (problem,) = check_manifests(home)
    assert str(problem) == "agents: cannot be read: Not a directory"


def test_a_workspace_inside_the_workspaces_or_a_root_of_the_operators_is_taken(
    home: Path, tmp_path: Path
) -> None:
    assert toml(home, 'workspace = "workspaces/shared"').workspace == str(
        home / "workspaces/shared"
    )
    put(home, f'name = "coder"\nworkspace = "{tmp_path}/data/coder"')
    (outside,) = check_manifests(home)
    assert "agents.workspace_roots" in outside.message
    assert check_manifests(home, (f"{tmp_path}/dat",)) == (outside,)
    assert check_manifests(home, (f"{tmp_path}/data",)) == ()


@pytest.mark.parametrize(
    "folder", ["/etc/cron.d", "/usr/local/bin", "/", "~/.ssh", "~", "~/a/.b/c"]
)
def test_no_root_opens_a_folder_of_the_system_or_a_hidden_one_of_the_user(
    home: Path, folder: str
) -> None:
    put(home, f'name = "coder"\nworkspace = "{Path(folder).expanduser()}"')
    assert [problem.key for problem in check_manifests(home, ("/",))] == ["workspace"]


@pytest.mark.requirement("C2.8")
def test_the_configuration_says_in_which_roots_workspaces_may_lie(
    home: Path, tmp_path: Path
) -> None:
    put(home, f'name = "coder"\nworkspace = "{tmp_path}/data/coder"')
    (home / "config.toml").write_text(f'[agents]\nworkspace_roots = ["{tmp_path}/data"]\n')
    assert check(home, {}) == ()


def test_a_link_does_not_make_the_home_a_workspace(home: Path, tmp_path: Path) -> None:
    put(home, f'name = "coder"\nworkspace = "{tmp_path}/link"')
    (tmp_path / "link").symlink_to(home)
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    roots = (str(tmp_path),)
    assert [problem.key for problem in check_manifests(home, roots)] == ["workspace"]
    put(home, f'name = "coder"\nworkspace = "{tmp_path}/ring"')
    assert check_manifests(home, roots) == ()


@pytest.mark.requirement("C2.8")
def test_the_check_of_the_configuration_includes_the_agents(home: Path) -> None:
    put(home, 'name = "coder"\nversion = 1')
    (home / "config.toml").write_text("log_levle = 1")
    files = [problem.place.file for problem in check(home, {})]
    assert files == ["config.toml", "agents/coder/agent.toml"]
