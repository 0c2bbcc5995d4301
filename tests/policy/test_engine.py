"""The gates together: the first refusal decides, and a gate that is not ours cannot open one."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, cast

import pytest

from openfang.core.calls import Call, Caller
from openfang.core.decisions import ALLOW, Ask, Decision, Deny, Verdict
from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.policy.engine import Decided, Engine

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("C7.8", "C7.13")
TOOL = Tool(id="builtin:echo", kind=Kind.BUILTIN, source="builtin", name="echo")
CALL = Call(tool=TOOL.id, caller=Caller(id="key:me"))
NO = Deny("no", "refused", "ask another")
PERHAPS = Ask("perhaps", "asked", "say yes")


@dataclass(frozen=True)
class Says:
    name: str
    decision: Decision = ALLOW
    act: Callable[[], object] = field(default=lambda: None)

    def check(self, tool: Tool, call: Call) -> Decision:
        assert (tool, call) == (TOOL, CALL)
        instead = self.act()
        return self.decision if instead is None else cast("Decision", instead)


def words(decided: Decided) -> list[str]:
    return [f"{one.gate} {one.verdict}" for one in decided.verdicts]


def test_where_all_allow_the_answer_is_always_the_same_object() -> None:
    engine = Engine((Says("a"), Says("b")))
    decided = engine.decide(TOOL, CALL)
    assert decided is engine.decide(TOOL, CALL)
    assert (decided.outcome, words(decided)) == ("allow", ["a allow", "b allow"])


def test_the_first_refusal_decides_and_those_behind_it_are_not_reached() -> None:
    decided = Engine((Says("a", PERHAPS), Says("b", NO), Says("c", NO))).decide(TOOL, CALL)
    assert (decided.outcome, words(decided)) == ("deny", ["a ask", "b deny", "c not_reached"])
    assert decided.denied == Verdict("b", "deny", "no", "refused", "ask another")


def test_a_question_stands_where_nobody_refuses() -> None:
    decided = Engine((Says("a"), Says("b", PERHAPS))).decide(TOOL, CALL)
    assert (decided.outcome, decided.denied) == ("ask", None)
    assert decided.asked == (Verdict("b", "ask", "perhaps", "asked", "say yes"),)


async def test_gates_of_others_are_asked_after_ours_unless_one_refused() -> None:
    after = Engine((Says("a", PERHAPS),), (Says("x", PERHAPS), Says("y", NO), Says("z")))
    decided = await after.decide_all(TOOL, CALL)
    assert words(decided) == ["a ask", "x ask", "y deny", "z not_reached"]
    assert decided.denied is not None
    assert (decided.denied.gate, len(decided.asked)) == ("y", 2)
    refused = await Engine((Says("a", NO),), (Says("x"),)).decide_all(TOOL, CALL)
    assert (refused.outcome, words(refused)) == ("deny", ["a deny", "x not_reached"])


async def test_without_gates_of_others_nothing_is_added() -> None:
    engine = Engine((Says("a"),))
    assert await engine.decide_all(TOOL, CALL) is engine.decide(TOOL, CALL)


@pytest.mark.requirement("C7.14")
async def test_an_explanation_asks_every_gate() -> None:
    gates = (Says("a", NO), Says("b", PERHAPS), Says("c", NO))
    explained = await Engine(gates, (Says("x", PERHAPS),)).explain(TOOL, CALL)
    assert words(explained) == ["a deny", "b ask", "c deny", "x ask"]
    assert explained.denied is explained.verdicts[0]
    assert [one.gate for one in explained.asked] == ["b", "x"]


def broken() -> None:
    raise LookupError("what only the log may hear")


@pytest.mark.parametrize(
    ("act", "code"),
    [(broken, "gate_error"), (lambda: "yes", "gate_error"), (lambda: True, "gate_error")],
)
async def test_a_gate_that_raises_or_babbles_refuses(act: Callable[[], object], code: str) -> None:
    decided = await Engine((), (Says("x", act=act), Says("y"))).decide_all(TOOL, CALL)
    assert decided.denied is not None
    assert (decided.denied.gate, decided.denied.code) == ("x", code)
    assert "only the log" not in decided.denied.reason
    assert words(decided) == ["x deny", "y not_reached"]


async def test_a_gate_that_dawdles_refuses() -> None:
    released = Event()
    dawdling = Says("x", act=lambda: released.wait(10) and None)
    try:
        decided = await Engine((), (dawdling,)).decide_all(TOOL, CALL)
    finally:
        released.set()
    assert decided.denied is not None
    assert decided.denied.code == "gate_timeout"
    assert "100 ms" in decided.denied.reason
