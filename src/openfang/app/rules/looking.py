"""What the rules say of one call that is not made, and how each of them was found."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openfang.core.calls import Call, Caller, Context, Mode, Role
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.policy.rules.book import Book, Looked, ruled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.tools import Tool
    from openfang.policy.rules.rule import Rule

Said: TypeAlias = Literal["allow", "ask", "deny", "hide", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that is not made, in words."""

    tool: Tool
    caller: str
    role: str = "user"
    edge: str = "api"
    mode: str = "execution"
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: tuple[str, ...] = ()
    now: int = 0

    def call(self) -> Call:
        """Make the call."""
        return Call(
            tool=self.tool.id,
            caller=Caller(id=self.caller, role=Role(self.role)),
            arguments=self.arguments,
            context=Context(mode=Mode(self.mode)),
            edge=self.edge,
            labels=Labels.of(self.labels),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What all rules say together, which of them, and how each was found."""

    says: Said
    rules: tuple[str, ...]
    reason: str
    way_out: str
    looked: tuple[Looked, ...]

    def as_json(self) -> dict[str, Any]:
        """Say the same to a program."""
        return {
            "says": self.says,
            "by": list(self.rules),
            "reason": self.reason,
            "way_out": self.way_out,
            "rules": [_looked(one) for one in self.looked],
        }


def _looked(one: Looked) -> dict[str, Any]:
    return {
        "rule": one.rule.name,
        "effect": one.rule.says,
        "found": one.found,
        "why": one.why,
        "shadow": one.rule.shadow,
    }


def see(rules: Sequence[Rule], asked: Asked) -> Seen:
    """Hold a call against rules, and tell of each."""
    call = asked.call()
    found = Book(rules, lambda: asked.now).look(asked.tool, call, call.labels)
    left = {one.rule.name: one for one in found}
    looked = tuple(left.get(rule.name) or _not_meant(rule, asked.tool, call) for rule in rules)
    ruling = ruled(sorted(found, key=lambda one: one.found == "failed"))
    verdict = ruling.verdict
    return Seen(
        says=said(rules, verdict.rules),
        rules=verdict.rules,
        reason=verdict.reason,
        way_out=verdict.way_out,
        looked=looked,
    )


def said(rules: Sequence[Rule], by: Sequence[str]) -> Said:
    """Say in one word what rules of these names say; they say the same."""
    meant: list[Said] = [rule.says for rule in rules if rule.name in by[:1]]
    return meant[0] if meant else "none"


def _not_meant(rule: Rule, tool: Tool, call: Call) -> Looked:
    """Say which of its keys keeps a rule from being about a call."""
    if not rule.of_tool(tool):
        return Looked(rule, "not_meant", "it is about other tools")
    if not rule.of_caller(call.caller):
        return Looked(rule, "not_meant", "it is about other callers")
    if not rule.over(call.edge):
        return Looked(rule, "not_meant", "it is about other edges")
    if not rule.during(call.context.mode):
        return Looked(rule, "not_meant", "it is about the other mode")
    return Looked(rule, "not_meant", "it is about calls that carry other labels")
