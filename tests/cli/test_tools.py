"""Listing, showing, calling and explaining tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C12.5")


@pytest.mark.requirement("C12.5", "C7.13", "C13.6")
def test_a_call_answers_the_object_of_the_contract(openfang: Cli) -> None:
    written = openfang.call("file_write", path="a.txt", content="hello")
    read = openfang.call("file_read", path="a.txt")
    assert (written.code, read.code) == (0, 0)
    body = read.json
    assert body == {
        "call_id": body["call_id"],
        "outcome": "ok",
        "content": [{"type": "text", "text": "hello"}],
        "structured": None,
        "labels": ["local_file"],
        "audit": body["audit"],
    }
    assert body["audit"].keys() == {"start", "end", "hash"}
    assert (openfang.home / "workspaces/key-admin/a.txt").read_text() == "hello"
    found = openfang("audit", "search", "--call", body["call_id"], "--json").lines
    assert [event["event_type"] for event in found] == [
        "policy_decision",
        "tool_invocation_start",
        "tool_invocation_end",
    ]
    told = [body["audit"]["start"], body["audit"]["end"]]
    assert [event["audit_id"] for event in found][1:] == told


@pytest.mark.requirement("C1.5", "C1.1")
def test_a_tool_is_found_by_wire_name_canonical_id_and_alias(openfang: Cli) -> None:
    ids = {
        openfang("tools", "show", name, "--json").json["id"]
        for name in ("shell_exec", "builtin:shell_exec", "bash_exec")
    }
    assert ids == {"builtin:shell_exec"}


def test_the_list_filters_and_comes_as_table_and_as_json(openfang: Cli) -> None:
    risky = openfang("tools", "list", "--risk", "high", "--json").json
    assert [tool["name"] for tool in risky] == ["shell_exec"]
    reads = openfang("tools", "list", "--tag", "fs.read", "--source", "builtin")
    assert reads.out.splitlines()[0].startswith("NAME           RISK  SIDE EFFECTS  SOURCE   WHAT")
    names = [line.split()[0] for line in reads.out.splitlines()[1:]]
    assert names == ["file_list", "file_read", "image_analyze"]


@pytest.mark.requirement("C7.3", "C7.6")
def test_a_disabled_tool_leaves_the_list_and_is_refused_by_the_first_gate(fresh: Cli) -> None:
    fresh.configure('[tools]\ndisabled = ["system_time"]')
    assert "system_time" not in fresh("tools", "list").out
    assert "(disabled)" in fresh("tools", "list", "--all").out
    ran = fresh.call("system_time")
    assert (ran.code, ran.json["detail"]) == (3, "Policy violation: Tool is disabled")


def test_accepting_is_for_tools_that_exist_and_for_administrators(openfang: Cli) -> None:
    assert openfang("tools", "accept", "nothing_such").code == 3
    other = {"OPENFANG_API_KEY": openfang("keys", "create", "someone").out.strip()}
    assert openfang("tools", "accept", "file_read", env=other).code == 3


@pytest.mark.requirement("C12.5")
def test_people_get_the_text_on_stdout_and_the_rest_on_stderr(openfang: Cli) -> None:
    openfang.call("memory_store", key="word", value="remember me")
    ran = openfang("tools", "call", "memory_recall", "--args", '{"key": "word"}')
    assert (ran.code, ran.out) == (0, "remember me\n")
    assert ran.err.startswith("ok | call_")
    assert " | audit " in ran.err


@pytest.mark.requirement("C12.5")
def test_a_tool_that_says_no_is_exit_4(openfang: Cli) -> None:
    ran = openfang.call("file_read", path="not-there.txt")
    assert (ran.code, ran.json["outcome"]) == (4, "error")


@pytest.mark.requirement("C7.11", "C12.5")
def test_a_tool_that_takes_too_long_is_exit_4_with_the_reason(fresh: Cli, tmp_path: Path) -> None:
    fresh.configure("[tools]\ntimeout_secs = 0.2")
    plan = tmp_path / "plan"
    plan.write_text("sleep")
    spec = fresh("spec", "freeze", str(plan)).out.strip()
    ran = fresh.call("shell_exec", "--spec", spec, command=["sleep", "20"])
    assert (ran.code, ran.json["outcome"]) == (4, "error")


@pytest.mark.requirement("C12.5", "C4.6")
def test_an_unknown_tool_is_exit_3_and_a_404(openfang: Cli) -> None:
    ran = openfang.call("nothing_such")
    assert (ran.code, ran.json["status"]) == (3, 404)
    assert ran.json["way_out"] == "openfang tools list"


@pytest.mark.requirement("C7.5", "C12.5")
def test_arguments_that_do_not_fit_are_exit_3_and_a_422(openfang: Cli) -> None:
    ran = openfang.call("file_read", path=7)
    assert (ran.code, ran.json["status"], ran.json["rule"]) == (3, 422, "schema_mismatch")


@pytest.mark.requirement("C7.5")
def test_a_byte_more_than_a_mebibyte_is_refused_by_the_rule(openfang: Cli, tmp_path: Path) -> None:
    empty = len(json.dumps({"path": "b", "content": ""}, separators=(",", ":")))
    for more, code in ((0, 0), (1, 3)):
        body = {"path": "b", "content": "x" * ((1 << 20) - empty + more)}
        file = tmp_path / "arguments.json"
        file.write_text(json.dumps(body))
        ran = openfang("tools", "call", "file_write", "--args-file", str(file), "--json")
        assert ran.code == code
    assert ran.json["status"] == 422
    assert "1048576" in ran.json["detail"].replace(",", "").replace("_", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"path": ', "line 1, column 10"),
        ('{\n"path": x}', "line 2"),
        ("[1]", "must be a JSON object, got list"),
        ("null", "must be a JSON object, got null"),
        ('{"a": NaN}', "not valid JSON"),
    ],
)
def test_broken_arguments_are_wrong_usage_with_the_position(
    openfang: Cli, text: str, words: str
) -> None:
    ran = openfang("tools", "call", "file_read", "--args-file", "-", "--json", stdin=text)
    assert (ran.code, ran.json["status"]) == (2, 400)
    assert words in ran.json["detail"]


@pytest.mark.requirement("C7.12")
def test_what_was_cut_is_readable_whole_by_the_same_caller_only(
    openfang: Cli, tmp_path: Path
) -> None:
    text = "".join(f"line {number}\n" for number in range(9_000))
    openfang.call("file_write", path="long.txt", content=text)
    body = openfang.call("file_read", path="long.txt").json
    assert sum(len(part["text"]) for part in body["content"][:-1]) == 50_000
    uri = body["content"][-1]["text"].rsplit(" ", 1)[-1].rstrip("]")
    assert openfang("results", "show", uri).out == text
    file = tmp_path / "whole.txt"
    assert openfang("results", "show", uri, "--output", str(file)).code == 0
    assert file.read_text() == text + "\n"
    other = openfang("keys", "create", "stranger").out.strip()
    ran = openfang("results", "show", uri, env={"OPENFANG_API_KEY": other})
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.requirement("C7.14")
def test_explain_tells_every_step_and_changes_nothing(openfang: Cli) -> None:
    command = ("--args", '{"command": "ls"}')
    before = openfang.sql("SELECT COUNT(*) AS n FROM audit")
    ran = openfang("explain", "shell_exec", *command, "--json")
    assert (ran.code, ran.json["outcome"]) == (5, "ask")
    gates = {gate["gate"]: gate for gate in ran.json["gates"]}
    six = ("disabled", "mode", "spec_frozen", "project", "policy", "admin_token")
    assert [name for name in gates if name in six] == list(six)
    assert "openfang spec freeze" in gates["spec_frozen"]["way_out"]
    planning = openfang("explain", "shell_exec", *command, "--mode", "planning")
    assert planning.code == 3
    assert "would be refused" in planning.out
    assert openfang("explain", "system_time").code == 0
    assert openfang.sql("SELECT COUNT(*) AS n FROM audit") == before
    assert openfang("approvals", "list", "--json").json == []


@pytest.mark.requirement("C12.5", "C10.1")
def test_a_batch_answers_every_line_with_its_number(openfang: Cli) -> None:
    lines = (
        '{"tool": "memory_store", "arguments": {"key": "a", "value": 1}}\n'
        "\n"
        "{broken\n"
        '{"tool": "nothing_such"}\n'
        '{"tool": "file_write", "arguments": {"path": "x", "content": ""},'
        ' "context": {"mode": "planning"}}\n'
        '{"tool": "system_time", "context": {"colour": "red"}}\n'
        '{"tool": "file_read", "arguments": {"path": "not-there"}}'
    )
    ran = openfang("tools", "batch", "-", "--run", "run-of-a-test", stdin=lines)
    assert ran.code == 4
    seen = [(line["line"], line.get("outcome") or line["status"]) for line in ran.lines]
    assert seen == [(1, "ok"), (3, 400), (4, 404), (5, 403), (6, 400), (7, "error")]
    runs = openfang.sql(
        "SELECT DISTINCT context->>'run' AS run FROM task_audits WHERE context->>'run' IS NOT NULL"
    )
    assert {"run": "run-of-a-test"} in runs


@pytest.mark.requirement("C8.3")
def test_a_parallel_batch_answers_every_line_once(openfang: Cli) -> None:
    calls = [
        {"tool": "memory_store", "arguments": {"key": f"p{number}", "value": number}}
        for number in range(40)
    ]
    ran = openfang.batch(calls, "--parallel", "8")
    assert ran.code == 0
    assert sorted(line["line"] for line in ran.lines) == list(range(1, 41))


@pytest.mark.requirement("C10.2", "C10.3", "C10.4")
def test_identical_calls_of_a_batch_are_warned_of_and_then_blocked(openfang: Cli) -> None:
    openfang.call("file_write", path="same.txt", content="the same")
    lines = openfang.batch([{"tool": "file_read", "arguments": {"path": "same.txt"}}] * 5).lines
    assert [line.get("rule") for line in lines] == [None] * 3 + ["identical_outcome"] * 2
    assert "[loop guard]" in lines[2]["content"][-1]["text"]
    assert lines[3]["status"] == 429
    apart = [openfang.call("file_read", path="same.txt").code for _ in range(5)]
    assert apart == [0] * 5
