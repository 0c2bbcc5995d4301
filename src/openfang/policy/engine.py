"""The gates in order. The first refusal decides; a question stands only if nobody refuses."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread

from openfang.core.decisions import ALLOW, Allow, Ask, Decision, Deny, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.core.calls import Call
    from openfang.core.ports import Gate
    from openfang.core.tools import Tool

CUSTOM_GATE_SECONDS = 0.1
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
    _allowed: Decided = field(init=False)

    def __post_init__(self) -> None:
        verdicts = tuple(Verdict(gate.name, "allow") for gate in self.gates)
        object.__setattr__(self, "_allowed", Decided(verdicts))

    def decide(self, tool: Tool, call: Call) -> Decided:
        """Ask the standard gates. The common answer is a value that is already there."""
        for gate in self.gates:
            if gate.check(tool, call) is not ALLOW:
                return _first_refusal((gate.name, gate.check(tool, call)) for gate in self.gates)
        return self._allowed

    async def decide_all(self, tool: Tool, call: Call) -> Decided:
        """Ask the standard gates, then the custom ones."""
        decided = self.decide(tool, call)
        if not self.custom or decided.denied:
            return _with_unreached(decided, self.custom)
        further = [(gate.name, await _ask_custom(gate, tool, call)) for gate in self.custom]
        return _joined(decided, _first_refusal(further))

    async def explain(self, tool: Tool, call: Call) -> Decided:
        """Ask every gate, also those after a refusal."""
        said = [(gate.name, gate.check(tool, call)) for gate in self.gates]
        said += [(gate.name, await _ask_custom(gate, tool, call)) for gate in self.custom]
        verdicts = tuple(_verdict(name, decision) for name, decision in said)
        denied = next((verdict for verdict in verdicts if verdict.verdict == "deny"), None)
        return Decided(verdicts, denied, tuple(v for v in verdicts if v.verdict == "ask"))


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
