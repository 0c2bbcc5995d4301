"""`openfang policy`: check, explain, test and replay, in process and over a daemon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C7.8", "C7.14")

RULES = """
[[rules]]
name = "no-secrets-folder"
effect = "deny"
tools = ["builtin:file_*"]
condition = "has(args.path) && args.path.startsWith('secrets/')"
reason = "What is in secrets stays there"

[[rules]]
name = "long-texts"
effect = "ask"
tools = ["builtin:file_write"]
condition = "args.content.size() > 100"

[[rules]]
name = "nights"
effect = "deny"
callers = ["agent:*"]
tools = ["builtin:shell_exec"]
when = { after = "22:00", before = "06:00", timezone = "Europe/Berlin" }
"""
TESTS = """
[[tests]]
caller = "key:ci"
tool = "builtin:file_read"
args = { path = "secrets/a" }
expect = "deny"
rule = "no-secrets-folder"

[[tests]]
caller = "agent:helper"
tool = "builtin:shell_exec"
at = "2026-11-17T23:00:00Z"
expect = "deny"

[[tests]]
caller = "agent:helper"
tool = "builtin:shell_exec"
at = "2026-11-17T12:00:00Z"
expect = "none"
"""


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft.toml"
    path.write_text(RULES + TESTS)
    return path


def test_a_good_file_is_good_and_a_bad_one_is_told_line_by_line(openfang: Cli, draft: Path) -> None:
    assert openfang("policy", "check", str(draft)).code == 0
    assert openfang("policy", "check", str(draft), "--json").json == []
    draft.write_text(RULES.replace("args.content.size()", "args.content.sizes()"))
    ran = openfang("policy", "check", str(draft), "--json")
    assert ran.code == 1
    [problem] = ran.json
    assert (problem["line"], problem["key"]) == (13, "rules.long-texts.condition")
    assert f"{draft}:13: rules.long-texts.condition" in openfang("policy", "check", str(draft)).out


def test_the_tests_of_a_file_are_run_and_a_failure_is_1(openfang: Cli, draft: Path) -> None:
    ran = openfang("policy", "test", str(draft), "--json")
    assert (ran.code, ran.json["passed"], ran.json["failed"]) == (0, 3, 0)
    draft.write_text((RULES + TESTS).replace('expect = "none"', 'expect = "ask"'))
    ran = openfang("policy", "test", str(draft), "--json")
    assert (ran.code, ran.json["failed"]) == (1, 1)
    assert ran.json["tests"][2]["says"] == "none"
    assert "agent:helper" in openfang("policy", "test", str(draft)).out


@pytest.mark.parametrize(
    ("arguments", "code", "says", "found"),
    [
        ({"path": "secrets/a"}, 3, "deny", "yes"),
        ({"path": "open/a"}, 0, "none", "no"),
        ({"path": 7}, 3, "deny", "failed"),
    ],
)
def test_explain_tells_of_each_rule_how_it_was_found(
    openfang: Cli, draft: Path, arguments: Any, code: int, says: str, *, found: str
) -> None:
    typed = ("policy", "explain", "file_read", "--caller", "key:ci", "--file", str(draft))
    ran = openfang(*typed, "--args", json.dumps(arguments), "--json")
    assert (ran.code, ran.json["says"]) == (code, says)
    told = {one["rule"]: one for one in ran.json["rules"]}
    assert told["no-secrets-folder"]["found"] == found
    assert told["long-texts"]["why"] == "it is about other tools"
    assert ("no matching" in told["no-secrets-folder"]["why"].lower()) == (found == "failed")
    shown = openfang(*typed, "--args", json.dumps(arguments)).out
    assert "no-secrets-folder" in shown


def test_a_replay_shows_what_a_draft_would_have_changed(openfang: Cli, draft: Path) -> None:
    openfang.call("file_write", path="secrets/a", content="x")
    openfang.call("file_write", path="b", content="y" * 200)
    openfang.call("file_write", path="c", content="short")
    openfang.call("file_write", path="d", content="password is hunter2hunter2 AKIAIOSFODNN7EXAMPLE")
    told = openfang("policy", "replay", str(draft), "--json").json
    decisions = [(one["before"], one["after"], one["rules"]) for one in told["decisions"]]
    assert decisions[:2] == [
        ("allow", "deny", ["no-secrets-folder"]),
        ("allow", "ask", ["long-texts"]),
    ]
    assert decisions[2:] == [("allow", "undecidable", ["long-texts"])]
    assert told["decisions"][2]["why"] == "redacted in the log: content"
    assert told["changed"] == {"allow -> ask": 1, "allow -> deny": 1, "allow -> undecidable": 1}
    assert told["same"] == told["calls"] - 3
    shown = openfang("policy", "replay", str(draft), "--since", "1h").out
    assert "1 allow -> deny" in shown
    nothing = openfang("policy", "replay", str(draft), "--since", "2200-01-01", "--json").json
    assert nothing["calls"] == 0
    assert openfang("policy", "replay", str(draft), "--since", "soon").code == 2


def test_what_is_in_force_is_meant_where_no_file_is_named(fresh: Cli) -> None:
    assert "no problems (0 rules" in fresh("policy", "check").err
    assert fresh("policy", "test").code == 1
    (fresh.home / "policy.toml").write_text(RULES + TESTS)
    assert "no problems (3 rules, 3 tests)" in fresh("policy", "check").err
    assert fresh("policy", "test").code == 0
    refused = fresh.call("file_read", path="secrets/a")
    assert (refused.code, refused.json["rule"]) == (3, "rule:no-secrets-folder")
    told = fresh("explain", "file_read", "--args", '{"path": "secrets/a"}')
    assert told.code == 3
    assert "What is in secrets stays there" in told.out
    unchanged = fresh("policy", "replay", "--json").json
    assert (unchanged["calls"], unchanged["same"]) == (1, 1)
    (fresh.home / "draft.toml").write_text(RULES.replace("secrets/", "others/"))
    told = fresh("policy", "replay", str(fresh.home / "draft.toml"), "--json").json
    assert told["changed"] == {"deny -> allow": 1}
    (fresh.home / "policy.toml").write_text(RULES + "[[rules]]\n")
    assert "policy.toml:21" in fresh("config", "check").out
    assert fresh.call("file_read", path="a").code == 1


def test_a_command_without_rules_does_not_load_the_library_for_them(fresh: Cli) -> None:
    assert "cel_expr_python" not in fresh.imported("tools", "call", "system_time")
    (fresh.home / "policy.toml").write_text(
        '[[rules]]\nname = "a"\neffect = "deny"\nrisk = "HIGH"\n'
    )
    assert "cel_expr_python" not in fresh.imported("tools", "call", "system_time")
    (fresh.home / "policy.toml").write_text(RULES)
    assert "cel_expr_python" in fresh.imported("tools", "call", "system_time")
