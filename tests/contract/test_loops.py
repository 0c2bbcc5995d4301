"""The loop guard, met over HTTP and over MCP: warned first, then told what to do instead."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.house import traced

if TYPE_CHECKING:
    from tests.contract.house import House
    from tests.faults.daemon import Answered

NOTE = "mcp:demo:get_note"
WARNING = "[loop guard]"


def calls(node: House, run: int, *texts: str, tool: str = NOTE) -> list[Answered]:
    return [node.call(tool, {"text": text}, headers=traced(run)) for text in texts]


def told(answers: list[Answered]) -> list[str]:
    """Of each answer: that it was warned of, by which rule it was blocked, or nothing."""
    return [
        answer.rule if answer.status != 200 else WARNING if WARNING in str(answer.json) else ""
        for answer in answers
    ]


@pytest.mark.requirement("C10.2", "C10.4")
def test_identical_calls_are_warned_of_at_three_and_blocked_at_five(node: House) -> None:
    """Side by side, so that no result has come that could be the same."""
    with ThreadPoolExecutor(5) as pool:
        jobs = [
            pool.submit(node.call, "mcp:late:get_note", {"errand": "hang"}, headers=traced(101))
            for _ in range(5)
        ]
        answers = [job.result() for job in jobs]
    blocked = [answer for answer in answers if answer.status != 200]
    assert [(one.status, one.rule) for one in blocked] == [(429, "identical_calls")]
    assert "answer with what you have" in blocked[0].json["detail"]


@pytest.mark.requirement("C10.2", "C10.3")
def test_one_outcome_is_warned_of_at_two_and_blocked_after_three(node: House) -> None:
    said = told(calls(node, 102, *["same"] * 4))
    assert said == ["", WARNING, WARNING, "identical_outcome"]
    assert told(calls(node, 102, "other")) == [""]


@pytest.mark.requirement("C10.2", "C10.4")
def test_a_tool_that_is_declared_a_poll_has_three_times_as_much(node: House) -> None:
    said = told(calls(node, 103, *["same"] * 10, tool="mcp:demo:poll_state"))
    assert said == [""] * 5 + [WARNING] * 4 + ["identical_outcome"]


@pytest.mark.requirement("C10.2")
def test_a_changed_result_begins_anew(node: House) -> None:
    """The server says how many calls it has heard, so each answer is another."""
    answers = [
        node.call(NOTE, {"errand": "heard", "text": "x"}, headers=traced(104)) for _ in range(7)
    ]
    assert told(answers) == [""] * 7


@pytest.mark.requirement("C10.3")
@pytest.mark.parametrize(("run", "round_"), [(105, "ab"), (106, "abc")])
def test_calls_that_go_round_three_times_are_blocked(node: House, run: int, round_: str) -> None:
    *others, last = told(calls(node, run, *(round_ * 3)))
    assert last == "call_pattern"
    assert not [rule for rule in others if rule not in {"", WARNING}]


@pytest.mark.requirement("C10.3", "C10.4")
def test_a_run_that_gets_nowhere_ends(node: House) -> None:
    """After as many calls as the operator says: all of them bring what the first one brought."""
    asked: list[dict[str, Any]] = [{"errand": "pid", "text": str(n)} for n in range(14)]
    answers = [node.call(NOTE, one, headers=traced(107)) for one in asked]
    assert told(answers) == [""] * 12 + ["no_progress"] * 2
    other = node.call("system_time", {}, headers=traced(107))
    assert (other.status, other.rule) == (429, "no_progress")


@pytest.mark.requirement("C10.1", "C10.4")
def test_over_mcp_a_block_is_a_result_and_calls_by_themselves_are_no_loop(node: House) -> None:
    same = {"text": "again"}
    meta = traced(108)
    told = [node.use("mcp_demo_get_note", same, **meta)["result"] for _ in range(4)]
    assert told[-1]["isError"]
    assert "Use that result" in told[-1]["content"][0]["text"]
    alone = [node.use("mcp_demo_get_note", same)["result"] for _ in range(6)]
    assert {len(one["content"]) for one in alone} == {1}
