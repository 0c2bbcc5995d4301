"""A policy file that is wrong is told with file, line, key and what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from openfang.config.load import check, files, load
from openfang.config.rules import PolicyFile, RuleEntry
from openfang.core.errors import ConfigError
from openfang.core.labels import Labels
from openfang.policy.rules.never import EDGES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.6", "C7.8")

DENY = '[[rules]]\nname = "a"\neffect = "deny"\n'
ALLOW = '[[rules]]\nname = "a"\neffect = "allow"\n'
HIDE = '[[rules]]\nname = "a"\neffect = "hide"\n'


def found(home: Path, text: str) -> list[str]:
    (home / "policy.toml").write_text(text)
    return [str(problem) for problem in check(home, {})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rules]]\nname = 'a'\n", ":1: rules.a.effect: expected"),
        (DENY + "colour = 1\n", ":4: rules.a.colour: unknown key"),
        (DENY + "tool = ['x']\n", ":4: rules.a.tool: unknown key; did you mean tools?"),
        (DENY.replace('"a"', '"A b"'), ':2: rules."A b".name: expected a name of small letters'),
        (DENY.replace("deny", "forbid"), ":3: rules.a.effect: expected"),
        (DENY + "risk = 'HUGE'\n", ":4: rules.a.risk: expected"),
        (DENY + "tags = ['fs.burn']\n", ":4: rules.a.tags[0]: expected"),
        (DENY + "labels = { any = ['secrets'] }\n", "did you mean secret?"),
        (DENY + "roles = ['root']\n", ":4: rules.a.roles[0]: expected"),
        (DENY + "edges = ['ftp']\n", ":4: rules.a.edges[0]: expected"),
        (DENY + "callers = ['ci']\n", ":4: rules.a.callers[0]: expected what can begin with"),
        (DENY + "callers = ['key: ci']\n", ":4: rules.a.callers[0]: expected an id or a pattern"),
        (DENY + "tools = ['shell_exec']\n", ":4: rules.a.tools[0]: expected what can begin with"),
        (DENY + "tools = ['smtp:*']\n", ":4: rules.a.tools[0]: expected what can begin with"),
        (DENY + "kinds = ['agent']\ntools = ['!agent:x', 'mcp:*']\n", ":5: rules.a.tools[1]:"),
        (DENY + "kinds = ['builtin']\nsources = ['files']\n", ":5: rules.a.sources: expected"),
        (DENY + "tools = ['mcp:a:*', '!mcp:*']\n", ":4: rules.a.tools: expected something"),
        (DENY + "callers = ['agent:*']\nroles = ['admin']\n", ":5: rules.a.roles: expected user"),
        (DENY + "labels = { all = ['pii'], none = ['pii'] }\n", ":4: rules.a.labels: expected all"),
        (DENY + "labels = { any = ['pii'], none = ['pii'] }\n", ":4: rules.a.labels: expected any"),
        (DENY + "when = { after = '25:00' }\n", ":4: rules.a.when.after: expected a time of day"),
        (DENY + "when = { after = '09:00', before = '09:00' }\n", ":4: rules.a.when.before:"),
        (DENY + "when = { days = [] }\n", ":4: rules.a.when.days: expected"),
        (
            DENY + "when = { timezone = 'Mars' }\n",
            ":4: rules.a.when.timezone: expected a time zone",
        ),
        (DENY + "condition = 'args.x >'\n", ":4: rules.a.condition: expected a CEL expression"),
        (DENY + "condition = 'args.x'\n", ":4: rules.a.condition: expected an expression that is"),
        (DENY + "condition = 'false'\n", ":4: rules.a.condition: expected an expression that can"),
        (DENY + DENY, ":5: rules.a.name: expected one rule of this name, got another in"),
        (ALLOW + "tools = ['*']\n", ":3: rules.a.effect: expected callers or roles as well"),
        (ALLOW + "callers = ['*']\n", ":3: rules.a.effect: expected tools, kinds or sources"),
        (HIDE + "condition = 'args.x > 1'\n", ":4: rules.a.condition: expected in rules for calls"),
        (HIDE + "labels = { any = ['pii'] }\n", ":4: rules.a.labels: expected in rules for calls"),
        (HIDE + "mode = 'planning'\n", ":4: rules.a.mode: expected in rules for calls"),
        ("[[tests]]\ncaller = 'a'\ntool = 'b'\nexpect = 'no'\n", ":4: tests[0].expect: expected"),
        (
            "[[tests]]\ncaller = 'a'\ntool = 'b'\nexpect = 'none'\nat = 'noon'\n",
            ":5: tests[0].at: expected a moment",
        ),
        ("rules = 1\n", ":1: rules: expected a list"),
        ("[[rules]\n", "policy.toml:1"),
    ],
)
def test_a_mistake_is_told_where_it_stands(tmp_path: Path, text: str, problem: str) -> None:
    [told] = found(tmp_path, text)
    assert told.startswith("policy.toml")
    assert problem in told
    with pytest.raises(ConfigError, match=r"policy\.toml"):
        load(tmp_path, {})


def rule(name: str, effect: str, *lines: str) -> str:
    return "\n".join(("[[rules]]", f'name = "{name}"', f'effect = "{effect}"', *lines, ""))


BROAD = rule("broad", "deny", 'tools = ["mcp:*"]')


@pytest.mark.parametrize(
    "text",
    [
        BROAD + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        rule("b", "ask", 'tools = ["mcp:files:*"]', 'risk = "HIGH"') + BROAD,
        rule("b", "allow", 'tools = ["mcp:files:*"]', 'callers = ["*"]') + BROAD,
        BROAD + rule("b", "deny", 'tools = ["mcp:x:y"]', 'condition = "args.n > 1"'),
        rule("one", "deny", 'tags = ["fs.write", "fs.delete"]', 'labels = { any = ["pii"] }')
        + rule("b", "ask", 'tags = ["fs.write"]', 'labels = { all = ["pii"] }'),
        rule("one", "hide", 'tools = ["mcp:a:*"]') + rule("b", "deny", 'tools = ["mcp:a:x"]'),
        rule("one", "deny", 'condition = "args.n > 1"')
        + rule("b", "ask", 'tools = ["mcp:a:x"]', 'condition = "args.n > 1"'),
    ],
)
def test_a_rule_that_another_has_said_all_of_is_a_mistake(tmp_path: Path, text: str) -> None:
    [told] = found(tmp_path, text)
    assert "rules.b.name: expected a rule that can change a verdict" in told


@pytest.mark.parametrize(
    "text",
    [
        BROAD + rule("b", "deny", 'tools = ["builtin:*"]'),
        rule("b", "deny", 'tools = ["mcp:files:*"]') + BROAD.replace("deny", "ask"),
        BROAD.replace('"mcp:*"', '"mcp:*", "!mcp:files:*"')
        + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + rule("b", "deny", 'tools = ["mcp:files:*"]', "shadow = true"),
        BROAD + "shadow = true\n" + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + "enabled = false\n" + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + 'condition = "args.n > 1"\n' + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + 'when = { after = "09:00" }\n' + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + 'risk = "HIGH"\n' + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + 'mode = "planning"\n' + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD + 'callers = ["key:*"]\n' + rule("b", "deny", 'tools = ["mcp:files:*"]'),
        BROAD
        + 'labels = { any = ["pii"] }\n'
        + rule("b", "deny", 'labels = { any = ["private"] }'),
    ],
)
def test_a_rule_that_can_still_have_a_say_is_none(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


def test_no_file_means_no_rules_and_an_empty_one_is_good(tmp_path: Path) -> None:
    assert load(tmp_path, {}).rules.compiled == ()
    assert found(tmp_path, "") == []


def test_the_file_is_watched_before_it_is_there(tmp_path: Path) -> None:
    assert tmp_path / "policy.toml" in files(tmp_path, {})
    (tmp_path / "config.toml").write_text('[policy]\nfile = "other.toml"\n')
    assert tmp_path / "other.toml" in files(tmp_path, {})


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[policy]\nfile = "other.toml"\n')
    [told] = check(tmp_path, {})
    assert str(told).startswith("other.toml: cannot be read")


def test_a_rule_that_is_off_is_checked_and_not_there(tmp_path: Path) -> None:
    off = DENY + "enabled = false\n"
    assert found(tmp_path, off) == []
    assert load(tmp_path, {}).rules.compiled == ()
    assert found(tmp_path, off + "condition = '1'\n")


def test_the_words_of_the_file_are_those_of_the_house() -> None:
    schema = PolicyFile.model_json_schema()["$defs"]
    edges = schema["RuleEntry"]["properties"]["edges"]["items"]["enum"]
    labels = schema["Carries"]["properties"]["any"]["items"]["enum"]
    assert sorted(edges) == list(EDGES)
    assert Labels.of(labels).names == labels
    assert all(field.description for field in RuleEntry.model_fields.values())
