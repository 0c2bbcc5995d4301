"""Rules that can never have a say: what covers what, field by field, and what cannot be."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from openfang.core.calls import Mode, Role
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Risk
from openfang.policy.rules.conditions import compiled
from openfang.policy.rules.hours import Hours
from openfang.policy.rules.never import impossible, overruled
from openfang.policy.rules.rule import Carried, Names, Rule

pytestmark = pytest.mark.requirement("C2.6", "C7.8")

UTC = ZoneInfo("UTC")
SAYS = ("allow", "ask", "deny", "hide")
PII, SECRET, PRIVATE = Labels.PII, Labels.SECRET, Labels.PRIVATE
# Of each field something wide, something within it, and something that is not.
FIELDS: list[tuple[str, Any, Any, Any]] = [
    ("callers", Names(("key:*",)), Names(("key:ci",)), Names(("agent:a",))),
    ("callers", Names((), ("key:ci",)), Names(("key:b",), ("key:*",)), Names(("key:b",))),
    ("tools", Names(("mcp:*", "agent:*")), Names(("mcp:a:*",)), Names(("mcp:a:*", "a2a:*"))),
    ("sources", Names(("a*",)), Names(("ab", "ac")), Names(("b",))),
    ("roles", frozenset({Role.USER, Role.ADMIN}), frozenset({Role.ADMIN}), frozenset(Role)),
    ("edges", frozenset({"api", "mcp"}), frozenset({"mcp"}), frozenset({"cli"})),
    ("kinds", frozenset({Kind.MCP, Kind.A2A}), frozenset({Kind.A2A}), frozenset({Kind.AGENT})),
    ("tags", frozenset({"fs.read", "unknown"}), frozenset({"fs.read"}), frozenset({"fs.delete"})),
    ("risk", Risk.MEDIUM, Risk.HIGH, Risk.LOW),
    ("risk", Risk.HIGH, Risk.HIGH, Risk.MEDIUM),
    ("mode", Mode.PLANNING, Mode.PLANNING, Mode.EXECUTION),
    ("hours", Hours(zone=UTC, start=60), Hours(zone=UTC, start=60), Hours(zone=UTC, start=61)),
    ("condition", compiled("args.n > 1"), compiled("args.n > 1"), compiled("args.n > 2")),
    ("labels", Carried(some=PII | SECRET), Carried(some=PII), Carried(some=PII | PRIVATE)),
    ("labels", Carried(some=PII | SECRET), Carried(every=PII | PRIVATE), Carried(every=PRIVATE)),
    ("labels", Carried(every=PII), Carried(every=PII | SECRET), Carried(every=SECRET)),
    ("labels", Carried(never=PII), Carried(never=PII | SECRET), Carried(never=SECRET)),
]


def vain(*rules: Rule) -> list[str]:
    return [name for name, _ in overruled(rules)]


def deny(name: str, **fields: Any) -> Rule:
    return Rule(name=name, says="deny", **fields)


@pytest.mark.parametrize(("field", "wide", "narrow", "apart"), FIELDS)
def test_a_rule_covers_what_is_within_each_of_its_fields(
    field: str, wide: object, narrow: object, apart: object
) -> None:
    one = deny("one", **{field: wide})
    assert vain(one, deny("within", **{field: narrow})) == ["within"]
    assert vain(one, deny("apart", **{field: apart})) == []
    assert vain(one, deny("rest")) == []
    assert vain(deny("all"), one) == ["one"]


@pytest.mark.parametrize(("first", "second"), [*product(SAYS, repeat=2)])
def test_the_stronger_covers_the_other_and_of_equals_the_first(first: Any, second: Any) -> None:
    strength = SAYS.index
    rules = Rule(name="first", says=first), Rule(name="second", says=second)
    expected = "second" if strength(first) >= strength(second) else "first"
    assert vain(*rules) == [expected]


def test_a_shadow_covers_nothing_and_is_never_in_vain() -> None:
    one, other = deny("one"), deny("other")
    assert vain(replace(one, shadow=True), other) == []
    assert vain(one, replace(other, shadow=True)) == []
    assert vain(one, other) == ["other"]


def test_it_is_told_which_rule_has_said_it_all() -> None:
    ((name, told),) = overruled([deny("all"), Rule(name="one", says="ask")])
    assert (name, told.key) == ("one", ("name",))
    assert "all (deny) covers it" in told.message


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"callers": Names(("key:a", "ci"))}, ("callers", 1)),
        ({"callers": Names(("local-mcp:x",))}, ("callers", 0)),
        ({"callers": Names(("kex*",))}, ("callers", 0)),
        ({"callers": Names(("key:a",), ("key:*",))}, ("callers",)),
        ({"callers": Names((), ("*",))}, ("callers",)),
        ({"tools": Names(("smtp:*",))}, ("tools", 0)),
        ({"tools": Names(("mcp:a",)), "kinds": frozenset({Kind.AGENT})}, ("tools", 0)),
        ({"kinds": frozenset({Kind.BUILTIN}), "sources": Names(("files",))}, ("sources",)),
        ({"roles": frozenset({Role.ADMIN}), "callers": Names(("agent:*",))}, ("roles",)),
        ({"labels": Carried(every=PII | SECRET, never=PII)}, ("labels",)),
        ({"labels": Carried(some=PII, never=PII | SECRET)}, ("labels",)),
    ],
)
def test_what_no_call_can_be_is_told_with_its_key(
    fields: dict[str, Any], key: tuple[str | int, ...]
) -> None:
    assert [one.key for one in impossible(deny("r", **fields))] == [key]


@pytest.mark.parametrize(
    "fields",
    [
        *({"callers": Names((name,))} for name in ("key:a", "agent:*", "oauth:x", "mcp:files")),
        *({"callers": Names((name,))} for name in ("a2a:peer", "local-mcp", "nobody", "no*", "*")),
        *({"tools": Names((f"{kind.value}:x",))} for kind in Kind),
        {"kinds": frozenset({Kind.BUILTIN}), "sources": Names(("builtin",))},
        {"kinds": frozenset({Kind.BUILTIN, Kind.MCP}), "sources": Names(("files",))},
        {"roles": frozenset({Role.ADMIN}), "callers": Names(("agent:*", "key:*"))},
        {"roles": frozenset({Role.USER}), "callers": Names(("agent:*",))},
        {"roles": frozenset({Role.ADMIN})},
        {"labels": Carried(some=PII | SECRET, every=PRIVATE, never=PII)},
    ],
)
def test_what_a_call_can_be_is_no_mistake(fields: dict[str, Any]) -> None:
    assert [*impossible(deny("r", **fields))] == []
