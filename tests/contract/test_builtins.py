"""The whole list of built-in tools: none without its effect, its refusal and its bad input."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.builtins import EFFECTS, NAMES, WRONG

from openfang.config.builtins import ALIASES, BUILTINS

if TYPE_CHECKING:
    from tests.contract.house import House

pytestmark = pytest.mark.requirement("C6.2")

ROOT = Path(__file__).parents[2]
SEEDS_COUNT = 23


def test_the_contract_names_all_built_ins_that_a_manifest_may_grant() -> None:
    assert set(NAMES) == BUILTINS
    besides = {*ALIASES, "a2a_discover", "a2a_send", "system_time"}
    assert len(set(NAMES) - besides) == SEEDS_COUNT


@pytest.mark.parametrize("name", NAMES)
def test_none_is_without_its_effect_and_its_bad_input(name: str) -> None:
    assert (name in EFFECTS, name in WRONG) == (True, True)


def test_no_table_names_another() -> None:
    assert {*EFFECTS, *WRONG} == set(NAMES)


@pytest.mark.parametrize(("name", "test"), EFFECTS.items(), ids=EFFECTS)
def test_the_effect_is_shown_by_a_test_that_uses_the_tool(name: str, test: str) -> None:
    file, _, function = test.partition("::")
    text = (ROOT / file).read_text("utf-8")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, functions)}
    assert function in found
    assert name in text


def test_the_node_has_all_of_them(node: House) -> None:
    served = {tool["name"] for tool in node.tools(source="builtin").values()}
    assert served == set(NAMES) - set(ALIASES)


@pytest.mark.parametrize(("name", "wrong"), WRONG.items(), ids=WRONG)
def test_what_it_can_make_nothing_of_is_refused(
    node: House, name: str, wrong: dict[str, Any]
) -> None:
    refused = node.call(name, wrong)
    assert (refused.status, refused.json["title"]) == (422, "invalid arguments"), refused.body


@pytest.mark.requirement("C6.1", "C7.3")
def test_without_the_grant_there_is_none_of_them(node: House) -> None:
    nobody = node.guest("without-any", tools=["mcp:*"])
    for name in NAMES:
        refused = nobody.call(name, WRONG.get(name, {}))
        assert (name, refused.status, refused.rule) == (name, 404, "unknown_tool")
    assert not nobody.tools(source="builtin")


@pytest.mark.needs("bwrap")
def test_work_is_left_on_the_board_and_its_result_comes_back(node: House) -> None:
    boss = node.guest("boss", tools=["task_*", "agent:worker"])
    rival = node.guest("rival", tools=["task_*", "agent:worker"])
    task = {"title": "figs", "description": "Count them.", "assigned_to": "worker"}
    posted = boss.call("task_post", task).json["structured"]["task_id"]
    assert rival.call("task_list").json["structured"] == {"tasks": [], "total": 0}
    asked = {"message": "work", "session": "board"}
    idle = rival.ask("POST", "/api/agents/worker/message", asked).json
    assert idle["response"] == "There is no task to claim."
    worked = boss.ask("POST", "/api/agents/worker/message", asked).json
    assert worked["response"] == f"Completed {posted}."
    (seen,) = boss.call("task_list", {"status": "completed"}).json["structured"]["tasks"]
    assert (seen["owner"], seen["result"]) == ("agent:worker", "done: figs")
    stolen = boss.call("task_complete", {"task_id": posted, "result": "mine"}).json
    assert (stolen["outcome"], "completed already" in stolen["content"][0]["text"]) == (
        "error",
        True,
    )
    nobody = {**task, "assigned_to": "nobody"}
    assert boss.call("task_post", nobody).json["outcome"] == "error"
    claimed = node.records(event="tool_invocation_start", tool="builtin:task_claim")
    assert {one["caller"] for one in claimed} == {"agent:worker"}
