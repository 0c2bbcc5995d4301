"""A call that waits, the person who answers, and the identical call that then runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C15.1", "C15.2", "C15.3")


def echo(openfang: Cli, word: str, *options: str) -> Ran:
    return openfang.call("shell_exec", *options, command=["echo", word])


def test_an_approval_lets_the_identical_call_run_once(openfang: Cli) -> None:
    parked = echo(openfang, "once")
    assert (parked.code, parked.json["status"]) == (5, 202)
    question = parked.json["approval"]
    assert echo(openfang, "once").json["approval"] == question
    assert question in openfang("approvals", "list").out
    shown = openfang("approvals", "show", question, "--json").json
    assert (shown["state"], shown["arguments"]) == ("pending", {"command": ["echo", "once"]})
    lines = openfang("approvals", "show", question).out
    assert "spec_frozen: ask, Execution mode requires spec_frozen=True" in lines
    assert "allow: disabled, mode, project" in lines
    assert '"verdict"' not in lines
    assert openfang("approvals", "approve", question).code == 0
    assert "approved (answered by key:admin)" in openfang("approvals", "list", "--all").out
    assert echo(openfang, "twice").code == 5
    assert echo(openfang, "once").code == 0
    third = echo(openfang, "once")
    assert third.code == 5
    assert third.json["approval"] != question
    assert openfang("approvals", "show", question, "--json").json["state"] == "spent"
    events = openfang("audit", "search", "--text", question, "--json").lines
    assert [event["event_type"] for event in events] == [
        "approval_requested",
        "approval_answered",
        "approval_spent",
    ]


def test_people_are_told_that_it_waits_and_for_what(openfang: Cli) -> None:
    ran = openfang("tools", "call", "shell_exec", "--args", '{"command": "date"}')
    assert (ran.code, ran.out) == (5, "")
    assert ran.err.startswith("waits: builtin:shell_exec waits for a person")
    assert "way out: openfang approvals approve ask_" in ran.err


def test_a_denied_question_refuses_the_call(openfang: Cli) -> None:
    question = echo(openfang, "never").json["approval"]
    assert openfang("approvals", "deny", question).code == 0
    ran = echo(openfang, "never")
    assert (ran.code, ran.json["rule"]) == (3, "approval_denied")
    again = openfang("approvals", "approve", question, "--json")
    assert (again.code, again.json["title"]) == (1, "conflict")
    assert question in openfang("approvals", "list", "--all").out
    assert question not in openfang("approvals", "list").out


def test_an_approval_for_the_session_covers_its_run_and_no_other(openfang: Cli) -> None:
    question = echo(openfang, "a", "--run", "one").json["approval"]
    assert openfang("approvals", "approve", question, "--scope", "session").code == 0
    assert echo(openfang, "b", "--run", "one").code == 0
    assert echo(openfang, "c", "--run", "two").code == 5


def test_a_rule_covers_the_callers_tool_until_it_is_taken_back(fresh: Cli) -> None:
    question = echo(fresh, "a").json["approval"]
    fresh("approvals", "approve", question, "--scope", "rule")
    assert echo(fresh, "b").code == 0
    assert echo(fresh, "c").code == 0
    fresh("approvals", "deny", question)
    assert echo(fresh, "d").code == 5
    assert echo(fresh, "a").code == 5


def test_a_call_that_can_wait_goes_on_when_it_is_answered(openfang: Cli) -> None:
    waiting = openfang.start(
        *("tools", "call", "shell_exec", "--wait", "30"),
        *("--args", '{"command": ["echo", "patience"]}', "--json"),
    )
    question = ""
    while not question:
        asked = openfang("approvals", "list", "--json").json
        question = next((q["id"] for q in asked if "patience" in str(q["arguments"])), "")
    openfang("approvals", "approve", question)
    output, errors = waiting.communicate(timeout=30)
    assert waiting.returncode == 0, errors
    assert b"patience" in output


def test_another_callers_questions_do_not_exist(openfang: Cli) -> None:
    question = echo(openfang, "mine").json["approval"]
    other = {"OPENFANG_API_KEY": openfang("keys", "create", "other").out.strip()}
    assert openfang("approvals", "list", "--json", env=other).json == []
    assert openfang("approvals", "show", question, env=other).code == 1
    assert openfang("approvals", "approve", question, env=other).code == 3
    assert openfang("approvals", "show", "ask_made_up").code == 1
