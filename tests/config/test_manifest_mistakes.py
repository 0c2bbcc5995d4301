"""Wrong manifests, one mistake each: the message names file, line, key and what was expected."""

# ruff: noqa: E501 - one case a line, so that the tables read as such
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.config.test_manifests import put

from openfang.config.manifests import check_manifests, read_manifests

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.4", "C2.6")


class Mistake(NamedTuple):
    text: str
    line: int
    key: str
    message: str


TOML = {
    "no name": Mistake("", 1, "name", "expected a string, got nothing"),
    "other name than the folder": Mistake('\nname = "helper"', 2, "name", 'expected the name of its folder, "coder", got "helper"'),
    "capital in the name": Mistake('name = "Coder"', 1, "name", 'expected a name of lower-case letters, digits, - and _, got "Coder"'),
    "name that climbs": Mistake('name = "../x"', 1, "name", "expected a name of lower-case letters"),
    "name over the bound": Mistake(f'name = "{"a" * 50}"', 1, "name", "expected a string of at most 49 characters"),
    "unknown key": Mistake('name = "coder"\ntool = []', 2, "tool", "unknown key; expected one of name, title"),
    "mistyped key": Mistake('name = "coder"\n[capabilites]', 2, "capabilites", "unknown key; did you mean capabilities?"),
    "mistyped inner key": Mistake('name = "coder"\n[capabilities]\ntool = ["*"]', 3, "capabilities.tool", "unknown key; did you mean tools?"),
    "grants as a word": Mistake('name = "coder"\n[capabilities]\ntools = "*"', 3, "capabilities.tools", 'expected a list, got "*"'),
    "spawn as a list": Mistake('name = "coder"\n[capabilities]\nagent_spawn = ["*"]', 3, "capabilities.agent_spawn", "expected true or false, got a list"),
    "entry of another type": Mistake('name = "coder"\n[capabilities]\nnetwork = [\n"a",\n5]', 5, "capabilities.network[1]", "expected a string, got 5"),
    "unknown profile": Mistake('name = "coder"\nprofile = "codign"', 2, "profile", "did you mean coding?"),
    "unknown mode": Mistake('name = "coder"\n[policy]\nmode = "plan"', 3, "policy.mode", 'expected "execution" or "planning"'),
    "unknown tag": Mistake('name = "coder"\n[policy]\nblacklist = ["fs.wirte"]', 3, "policy.blacklist[0]", "did you mean fs.write?"),
    "unknown priority": Mistake('name = "coder"\npriority = "urgent"', 2, "priority", 'expected "low", "normal"'),
    "unknown module": Mistake('name = "coder"\nmodule = "wasm:a.wasm"', 2, "module", "expected builtin:chat, python:FILE.py or python:FILE.py:FUNCTION"),
    "module that climbs": Mistake('name = "coder"\nmodule = "python:../a.py"', 2, "module", "expected a path inside the agent's folder, without .."),
    "absolute module": Mistake('name = "coder"\nmodule = "python:/a.py"', 2, "module", "expected a path inside the agent's folder"),
    "plugin that climbs": Mistake('name = "coder"\n[[plugins]]\nname = "fs"\npath = "a/../.."', 4, "plugins.fs.path", "expected a path inside the agent's folder"),
    "option as a requirement": Mistake('name = "coder"\nrequirements = ["-e ."]', 2, "requirements[0]", "expected a package, such as name==1.2"),
    "requirement from elsewhere": Mistake('name = "coder"\nrequirements = ["a @ https://example.org/a.whl"]', 2, "requirements[0]", "expected a package, such as name==1.2"),
    "requirement from a repository": Mistake('name = "coder"\nrequirements = ["git+https://example.org/a"]', 2, "requirements[0]", "expected a package, such as name==1.2"),
    "requirement from a folder": Mistake('name = "coder"\nrequirements = ["plugins/a"]', 2, "requirements[0]", "expected a package, such as name==1.2"),
    "requirement from a file": Mistake('name = "coder"\nrequirements = ["a-1.0-py3-none-any.whl"]', 2, "requirements[0]", "expected a package by its name, and no file"),
    "agent as a tool": Mistake('name = "coder"\n[capabilities]\ntools = ["agent:echo"]', 3, "capabilities.tools", 'expected a tool, got "agent:echo"; agents are granted by agent_message'),
    "tool with a capital": Mistake('name = "coder"\n[capabilities]\ntools = ["File_Read"]', 3, "capabilities.tools", "file_read is meant?"),
    "tool of no kind": Mistake('name = "coder"\n[capabilities]\ntools = ["buildin:file_read"]', 3, "capabilities.tools", "ids begin with"),
    "address as a host": Mistake('name = "coder"\n[capabilities]\nnetwork = ["http://x.com/"]', 3, "capabilities.network", 'expected a host, or host:port, got "http://x.com/"'),
    "python that is no version": Mistake('name = "coder"\npython = "python3"', 2, "python", "expected a version such as 3.12, or an absolute path"),
    "schedule of another word": Mistake('name = "coder"\nschedule = "daily"', 2, "schedule", 'expected "reactive" or a table, got "daily"'),
    "schedule of two ways": Mistake('name = "coder"\n[schedule]\ncontinuous = {}\nperiodic = { cron = "hourly" }', 2, "schedule", "expected one of periodic, proactive and continuous, got a table"),
    "schedule that makes no sense": Mistake('name = "coder"\n[schedule]\nperiodic = { cron = "every blue moon" }', 3, "schedule.periodic.cron", 'expected a schedule such as every 15 minutes, got "every blue moon"'),
    "quiet hours that are none": Mistake('name = "coder"\n[autonomous]\nquiet_hours = "at night"', 3, "autonomous.quiet_hours", "expected a cron expression"),
    "schedule of no way": Mistake('name = "coder"\n[schedule]', 2, "schedule", "expected one of periodic"),
    "schedule without its cron": Mistake('name = "coder"\n[schedule.periodic]', 2, "schedule.periodic.cron", "expected a string, got nothing"),
    "temperature": Mistake('name = "coder"\n[model]\ntemperature = 2.1', 3, "model.temperature", "expected a number of at most 2, got 2.1"),
    "key in the place of its variable": Mistake('name = "coder"\n[model]\napi_key_env = "sk-1"', 3, "model.api_key_env", "expected the name of a variable"),
    "fallback without a model": Mistake('name = "coder"\n\n[[fallback_models]]\nprovider = "x"', 3, "fallback_models[0].model", "expected a string, got nothing"),
    "server that is no name": Mistake('name = "coder"\nmcp_servers = ["git*"]', 2, "mcp_servers[0]", 'expected a name of letters, digits, - and _, or "*", got "git*"'),
    "limit of zero": Mistake('name = "coder"\n[limits]\ntool_rounds = 0', 3, "limits.tool_rounds", "expected a whole number of at least 1, got 0"),
    "the home as workspace": Mistake('name = "coder"\nworkspace = "."', 2, "workspace", "expected a folder inside the home's workspaces, or one of your own"),
    "the agents as workspace": Mistake('name = "coder"\nworkspace = "agents/coder"', 2, "workspace", "expected a folder inside the home's workspaces"),
    "all as workspace": Mistake('name = "coder"\nworkspace = "/"', 2, "workspace", "expected a folder inside the home's workspaces"),
    "all workspaces as one": Mistake('name = "coder"\nworkspace = "workspaces"', 2, "workspace", "expected a folder inside the home's workspaces"),
    "workspace that climbs": Mistake('name = "coder"\nworkspace = "workspaces/../agents"', 2, "workspace", "expected a folder inside the home's workspaces"),
    "workspace with a null": Mistake('name = "coder"\nworkspace = "a\\u0000b"', 2, "workspace", "expected a string without null characters"),
    "not TOML": Mistake('name = "coder"\nname = "coder"', 2, "", "not valid TOML: Cannot overwrite a value"),
}  # fmt: skip

JSON = {
    "no identity": Mistake("{}", 1, "identity", "expected a table, got nothing"),
    "no id": Mistake('{\n"identity": {}}', 2, "identity.id", "expected a string, got nothing"),
    "other id than the folder": Mistake('{"identity": {\n"id": "helper"}}', 2, "identity.id", 'expected the name of its folder, "coder", got "helper"'),
    "unknown section": Mistake('{"identity": {"id": "coder"},\n"mpc": {}}', 2, "mpc", "unknown key; did you mean mcp?"),
    "unknown key": Mistake('{"identity": {"id": "coder"},\n"cognition": {\n"max_tokens": 5}}', 3, "cognition.max_tokens", "unknown key; did you mean maxTokens?"),
    "export of another type": Mistake('{"identity": {"id": "coder"}, "mcp": {\n// one\n"expose_tools": "*"}}', 3, "mcp.expose_tools", 'expected a list, got "*"'),
    "key of a plugin": Mistake('{"identity": {"id": "coder"}, "plugins": [\n{"name": "fs",\n"file": "x"}]}', 3, "plugins.fs.file", "unknown key"),
    "timeout in part": Mistake('{"identity": {"id": "coder"}, "policy": {"toolTimeout": 0.5}}', 1, "policy.toolTimeout", "expected a whole number, got 0.5"),
    "grace over the bound": Mistake('{"identity": {"id": "coder"}, "communication": {"gracePeriodMs": 300001}}', 1, "communication.gracePeriodMs", "expected a whole number of at most 300000, got 300001"),
    "key twice": Mistake('{"identity": {"id": "coder"},\n"mcp": {},\n"mcp": {}}', 3, "", 'not valid JSON: expected each key once, got "mcp" twice'),
    "comma too many": Mistake('{"identity": {"id": "coder"},\n}', 2, "", "not valid JSON: expected no comma before }"),
    "a list": Mistake("[]", 1, "", "expected a table in braces"),
    "not UTF-8": Mistake('{"identity":\n"\udcff"}', 2, "", "expected UTF-8 text, got other bytes"),
}  # fmt: skip

CASES = {
    **{f"toml: {name}": ("agent.toml", mistake) for name, mistake in TOML.items()},
    **{f"json: {name}": ("agent.json", mistake) for name, mistake in JSON.items()},
}


@pytest.mark.parametrize(("file", "mistake"), CASES.values(), ids=CASES)
def test_a_mistake_names_file_line_key_and_what_was_expected(
    home: Path, file: str, mistake: Mistake
) -> None:
    put(home, "", file=file).write_bytes(mistake.text.encode("utf-8", "surrogateescape"))
    (problem,) = check_manifests(home)
    assert (problem.place.file, problem.place.line) == (f"agents/coder/{file}", mistake.line)
    assert problem.key == mistake.key
    assert mistake.message in problem.message


def test_every_mistake_of_every_agent_is_named_and_the_others_are_read(home: Path) -> None:
    put(home, "name = 5\nversion = 1", "a")
    put(home, "{", "b", "agent.json")
    put(home, 'name = "c"', "c")
    manifests, problems = read_manifests(home)
    assert list(manifests) == ["c"]
    assert [str(problem).split(": ")[0] for problem in problems] == [
        "agents/a/agent.toml:1",
        "agents/a/agent.toml:2",
        "agents/b/agent.json:1:2",
    ]
