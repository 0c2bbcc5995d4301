"""Each gate by itself: the conditions under which it opens, and what it says when it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.calls import Call, Caller, Context, Grants, Mode, Papers
from openfang.core.decisions import ALLOW, Ask, Deny
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Tool, Trust
from openfang.policy.gates import standard_gates

if TYPE_CHECKING:
    from openfang.core.decisions import Decision

pytestmark = pytest.mark.requirement("C7.6")
TOOL = Tool(
    id="mcp:demo:act",
    kind=Kind.MCP,
    source="demo",
    name="act",
    risk=Risk.LOW,
    tags=frozenset({"fs.read"}),
)
CALL = Call(tool=TOOL.id, caller=Caller(id="key:me"), context=Context(project="default"))
WRITES = {"tags": frozenset({"fs.read", "fs.write"})}


def papers(call: Call) -> Papers:
    """What the path would find of what a call shows."""
    return Papers(
        projects=frozenset({"default"} if call.context.spec_hash == "a spec" else ()),
        tools=(TOOL.id,) if call.admin_token == "a token" else (),
    )


def refuse(call: Call) -> Deny | None:
    return Deny("no", "own_check") if call.tool == TOOL.id else None


def agree(_: Call) -> Deny | None:
    return None


def say(gate: str, tool: Tool, call: Call, *, guided: bool = True) -> Decision:
    checks = {"mcp:demo:checked": refuse, "mcp:demo:passes": agree}
    gates = standard_gates(checks=checks, guided=guided)
    return next(one for one in gates if one.name == gate).check(tool, call)


def said(gate: str, facts: dict[str, Any], *, guided: bool = True, **context: Any) -> Decision:
    token = context.pop("token", None)
    call = replace(CALL, context=replace(CALL.context, **context), admin_token=token)
    return say(gate, replace(TOOL, **facts), replace(call, papers=papers(call)), guided=guided)


@pytest.mark.parametrize(
    ("gate", "facts", "context"),
    [
        ("disabled", {}, {}),
        ("mode", {}, {"mode": Mode.PLANNING}),
        ("mode", WRITES, {}),
        ("spec_frozen", {"risk": Risk.MEDIUM}, {}),
        ("spec_frozen", {"risk": Risk.HIGH}, {"spec_hash": "a spec"}),
        ("spec_frozen", {"risk": Risk.CRITICAL}, {"mode": Mode.PLANNING}),
        ("project", {}, {"project": None}),
        ("project", {"risk": Risk.MEDIUM}, {}),
        ("policy", WRITES, {"blacklist": frozenset({"payments"})}),
        ("policy", {"denied_tags": frozenset({"payments"})}, {}),
        ("admin_token", {}, {}),
        ("admin_token", {"requires_admin_token": True}, {"token": "a token"}),
        ("trust", {"trust": Trust.LOW}, {}),
        ("trust", {"trust": Trust.MEDIUM, **WRITES}, {}),
        ("trust", {"trust": Trust.LOW, **WRITES}, {"token": "a token"}),
        ("grants", {"id": "mcp:demo:passes"}, {}),
        ("grants", {}, {}),
    ],
)
def test_a_gate_opens(gate: str, facts: dict[str, Any], context: dict[str, Any]) -> None:
    assert said(gate, facts, **context) is ALLOW


@pytest.mark.parametrize(
    ("gate", "facts", "context", "code"),
    [
        ("disabled", {"enabled": False}, {}, "tool_disabled"),
        ("disabled", {"hold": "it changed"}, {}, "tool_held"),
        ("mode", WRITES, {"mode": Mode.PLANNING}, "planning_mode"),
        ("spec_frozen", {"risk": Risk.HIGH}, {"spec_hash": "made up"}, "spec_not_frozen"),
        ("project", {"risk": Risk.MEDIUM}, {"project": None}, "project_missing"),
        ("policy", {}, {"blacklist": frozenset({"fs.read"})}, "side_effect_blacklisted"),
        ("policy", {"denied_tags": frozenset({"fs.read"})}, {}, "side_effect_blacklisted"),
        ("admin_token", {"requires_admin_token": True}, {}, "admin_token_missing"),
        ("admin_token", {"requires_admin_token": True}, {"token": "x"}, "admin_token_missing"),
        ("grants", {"id": "mcp:demo:checked"}, {}, "own_check"),
    ],
)
def test_a_gate_refuses(
    gate: str, facts: dict[str, Any], context: dict[str, Any], code: str
) -> None:
    decision = said(gate, facts, **context)
    assert isinstance(decision, Deny)
    assert decision.code == code


def test_what_is_risky_without_a_spec_is_asked_about_only_in_the_guided_profile() -> None:
    asked, denied = (
        said("spec_frozen", {"risk": Risk.HIGH}, guided=guided) for guided in (True, False)
    )
    assert isinstance(asked, Ask)
    assert isinstance(denied, Deny)
    assert asked.code == denied.code == "spec_not_frozen"


@pytest.mark.requirement("C11.4")
@pytest.mark.parametrize("token", [None, "another token"])
def test_what_a_source_of_low_trust_would_change_is_asked_about(token: str | None) -> None:
    asked = said("trust", {"trust": Trust.LOW, **WRITES}, token=token)
    assert isinstance(asked, Ask)
    assert asked.code == "low_trust"


def test_of_several_blacklisted_effects_the_same_one_is_always_named() -> None:
    tags = frozenset({"fs.write", "fs.delete", "payments"})
    denied = said("policy", {"tags": tags, "denied_tags": frozenset({"payments"})}, blacklist=tags)
    assert isinstance(denied, Deny)
    assert denied.reason == "Side effect fs.delete is blacklisted"


@pytest.mark.parametrize(
    ("caller", "way_out"),
    [("key:me", "openfang keys create NAME --project"), ("agent:notes", "agents edit notes")],
)
def test_who_has_no_project_hears_where_one_is_bound(caller: str, way_out: str) -> None:
    call = replace(CALL, caller=Caller(id=caller), context=Context())
    denied = say("project", replace(TOOL, risk=Risk.MEDIUM), call)
    assert isinstance(denied, Deny)
    assert way_out in denied.way_out


@pytest.mark.requirement("C6.1")
@pytest.mark.parametrize(
    ("kind", "arguments", "way_out"),
    [
        (Kind.MCP, {"url": "http://evil.com/"}, '["evil.com"]'),
        (Kind.MCP, {"url": "no address at all"}, '["HOST"]'),
        (Kind.BUILTIN, {"url": "http://evil.com/"}, ""),
        (Kind.AGENT, {"url": "http://evil.com/"}, ""),
    ],
)
def test_an_agents_address_is_held_to_its_grants_by_tools_that_are_not_ours(
    kind: Kind, arguments: dict[str, str], way_out: str
) -> None:
    agent = Caller(id="agent:x", grants=Grants(tools=("*",), agents=()))
    call = replace(CALL, caller=agent, arguments=arguments)
    decision = say("grants", replace(TOOL, kind=kind), call)
    assert isinstance(decision, Deny) == bool(way_out)
    assert way_out in getattr(decision, "way_out", "")
