"""The gates in order. The first refusal decides; a question stands only if nobody refuses.

The operator's rules are asked behind the gates, and before the operator's own classes.
"""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread

from openfang.core.decisions import ALLOW, Allow, Ask, Decision, Deny, Verdict
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.policy.gates import reads_papers
from openfang.policy.rules.book import GATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.core.calls import Call
    from openfang.core.ports import Gate
    from openfang.core.tools import Tool
    from openfang.policy.rules.book import Book, Ruling

CUSTOM_GATE_SECONDS = 0.1
# What a person is asked where nothing is wrong: the operator can have said yes before (C7.7). What
# a flow of data asks is not here, nor what another rule or the operator's own class does.
LIFTED = frozenset({"spec_not_frozen", "low_trust"})
_MOST_RULINGS = 1000
_log = logging.getLogger("openfang.policy")


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """What the gates said together. The one that allows everything is always the same object."""

    verdicts: tuple[Verdict, ...]
    denied: Verdict | None = None
    asked: tuple[Verdict, ...] = ()

    @property
    def outcome(self) -> str:
        """The decision in one word."""
        if self.denied:
            return "deny"
        return "ask" if self.asked else "allow"


@dataclass(frozen=True, slots=True)
class Engine:
    """Holds the gates; knows nothing of tools or calls beyond what gates read."""

    gates: tuple[Gate, ...]
    custom: tuple[Gate, ...] = ()
    rules: Book | None = None
    _allowed: Decided = field(init=False)
    _ruled: dict[Ruling, Decided] = field(init=False, default_factory=dict["Ruling", Decided])

    def __post_init__(self) -> None:
        verdicts = tuple(Verdict(gate.name, "allow") for gate in self.gates)
        object.__setattr__(self, "_allowed", Decided(verdicts))

    def reads_papers(self, tool: Tool) -> bool:
        """Whether any gate would read what a call of this tool shows beside its caller."""
        return bool(self.custom) or reads_papers(tool)

    def decide(self, tool: Tool, call: Call, labels: Labels = Labels.NONE) -> Decided:
        """Ask the standard gates and the rules. The common answer is there already."""
        for gate in self.gates:
            if gate.check(tool, call) is not ALLOW:
                return self._at_length(tool, call, labels)
        if self.rules is None:
            return self._allowed
        ruling = self.rules.judge(tool, call, labels)
        return self._ruled.get(ruling) or self._kept(ruling)

    def _at_length(self, tool: Tool, call: Call, labels: Labels) -> Decided:
        decided = _first_refusal((gate.name, gate.check(tool, call)) for gate in self.gates)
        if self.rules is None:
            return decided
        if decided.denied:
            return _joined(decided, Decided((Verdict(GATE, "not_reached"),)))
        return _joined_by_rules(decided, self.rules.judge(tool, call, labels))

    def _kept(self, ruling: Ruling) -> Decided:
        """Make the answer to calls that no gate objects to; its record is then written once."""
        if len(self._ruled) >= _MOST_RULINGS:
            self._ruled.clear()
        self._ruled[ruling] = decided = _joined_by_rules(self._allowed, ruling)
        return decided

    async def decide_all(self, tool: Tool, call: Call, labels: Labels = Labels.NONE) -> Decided:
        """Ask the standard gates and the rules, then the custom gates."""
        decided = self.decide(tool, call, labels)
        if not self.custom or decided.denied:
            return _with_unreached(decided, self.custom)
        further = [(gate.name, await _ask_custom(gate, tool, call)) for gate in self.custom]
        return _joined(decided, _first_refusal(further))

    async def explain(self, tool: Tool, call: Call, labels: Labels = Labels.NONE) -> Decided:
        """Ask every gate, also those after a refusal."""
        decided = _of(_verdict(gate.name, gate.check(tool, call)) for gate in self.gates)
        if self.rules is not None:
            decided = _joined_by_rules(decided, self.rules.judge(tool, call, labels))
        further = [(gate.name, await _ask_custom(gate, tool, call)) for gate in self.custom]
        return _joined(decided, _of(_verdict(name, decision) for name, decision in further))


async def _ask_custom(gate: Gate, tool: Tool, call: Call) -> Decision:
    """Run a gate that is not ours: one that raises, dawdles or babbles refuses."""
    try:
        with anyio.fail_after(CUSTOM_GATE_SECONDS):
            ask = cast("Callable[[Tool, Call], object]", gate.check)
            said = await anyio.to_thread.run_sync(ask, tool, call, abandon_on_cancel=True)
    except TimeoutError:
        took = f"Gate {gate.name} took over {CUSTOM_GATE_SECONDS * 1000:.0f} ms"
        return Deny(took, "gate_timeout", "mend or remove it in plugins.gates")
    except Exception:  # noqa: BLE001 - somebody else's code
        _log.exception("gate %s raised", gate.name)
        return Deny(f"Gate {gate.name} raised an error", "gate_error", "see the log")
    if isinstance(said, Allow | Deny | Ask):
        return said
    answer = f"Gate {gate.name} answered {type(said).__name__}, not a decision"
    return Deny(answer, "gate_error", "it must return Allow, Deny or Ask")


def _joined_by_rules(decided: Decided, ruling: Ruling) -> Decided:
    """Add what the rules say; where one says yes, a person need not."""
    verdicts = decided.verdicts
    if ruling.yes and decided.asked:
        verdicts = tuple(_lifted(verdict, ruling) for verdict in verdicts)
    return _of((*verdicts, ruling.verdict))


def _lifted(verdict: Verdict, ruling: Ruling) -> Verdict:
    if verdict.verdict != "ask" or verdict.code not in LIFTED:
        return verdict
    reason = f"{verdict.reason}: rule {ruling.yes} stands in for a person"
    return Verdict(verdict.gate, "allow", reason, verdict.code, rules=(ruling.yes,))


def _of(said: Iterable[Verdict]) -> Decided:
    verdicts = tuple(said)
    denied = next((verdict for verdict in verdicts if verdict.verdict == "deny"), None)
    return Decided(verdicts, denied, tuple(v for v in verdicts if v.verdict == "ask"))


def _first_refusal(said: Iterable[tuple[str, Decision]]) -> Decided:
    verdicts: list[Verdict] = []
    denied: Verdict | None = None
    for name, decision in said:
        verdict = Verdict(name, "not_reached") if denied else _verdict(name, decision)
        verdicts.append(verdict)
        if verdict.verdict == "deny":
            denied = verdict
    return Decided(tuple(verdicts), denied, tuple(v for v in verdicts if v.verdict == "ask"))


def _verdict(name: str, decision: Decision) -> Verdict:
    match decision:
        case Allow():
            return Verdict(name, "allow")
        case Deny(reason, code, way_out):
            return Verdict(name, "deny", reason, code, way_out)
        case Ask(reason, code, way_out):
            return Verdict(name, "ask", reason, code, way_out)


def _with_unreached(decided: Decided, custom: Sequence[Gate]) -> Decided:
    if not custom:
        return decided
    unreached = tuple(Verdict(gate.name, "not_reached") for gate in custom)
    return Decided(decided.verdicts + unreached, decided.denied, decided.asked)


def _joined(first: Decided, second: Decided) -> Decided:
    return Decided(
        first.verdicts + second.verdicts,
        first.denied or second.denied,
        first.asked + second.asked,
    )
