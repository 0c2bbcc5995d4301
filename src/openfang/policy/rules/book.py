"""All rules in force. The index says which are about a call; times and conditions are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from openfang.core.decisions import ALLOW, Ask, Decision, Deny, Verdict
from openfang.core.values import dataclass
from openfang.policy.rules.conditions import Facts, activation
from openfang.policy.rules.index import Index, bits, numbers, room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.core.calls import Call, Caller
    from openfang.core.labels import Labels
    from openfang.core.tools import Tool
    from openfang.policy.rules.rule import Rule, Says

GATE: Final = "rules"


@dataclass(frozen=True, slots=True, eq=False)
class Ruling:
    """What the rules say of a call. Of each set of rules that matched there is one object.

    `yes` is the rule that says yes in a person's place, if one does.
    """

    decision: Decision
    verdict: Verdict
    yes: str = ""


NO_RULING: Final = Ruling(ALLOW, Verdict(GATE, "allow"))


@dataclass(frozen=True, slots=True)
class Looked:
    """How one rule that the index left was found: `yes`, `no`, `not_now` or `failed`."""

    rule: Rule
    found: str
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it has a say: one that failed does, unless it would allow."""
        return self.found == "yes" or (self.found == "failed" and self.rule.says != "allow")


class _Plan(NamedTuple):
    """What is to be done about one set of rules that the index left."""

    matched: int
    looked_at: tuple[tuple[int, Rule], ...]
    needs: tuple[str, ...]


class Book:
    """The rules of one file. It belongs to the event loop; another file is another book."""

    __slots__ = ("_hiding", "_index", "_now", "_plans", "_rulings", "rules")

    def __init__(self, rules: Sequence[Rule], now: Callable[[], int]) -> None:
        self.rules = tuple(rules)
        self._now = now
        self._index = Index(self.rules)
        self._plans: dict[int, _Plan] = {}
        self._rulings: dict[tuple[int, int], Ruling] = {(0, 0): NO_RULING}
        self._hiding = bits(rule.says == "hide" and not rule.shadow for rule in self.rules)

    def hides(self, caller: Caller, tool: Tool) -> bool:
        """Whether the tool does not exist for the caller."""
        return bool(self.sight(caller) and self._index.of_tool(tool) & self.sight(caller))

    def sight(self, caller: Caller) -> int:
        """Which rules hide something from the caller: who has the same sees the same."""
        return self._hiding and self._index.of_caller(caller) & self._hiding

    def judge(self, tool: Tool, call: Call, labels: Labels) -> Ruling:
        """Hold a call against the rules."""
        left = self._index.left(tool, call, labels)
        if not left:
            return NO_RULING
        plan = self._plans.get(left) or self._planned(left)
        matched = failed = 0
        if plan.looked_at:
            matched, failed = self._found(plan, Facts(tool, call, labels, self._now()))
        key = (matched | plan.matched, failed)
        ruling = self._rulings.get(key)
        if ruling is None:
            room(self._rulings)[key] = ruling = self._ruling(*key)
        return ruling

    def _planned(self, left: int) -> _Plan:
        those = [(1 << number, self.rules[number]) for number in numbers(left)]
        looked_at = tuple(one for one in those if one[1].hours or one[1].condition)
        conditions = [rule.condition for _, rule in looked_at if rule.condition is not None]
        needs = set[str]().union(*(one.needs for one in conditions))
        plan = _Plan(left & ~sum(bit for bit, _ in looked_at), looked_at, tuple(sorted(needs)))
        room(self._plans)[left] = plan
        return plan

    @staticmethod
    def _found(plan: _Plan, facts: Facts) -> tuple[int, int]:
        """Look at times and conditions: which of the rules matched, and which cannot be judged."""
        matched = failed = 0
        given = activation(plan.needs, facts) if plan.needs else None
        for bit, rule in plan.looked_at:
            if rule.hours is not None and not rule.hours.hold(facts.now):
                continue
            held = rule.condition is None or rule.condition.hold(given)
            if held:
                matched |= bit
            elif held is None:
                failed |= bit
        return matched, failed

    def _ruling(self, matched: int, failed: int) -> Ruling:
        looked = [Looked(self.rules[number], "yes") for number in numbers(matched)]
        return ruled(looked + [Looked(self.rules[number], "failed") for number in numbers(failed)])

    def look(self, tool: Tool, call: Call, labels: Labels) -> list[Looked]:
        """Look at every rule that the index leaves, and say how each was found."""
        left = self._index.left(tool, call, labels)
        facts = Facts(tool, call, labels, self._now())
        return [look(self.rules[number], facts) for number in numbers(left)]


_WORDS: Final[dict[bool | None, str]] = {True: "yes", False: "no", None: "failed"}
_STRENGTH: Final[tuple[Says, ...]] = ("hide", "deny", "ask", "allow")


def look(rule: Rule, facts: Facts) -> Looked:
    """Look at the time and the condition of one rule that is about a call."""
    if rule.hours is not None and not rule.hours.hold(facts.now):
        return Looked(rule, "not_now")
    if rule.condition is None:
        return Looked(rule, "yes")
    given = activation(rule.condition.needs, facts)
    said = rule.condition.hold(given)
    return Looked(rule, _WORDS[said], rule.condition.failure(given) if said is None else "")


def ruled(looked: Iterable[Looked]) -> Ruling:
    """Join what rules say: deny before ask before allow. Shadows are named, and do not count."""
    counting = [one for one in looked if one.counts]
    shadow = tuple((one.rule.name, one.rule.says) for one in counting if one.rule.shadow)
    for says in _STRENGTH:
        meant = [one for one in counting if one.rule.says == says and not one.rule.shadow]
        if meant:
            return _said(meant, shadow)
    return Ruling(ALLOW, Verdict(GATE, "allow", shadow=shadow)) if shadow else NO_RULING


def _said(meant: Sequence[Looked], shadow: tuple[tuple[str, str], ...]) -> Ruling:
    first, names = meant[0], tuple(one.rule.name for one in meant)
    rule = first.rule
    if rule.says == "allow":
        verdict = Verdict(GATE, "allow", rule.reason, rule.code, rules=names, shadow=shadow)
        return Ruling(ALLOW, verdict, rule.name)
    reason = rule.told
    if first.found == "failed":
        reason = f"{reason} (its condition cannot be judged on this call)"
    word, kind = ("ask", Ask) if rule.says == "ask" else ("deny", Deny)
    verdict = Verdict(GATE, word, reason, rule.code, rule.help, rules=names, shadow=shadow)
    return Ruling(kind(reason, rule.code, rule.help), verdict)
