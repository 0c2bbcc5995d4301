"""What a manifest declares becomes tools; what it says of their harm can raise it, and not lower.

Only the operator's trust lets an extension's own word stand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.ids import Kind
from openfang.core.tools import Trust
from openfang.registry.classify import Declared, ForeignTool, classified_tool, classify, harm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.core.extensions import Capability, ExtensionSpec, Permissions
    from openfang.core.tools import Effect, Sink, Tool
    from openfang.registry.classify import Classified
    from openfang.registry.rules import Rules


def tools_of(spec: ExtensionSpec, rules: Rules) -> tuple[Tool, ...]:
    """Make a tool of each capability."""
    return tuple(_tool(spec, said, rules) for said in spec.capabilities)


def declared_of(
    spec: ExtensionSpec, said: Capability, foreign: ForeignTool, rules: Rules
) -> Declared:
    """Say what holds of a capability: its manifest's word, and what it can reach all the same."""
    reached = frozenset(_reached(spec.permissions))
    found = classify(foreign, trust=spec.trust, rules=rules)
    if spec.trust is Trust.HIGH:
        return Declared(
            risk=said.risk,
            tags=(found.tags if said.tags is None else said.tags) | reached,
            effect=said.sink.effect if said.sink else None,
            targets=said.sink.targets if said.sink else None,
        )
    return Declared(
        risk=max(found.risk, said.risk or found.risk),
        tags=found.tags | (said.tags or frozenset()) | reached,
        effect=_worse(found, said.sink),
        targets=_all_targets(found, said.sink),
    )


def _tool(spec: ExtensionSpec, said: Capability, rules: Rules) -> Tool:
    foreign = ForeignTool(
        kind=Kind.EXTENSION,
        source=spec.id,
        name=said.name,
        description=said.description,
        title=said.title or None,
        input_schema=said.input_schema or {"type": "object"},
        output_schema=said.output_schema,
        annotations=said.annotations,
    )
    foreign = replace(foreign, declared=declared_of(spec, said, foreign, rules))
    verdict = classify(foreign, trust=spec.trust, rules=rules)
    return replace(
        classified_tool(foreign, verdict, trust=spec.trust),
        wire_name=said.shown_as,
        timeout=spec.timeout if said.timeout is None else said.timeout,
        lane=spec.caller_id,
        at_once=spec.at_once,
    )


def _reached(may: Permissions) -> Iterator[str]:
    if may.network:
        yield "network.http"
    if may.read:
        yield "fs.read"
    if may.write:
        yield "fs.write"


def _worse(found: Classified, said: Sink | None) -> Effect | None:
    """Declare an effect only where that is worse than what follows from everything else."""
    if said is None or harm(said.effect) <= harm(found.sink.effect):
        return None
    return said.effect


def _all_targets(found: Classified, said: Sink | None) -> tuple[str, ...] | None:
    """Add targets; where none is known, every argument is one already."""
    if said is None or not found.sink.targets:
        return None
    return tuple(dict.fromkeys((*found.sink.targets, *said.targets)))
