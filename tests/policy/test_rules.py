"""Rules: the index never changes what a walk through all of them would say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.registry.test_registry import registry

from openfang.core.calls import Call, Caller, Context, Mode, Role
from openfang.core.decisions import ALLOW, Ask, Decision, Deny
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Tool
from openfang.core.trace import new_chain
from openfang.pipeline.catalog import Catalog
from openfang.policy.engine import Engine
from openfang.policy.rules.book import GATE, NO_RULING, Book, Looked, ruled
from openfang.policy.rules.conditions import BadCondition, Facts, activation, compiled
from openfang.policy.rules.hours import Hours
from openfang.policy.rules.never import overruled
from openfang.policy.rules.rule import Carried, Names, Rule

pytestmark = pytest.mark.requirement("C7.8")

NOON = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()) * 10**9  # a Tuesday
TOOL = Tool(
    id="mcp:files:delete",
    kind=Kind.MCP,
    source="files",
    name="delete",
    risk=Risk.HIGH,
    tags=frozenset({"fs.delete"}),
)
CALL = Call(tool=TOOL.id, caller=Caller(id="key:ci"), arguments={"path": "/tmp/x", "n": 3})  # noqa: S108


def book(*rules: Rule) -> Book:
    return Book(rules, lambda: NOON)


def said(*rules: Rule, call: Call = CALL, labels: Labels = Labels.NONE) -> Any:
    return book(*rules).judge(TOOL, call, labels)


def walked(rules: tuple[Rule, ...], tool: Tool, call: Call, labels: Labels) -> Any:
    """Judge a call without an index: every rule, every field."""
    looked: list[Looked] = []
    for rule in rules:
        about = (
            rule.of_tool(tool)
            and rule.of_caller(call.caller)
            and rule.over(call.edge)
            and rule.during(call.context.mode)
            and rule.labels.hold(labels)
            and (rule.hours is None or rule.hours.hold(NOON))
        )
        if about and rule.condition is not None:
            facts = Facts(tool, call, labels, NOON)
            true = rule.condition.hold(activation(rule.condition.needs, facts))
            looked.append(Looked(rule, {True: "yes", False: "no", None: "failed"}[true]))
        elif about:
            looked.append(Looked(rule, "yes"))
    return ruled(sorted(looked, key=lambda one: one.found == "failed"))


CONDITIONS = [
    None,
    *map(
        compiled,
        (
            "args.n > 2",
            "has(args.path) && args.path.startsWith('/tmp')",
            "'pii' in labels || caller.id == 'key:ci'",
            "tool.risk >= HIGH && call.depth < 3",
            "now.getHours() == 12",
            "args.missing == 1",
        ),
    ),
]
NAMES = st.builds(
    Names,
    st.sampled_from(
        [
            (),
            ("*",),
            ("key:*",),
            ("key:ci", "agent:a"),
            ("mcp:*",),
            ("mcp:files:*",),
            ("mcp:*:delete",),
            ("*file?:*e",),
            ("mcp:[fg]iles:*[de]lete", "x]"),
        ]
    ),
    st.sampled_from([(), ("key:ci",), ("mcp:files:delete",), ("agent:*",)]),
)
LABELS = st.integers(0, 127).map(lambda bits: Labels.NONE | bits)
HOURS = st.builds(
    Hours,
    zone=st.sampled_from([ZoneInfo("UTC"), ZoneInfo("Asia/Tokyo")]),
    start=st.integers(0, 1439),
    end=st.integers(1, 1440),
    days=st.frozensets(st.integers(0, 6), min_size=1),
)
FEW = st.integers(0, 7).map(lambda bits: Labels.NONE | bits)
RULES = st.builds(
    Rule,
    name=st.text("abcdef", min_size=1, max_size=3),
    says=st.sampled_from(["allow", "ask", "deny", "hide"]),
    callers=NAMES,
    roles=st.frozensets(st.sampled_from(Role), max_size=2),
    edges=st.frozensets(st.sampled_from(["api", "mcp"]), max_size=1),
    tools=NAMES,
    kinds=st.frozensets(st.sampled_from([Kind.MCP, Kind.BUILTIN]), max_size=1),
    sources=st.sampled_from([Names(), Names(("files",)), Names((), ("files",))]),
    risk=st.sampled_from([None, *Risk]),
    tags=st.frozensets(st.sampled_from(["fs.delete", "fs.read", "unknown"]), max_size=2),
    mode=st.sampled_from([None, *Mode]),
    labels=st.builds(Carried, FEW, FEW, FEW),
    hours=st.none() | HOURS,
    condition=st.sampled_from(CONDITIONS),
    shadow=st.booleans(),
)
BROAD = st.builds(
    Rule,
    name=st.text("abcdef", min_size=1, max_size=3),
    says=st.sampled_from(["allow", "ask", "deny", "hide"]),
    callers=NAMES,
    tools=NAMES,
    risk=st.sampled_from([None, *Risk]),
    labels=st.builds(Carried, FEW, FEW),
    condition=st.sampled_from(CONDITIONS[:3]),
)
CALLS = st.builds(
    Call,
    tool=st.just(TOOL.id),
    caller=st.builds(
        Caller, id=st.sampled_from(["key:ci", "agent:a"]), role=st.sampled_from([*Role])
    ),
    arguments=st.sampled_from([{}, {"n": 3}, {"n": "3"}, {"path": "/tmp/x"}]),  # noqa: S108
    context=st.sampled_from(Mode).map(lambda mode: Context(mode=mode)),
    edge=st.sampled_from(["api", "mcp", "cli"]),
)
TOOLS = st.sampled_from(
    [
        TOOL,
        replace(TOOL, risk=Risk.LOW, tags=frozenset({"fs.read"})),
        Tool(id="builtin:file_read", kind=Kind.BUILTIN, source="builtin", name="file_read"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(RULES, max_size=8).map(tuple),
    st.lists(st.tuples(TOOLS, CALLS, LABELS), min_size=1, max_size=4),
)
def test_the_index_never_changes_a_verdict(
    rules: tuple[Rule, ...], calls: list[tuple[Tool, Call, Labels]]
) -> None:
    one = book(*rules)
    for tool, call, labels in calls:
        expected = walked(rules, tool, call, labels)
        found = one.judge(tool, call, labels)
        assert (found.decision, found.verdict, found.yes) == (
            expected.decision,
            expected.verdict,
            expected.yes,
        )
        assert one.judge(tool, call, labels) is found
        looked = one.look(tool, call, labels)
        again = ruled(sorted(looked, key=lambda one: one.found == "failed"))
        assert again.verdict == expected.verdict
        hidden = any(
            rule.says == "hide"
            and not rule.shadow
            and rule.of_tool(tool)
            and rule.of_caller(call.caller)
            for rule in rules
        )
        assert one.hides(call.caller, tool) == hidden


@settings(max_examples=400, deadline=None)
@given(
    st.lists(BROAD | RULES, max_size=8, unique_by=lambda rule: rule.name).map(tuple),
    st.lists(st.tuples(TOOLS, CALLS, LABELS), min_size=1, max_size=4),
)
def test_what_is_called_overruled_never_changes_a_verdict(
    rules: tuple[Rule, ...], calls: list[tuple[Tool, Call, Labels]]
) -> None:
    vain = {name for name, _ in overruled(rules)}
    whole, rest = book(*rules), book(*(rule for rule in rules if rule.name not in vain))
    for tool, call, labels in calls:
        one, other = whole.judge(tool, call, labels), rest.judge(tool, call, labels)
        assert one.verdict.verdict == other.verdict.verdict
        assert bool(one.yes) == bool(other.yes)


def test_deny_comes_before_ask_and_ask_before_allow() -> None:
    allow, ask, deny = (Rule(name=says, says=says) for says in ("allow", "ask", "deny"))
    assert said(allow, ask, deny).verdict.rules == ("deny",)
    assert said(allow, ask).verdict.verdict == "ask"
    assert said(allow).yes == "allow"
    assert said() is NO_RULING


def test_a_shadow_is_named_and_changes_nothing() -> None:
    ruling = said(Rule(name="trial", says="deny", shadow=True), Rule(name="yes", says="allow"))
    assert ruling.decision is ALLOW
    assert ruling.verdict.shadow == (("trial", "deny"),)


@pytest.mark.parametrize(
    ("says", "expected"), [("deny", "deny"), ("ask", "ask"), ("allow", "allow")]
)
def test_a_condition_that_cannot_be_judged_refuses_and_asks_and_never_allows(
    says: Any, expected: str
) -> None:
    rule = Rule(name="r", says=says, condition=compiled("args.absent == 1"))
    ruling = said(rule)
    assert ruling.verdict.verdict == expected
    assert ruling.yes == ""
    assert ("cannot be judged" in ruling.verdict.reason) is (says != "allow")


def test_a_rule_whose_time_has_not_come_hides_none_behind_it() -> None:
    never, ever = Hours(zone=ZoneInfo("UTC"), start=13 * 60), Hours(zone=ZoneInfo("UTC"))
    rules = Rule(name="later", says="deny", hours=never), Rule(name="now", says="deny", hours=ever)
    assert said(*rules).verdict.rules == ("now",)
    looked = book(*rules).look(TOOL, CALL, Labels.NONE)
    assert [one.found for one in looked] == ["not_now", "yes"]


@pytest.mark.parametrize(
    "text",
    [
        "args.path == '/tmp/x' && args.n == 3",
        "caller.id == 'key:ci' && caller.role == 'user'",
        "tool.id == 'mcp:files:delete' && tool.name == 'delete' && tool.source == 'files'",
        "tool.kind == 'mcp' && tool.risk == HIGH && tool.tags == ['fs.delete']",
        "tool.trust == 'medium' && tool.effect == 'none'",
        "call.edge == 'mcp' && call.mode == 'planning' && call.project == 'p' && call.task == 't'",
        "call.depth == 2 && call.ancestors == ['agent:a'] && call.root == 'key:ann'",
        "labels == ['pii']",
        "LOW < MEDIUM && MEDIUM < HIGH && HIGH < CRITICAL && tool.risk < CRITICAL",
        "now == timestamp('2026-11-17T12:00:00Z')",
    ],
)
def test_an_expression_reads_what_a_call_is(text: str) -> None:
    context = Context(mode=Mode.PLANNING, project="p", task_id="t")
    chain = new_chain().deeper("agent:a")
    call = replace(CALL, edge="mcp", context=context, chain=chain, asker="key:ann")
    condition = compiled(text)
    assert condition.hold(activation(condition.needs, Facts(TOOL, call, Labels.PII, NOON))) is True


def test_what_cannot_be_held_in_an_expression_is_not_let_through() -> None:
    rule = Rule(name="r", says="deny", condition=compiled("args.n == 1"))
    assert said(rule, call=replace(CALL, arguments={"n": 2**70})).decision is not ALLOW
    endless = "args.x.map(a, args.x.map(b, args.x.map(c, 1))).size() > 3"
    many = replace(CALL, arguments={"x": list(range(100))})
    assert said(Rule(name="r", says="deny", condition=compiled(endless)), call=many).verdict.rules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("args.", "line 1, column 6"),
        ("nobody == 1", "undeclared reference to 'nobody'"),
        ("caller.nme == 'x'", "undeclared reference to 'caller.nme'"),
        ("tool.risk == 'HIGH'", "no matching overload"),
        ("args.x", "not of type dyn"),
        ("1 == 2", "can be true"),
    ],
)
def test_a_mistake_in_an_expression_is_told_when_it_is_compiled(text: str, words: str) -> None:
    with pytest.raises(BadCondition, match=words):
        compiled(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("has(args.to) && args['subject'] == 'x'", {"to", "subject"}),
        ("args.size() > 2", None),
        ("args.exists(k, k == 'x')", None),
        ("[args].size() == 1", None),
        ("caller.id == 'x'", set[str]()),
    ],
)
def test_it_is_known_which_arguments_an_expression_reads(text: str, read: set[str] | None) -> None:
    found = compiled(text).args
    assert (found if found is None else set(found)) == read


class Asking:
    def __init__(self, code: str, decision: type[Ask | Deny] = Ask) -> None:
        self.name = code
        self.decision = decision

    def check(self, tool: Tool, call: Call) -> Decision:
        del tool, call
        return self.decision("because", self.name)


ALLOWING = Book([Rule(name="yes", says="allow")], lambda: NOON)


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        (Asking("spec_not_frozen"), "allow"),
        (Asking("low_trust"), "allow"),
        (Asking("another"), "ask"),
        (Asking("spec_not_frozen", Deny), "deny"),
    ],
)
def test_a_rule_stands_in_for_a_person_and_never_for_a_gate(gate: Asking, outcome: str) -> None:
    decided = Engine((gate,), rules=ALLOWING).decide(TOOL, CALL)
    assert decided.outcome == outcome
    if outcome == "allow":
        assert decided.verdicts[0].rules == ("yes",)


def test_behind_a_gate_that_refuses_no_rule_is_reached() -> None:
    decided = Engine((Asking("another", Deny),), rules=ALLOWING).decide(TOOL, CALL)
    assert [(one.gate, one.verdict) for one in decided.verdicts] == [
        ("another", "deny"),
        (GATE, "not_reached"),
    ]


async def test_a_rule_does_not_answer_for_the_operators_own_gates() -> None:
    engine = Engine((), (Asking("low_trust"),), ALLOWING)
    assert (await engine.decide_all(TOOL, CALL)).outcome == "ask"


def test_an_ask_of_another_rule_takes_the_yes_away() -> None:
    both = Book([Rule(name="yes", says="allow"), Rule(name="why", says="ask")], lambda: NOON)
    decided = Engine((Asking("low_trust"),), rules=both).decide(TOOL, CALL)
    assert [verdict.code for verdict in decided.asked] == ["low_trust", "rule:why"]


def test_a_tool_that_changes_is_indexed_anew() -> None:
    one = book(Rule(name="r", says="deny", risk=Risk.HIGH))
    assert one.judge(TOOL, CALL, Labels.NONE).verdict.verdict == "deny"
    lower = replace(TOOL, risk=Risk.LOW)
    assert one.judge(lower, CALL, Labels.NONE).verdict.verdict == "allow"


@pytest.mark.parametrize(
    ("start", "end", "days", "hour", "held"),
    [
        (9 * 60, 17 * 60, {1}, 12, True),
        (9 * 60, 17 * 60, {2}, 12, False),
        (22 * 60, 6 * 60, {1}, 23, True),
        (22 * 60, 6 * 60, {1}, 22, True),
        (22 * 60, 6 * 60, {1}, 21, False),
        (22 * 60, 6 * 60, {0}, 6, False),
        (9 * 60, 17 * 60, {1}, 9, True),
        (9 * 60, 17 * 60, {1}, 17, False),
        (22 * 60, 6 * 60, {0}, 5, True),
        (22 * 60, 6 * 60, {1}, 5, False),
        (0, 1440, {1}, 0, True),
        (12 * 60, 12 * 60 + 1, {1}, 13, False),
    ],
)
def test_hours_over_midnight_belong_to_the_day_they_began_on(
    start: int, end: int, days: set[int], hour: int, *, held: bool
) -> None:
    hours = Hours(zone=ZoneInfo("UTC"), start=start, end=end, days=frozenset(days))
    at = datetime(2026, 11, 17, hour, tzinfo=UTC).timestamp()
    assert hours.hold(int(at * 10**9)) is held


def test_who_is_hidden_the_same_sees_the_same_list() -> None:
    hiding = book(
        Rule(name="h", says="hide", callers=Names(("agent:*",))), Rule(name="d", says="deny")
    )
    tools = registry()
    callers = [Caller(id=name) for name in ("agent:a", "agent:b", "key:ci")]
    one, other, third = (Catalog(tools, hiding).sight(caller) for caller in callers)
    assert one == other != third
    assert Catalog(tools).sight(callers[0]) is Catalog(tools).sight(callers[2]) is None
