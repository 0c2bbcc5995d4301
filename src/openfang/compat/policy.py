"""The seed's policy engine: the six gates as they stand, and gates of the seed's form."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.app import plugins
from openfang.compat.house import House, current, in_use
from openfang.compat.words import InvocationContext, PolicyDecision, ToolDescriptor
from openfang.core.calls import Call, Caller, Papers
from openfang.core.decisions import ALLOW, Allow, Ask, Decision, Deny
from openfang.core.values import dataclass
from openfang.policy.engine import CUSTOM_GATE_SECONDS
from openfang.policy.gates import TrustGate, standard_gates
from openfang.storage.database import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.core.ports import Gate
    from openfang.core.tools import Tool

_log = logging.getLogger("openfang.policy")
_NOBODY = Caller(id="nobody")


def ALLOWED() -> PolicyDecision:  # noqa: N802 - the seed's name
    """Go on."""
    return PolicyDecision(allowed=True)


def DENIED(reason: str) -> PolicyDecision:  # noqa: N802 - the seed's name
    """Stop, for this reason."""
    return PolicyDecision(allowed=False, reason=reason)


class PolicyGate(ABC):
    """A gate of the seed's form. Register it, or name its class in `[plugins] gates`."""

    @abstractmethod
    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        """Decide on a call. Raising, or taking over 100 ms, refuses it."""

    def as_gate(self) -> Gate:
        """Turn it into a gate of ours: `spec_frozen` is true where the node knows the spec."""
        return _SeedGate(type(self).__name__, self)


@dataclass(frozen=True, slots=True)
class _SeedGate:
    name: str
    gate: PolicyGate

    def check(self, tool: Tool, call: Call) -> Decision:
        """Ask the gate in its own words."""
        ctx = InvocationContext.of(call, spec_frozen=_is_frozen(call))
        return self._decision(self.gate.check(ToolDescriptor.of(tool), ctx))

    def _decision(self, said: object) -> Decision:
        if not isinstance(said, PolicyDecision):
            raise TypeError(f"check() returned {type(said).__name__}, not a PolicyDecision")
        if said.allowed:
            return ALLOW
        reason = said.reason or f"Gate {self.name} refused"
        return Deny(reason, "custom_gate", f"ask whoever wrote the gate {self.name}")


def _is_frozen(call: Call) -> bool:
    context = call.context
    return bool(context.spec_hash) and call.papers.frozen_for(context.project)


@dataclass(frozen=True, slots=True)
class ToolPolicyEngine:
    """The `seed` profile over a house, else over the one in use.

    A house checks what a context claims: the spec by its hash, the admin token by its digest.
    """

    house: House | None = None

    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        """Ask the six gates, then the registered ones; the first refusal decides."""
        house = self.house or in_use()
        ours = tool.as_tool()
        call = Call(
            tool=tool.tool_id,
            caller=house.caller if house else _NOBODY,
            context=ctx.as_it_stands,
            run=ctx.session_id,
            admin_token=ctx.admin_token,
        )
        for decision in _decisions(house, ours, _shown(house, call, ctx)):
            if not isinstance(decision, Allow):
                return DENIED(decision.reason)
        return ALLOWED()

    def register_gate(self, gate: PolicyGate | Gate) -> None:
        """Add a gate, of the seed's form or of ours, for every call from now on."""
        house = self.house or current()
        ours = plugins.as_gate(gate)
        pipeline = house.parts.pipeline
        pipeline.engine = replace(pipeline.engine, custom=(*pipeline.engine.custom, ours))


def _shown(house: House | None, call: Call, ctx: InvocationContext) -> Call:
    """Give the call its papers. Without a house it is believed; one on a server cannot be asked."""
    if house is None:
        return _with(call, ctx, Papers(projects=frozenset({ctx.project_id or ""}), tools=("*",)))
    if house.parts.database.dialect != "sqlite":
        return call
    return _with(call, ctx, at_once(house.parts.pipeline.archive.shown(call)).papers)


def _with(call: Call, ctx: InvocationContext, papers: Papers) -> Call:
    claimed = papers if ctx.spec_frozen else replace(papers, projects=frozenset())
    return replace(call, papers=claimed)


def _decisions(house: House | None, tool: Tool, call: Call) -> Iterator[Decision]:
    for gate in _SIX_GATES:
        yield gate.check(tool, call)
    for gate in house.parts.pipeline.engine.custom if house else ():
        yield _asked(gate, tool, call)


_SIX_GATES = [
    gate for gate in standard_gates(checks={}, guided=False) if not isinstance(gate, TrustGate)
]


def _asked(gate: Gate, tool: Tool, call: Call) -> Decision:
    """Ask a gate that is not ours, by the pipeline's rules, from code that cannot wait."""
    began = time.monotonic()
    try:
        decision = _a_decision(gate.check(tool, call))
    except Exception:  # noqa: BLE001 - somebody else's code
        _log.exception("gate %s raised", gate.name)
        return Deny(f"Gate {gate.name} raised an error", "gate_error")
    if time.monotonic() - began > CUSTOM_GATE_SECONDS:
        took = f"Gate {gate.name} took over {CUSTOM_GATE_SECONDS * 1000:.0f} ms"
        return Deny(took, "gate_timeout")
    return decision


def _a_decision(said: object) -> Decision:
    if not isinstance(said, Allow | Deny | Ask):
        raise TypeError(f"check() returned {type(said).__name__}, not a decision")
    return said
