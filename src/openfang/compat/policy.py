"""The seed's policy engine: the six gates as they stand, and gates of the seed's form."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from openfang.app import plugins
from openfang.compat.house import House, current, in_use
from openfang.compat.words import InvocationContext, PolicyDecision, ToolDescriptor
from openfang.core.calls import Call, Caller
from openfang.core.decisions import ALLOW, Allow, Ask, Decision, Deny
from openfang.policy.engine import CUSTOM_GATE_SECONDS
from openfang.policy.gates import TrustGate, standard_gates
from openfang.policy.grants import matches

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

    def as_gate(self, house: House | None = None) -> Gate:
        """Turn it into a gate of ours.

        The gate sees `spec_frozen` as true where the house, else the one in use, knows the spec.
        """
        return _SeedGate(type(self).__name__, self, house)


@dataclass(frozen=True, slots=True)
class _SeedGate:
    name: str
    gate: PolicyGate
    house: House | None

    def check(self, tool: Tool, call: Call) -> Decision:
        """Ask the gate in its own words."""
        ctx = InvocationContext.of(call, spec_frozen=_is_frozen(self.house or in_use(), call))
        return self._decision(self.gate.check(ToolDescriptor.of(tool), ctx))

    def _decision(self, said: object) -> Decision:
        if not isinstance(said, PolicyDecision):
            raise TypeError(f"check() returned {type(said).__name__}, not a PolicyDecision")
        if said.allowed:
            return ALLOW
        reason = said.reason or f"Gate {self.name} refused"
        return Deny(reason, "custom_gate", f"ask whoever wrote the gate {self.name}")


def _is_frozen(house: House | None, call: Call) -> bool:
    spec = call.context.spec_hash
    return bool(spec and house and house.parts.specs.frozen(spec, call.context.project))


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
        for decision in _decisions(house, ours, call, ctx):
            if not isinstance(decision, Allow):
                return DENIED(decision.reason)
        return ALLOWED()

    def register_gate(self, gate: PolicyGate | Gate) -> None:
        """Add a gate, of the seed's form or of ours, for every call from now on."""
        house = self.house or current()
        ours = gate.as_gate(house) if isinstance(gate, PolicyGate) else plugins.as_gate(gate)
        pipeline = house.parts.pipeline
        pipeline.engine = replace(pipeline.engine, custom=(*pipeline.engine.custom, ours))


def _decisions(
    house: House | None, tool: Tool, call: Call, ctx: InvocationContext
) -> Iterator[Decision]:
    for gate in _six_gates(house, ctx):
        yield gate.check(tool, call)
    for gate in house.parts.pipeline.engine.custom if house else ():
        yield _asked(gate, tool, call)


def _six_gates(house: House | None, ctx: InvocationContext) -> list[Gate]:
    def frozen(spec: str, project: str | None) -> bool:
        return ctx.spec_frozen and (house is None or house.parts.specs.frozen(spec, project))

    def valid(secret: str, tool: str) -> bool:
        if house is None:
            return True
        token = house.parts.keys.find_token(secret)
        return token is not None and matches(token.tools, tool)

    gates = standard_gates(frozen=frozen, valid=valid, checks={}, guided=False)
    return [gate for gate in gates if not isinstance(gate, TrustGate)]


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
