"""Yesterday's calls, as the audit log has them, held against a draft: what would be decided now."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.app.rules.drafts import tool_of
from openfang.config.rulebook import moment_of
from openfang.core.calls import Call, Caller, Context, Mode, Role
from openfang.core.events import POLICY_DECISION, POLICY_VIOLATION, TOOL_INVOCATION_START
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Tool
from openfang.core.trace import Chain
from openfang.core.values import dataclass
from openfang.policy.engine import LIFTED
from openfang.policy.rules.book import GATE, Looked, look, ruled
from openfang.policy.rules.conditions import Facts
from openfang.policy.rules.rule import ANYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.core.events import AuditEvent
    from openfang.policy.rules.rule import Rule

UNDECIDABLE: Final = "undecidable"
_REDACTED: Final = "[redacted:"
_MOST_OPEN: Final = 10_000
_ORDER: Final = ("hide", "deny", "ask", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A call whose decision would be another: what it was, what it would be, by which rules."""

    seq: int
    at: str
    call: str
    caller: str
    tool: str
    before: str
    after: str
    rules: tuple[str, ...]
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """Say the same to a program."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Replay:
    """Reads records in order; whatever becomes known of a call is put together."""

    rules: Sequence[Rule]
    tools: Mapping[str, Tool]
    most: int = 100
    calls: int = 0
    same: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    by_rule: Counter[str] = field(default_factory=Counter[str])
    changes: list[Change] = field(default_factory=list[Change])
    _open: dict[str, AuditEvent] = field(default_factory=dict[str, "AuditEvent"])

    def read(self, event: AuditEvent) -> None:
        """Take one record in."""
        if event.event_type == POLICY_DECISION:
            if len(self._open) >= _MOST_OPEN:
                self._judge(self._open.pop(next(iter(self._open))), {})
            self._open[event.call_id] = event
        elif event.event_type in {TOOL_INVOCATION_START, POLICY_VIOLATION}:
            decided = self._open.pop(event.call_id, None)
            if decided is not None:
                self._judge(decided, event.payload)

    def end(self) -> None:
        """Judge what is left: calls that wait for a person, of which no more is known."""
        for decided in self._open.values():
            self._judge(decided, {})
        self._open.clear()
        self.changes.sort(key=lambda change: change.seq)

    def as_json(self) -> dict[str, Any]:
        """Say what came of it."""
        return {
            "calls": self.calls,
            "same": self.same,
            "changed": dict(sorted(self.counts.items())),
            "by_rule": dict(sorted(self.by_rule.items())),
            "decisions": [change.as_json() for change in self.changes],
        }

    def _judge(self, decided: AuditEvent, known: Mapping[str, Any]) -> None:
        self.calls += 1
        past = _Past(decided, known, self.tools)
        before = str(decided.payload.get("decision", ""))
        after, rules, why = past.held_against(self.rules)
        if after == before:
            self.same += 1
            return
        self.counts[f"{before} -> {after}"] += 1
        self.by_rule.update(rules)
        if len(self.changes) < self.most:
            self.changes.append(past.change(before, after, rules, why))


class _Past:
    """One call of the log, as far as it is known."""

    def __init__(
        self, decided: AuditEvent, known: Mapping[str, Any], tools: Mapping[str, Tool]
    ) -> None:
        self.decided = decided
        self.context = decided.context
        self.tool = _tool_as_it_was(str(self.context.get("tool", "")), known, tools)
        self.arguments: dict[str, Any] | None = known.get("arguments")
        self.labels: list[str] | None = known.get("labels", decided.payload.get("labels"))

    def held_against(self, rules: Sequence[Rule]) -> tuple[str, tuple[str, ...], str]:
        """Say what would be decided, by which rules, and why that cannot be said."""
        gates: list[Mapping[str, Any]] = list(self.decided.payload.get("gates", ()))
        others = [gate for gate in gates if gate["gate"] != GATE]
        if any(gate["verdict"] == "deny" for gate in others):
            return "deny", (), ""
        looked = list(self._looked(rules))
        if doubt := _doubt(looked):
            return UNDECIDABLE, (doubt.rule.name,), doubt.why
        ruling = ruled(looked)
        if ruling.verdict.verdict == "deny":
            hidden = any(one.rule.says == "hide" for one in looked if one.counts)
            return "hide" if hidden else "deny", ruling.verdict.rules, ""
        asked = [gate for gate in others if _asks(gate)]
        if ruling.yes:
            asked = [gate for gate in asked if gate.get("code") not in LIFTED]
        verdict = "ask" if asked or ruling.verdict.verdict == "ask" else "allow"
        return verdict, ruling.verdict.rules, ""

    def _looked(self, rules: Sequence[Rule]) -> Iterator[Looked]:
        facts = self._facts()
        for rule in rules:
            if rule.shadow or not _about(rule, facts):
                continue
            if why := self._unknown(rule):
                yield Looked(rule, UNDECIDABLE, why)
            elif self.labels is None or rule.labels.hold(facts.labels):
                yield look(rule, facts)

    def _facts(self) -> Facts:
        context = self.context
        caller = Caller(id=str(context.get("caller", "")), role=Role(context.get("role", "user")))
        call = Call(
            tool=self.tool.id,
            caller=caller,
            arguments=self.arguments or {},
            context=Context(
                mode=Mode(context.get("mode", "execution")),
                project=context.get("project"),
                task_id=self.decided.task_id or None,
            ),
            chain=Chain(
                trace_id=str(context.get("trace", "")),
                span_id="",
                depth=int(context.get("depth", 1)),
                ancestors=tuple(context.get("ancestors", ())),
            ),
            edge=str(context.get("edge", "")),
        )
        now = moment_of(self.decided.created_at) or 0
        return Facts(self.tool, call, Labels.of(self.labels or ()), now)

    def _unknown(self, rule: Rule) -> str:
        """Say what a rule needs that the log does not have."""
        condition = rule.condition
        if self.labels is None and (
            rule.labels != ANYTHING or (condition and "labels" in condition.needs)
        ):
            return "labels of a call that did not run are not recorded"
        if condition is None:
            return ""
        if "call.root" in condition.needs:
            return "who began a chain is not recorded"
        if "args" not in condition.needs:
            return ""
        if self.arguments is None:
            return "arguments of a call that did not run are not recorded"
        hidden = _redacted(self.arguments)
        used = hidden if condition.args is None else hidden & condition.args
        return f"redacted in the log: {', '.join(sorted(used))}" if used else ""

    def change(self, before: str, after: str, rules: tuple[str, ...], why: str) -> Change:
        return Change(
            seq=self.decided.audit_id,
            at=self.decided.created_at,
            call=self.decided.call_id,
            caller=str(self.context.get("caller", "")),
            tool=self.tool.id,
            before=before,
            after=after,
            rules=rules,
            why=why,
        )


def _about(rule: Rule, facts: Facts) -> bool:
    call = facts.call
    return (
        rule.of_tool(facts.tool)
        and rule.of_caller(call.caller)
        and rule.over(call.edge)
        and rule.during(call.context.mode)
    )


def _asks(gate: Mapping[str, Any]) -> bool:
    """Whether a gate asked, or would have if no rule had said yes."""
    return gate["verdict"] == "ask" or (bool(gate.get("rules")) and gate.get("code") in LIFTED)


def _doubt(looked: Sequence[Looked]) -> Looked | None:
    """Find the doubt that matters: one that nothing as strong is known beside."""
    for says in _ORDER:
        meant = [one for one in looked if one.rule.says == says]
        if any(one.counts for one in meant):
            return None
        doubt = next((one for one in meant if one.found == UNDECIDABLE), None)
        if doubt is not None:
            return doubt
    return None


def _redacted(arguments: Mapping[str, Any]) -> set[str]:
    """Name the arguments in which something was redacted."""
    return {
        name
        for name, value in arguments.items()
        if _REDACTED in name or _REDACTED.encode() in orjson.dumps(value)
    }


def _tool_as_it_was(tool_id: str, known: Mapping[str, Any], tools: Mapping[str, Tool]) -> Tool:
    tool = tools.get(tool_id) or tool_of(tool_id)
    if "risk" not in known:
        return tool
    return replace(tool, risk=Risk[known["risk"]], tags=frozenset(known["side_effects"]))
