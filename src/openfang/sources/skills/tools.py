"""The tools of a skill: one that reads it, one that runs its scripts, and those it declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.core.ids import Kind, tool_id, wire_name
from openfang.core.labels import Labels
from openfang.core.tools import Effect, Risk, Sink, Tool, Trust
from openfang.registry.classify import ForeignTool, classified_tool, classify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.registry.rules import Rules
    from openfang.sources.skills.spec import Provided, SkillSpec

READ: Final = "read"
RUN: Final = "run"
AT_ONCE: Final = 8
_NOTHING: Final = frozenset[str]()
_NETWORK: Final = frozenset({"network.http"})
_LONGEST_PATH: Final = 1000
_MOST_ARGUMENTS: Final = 100
_FILE: Final = {
    "type": "string",
    "maxLength": _LONGEST_PATH,
    "description": "One of the skill's other files; leave it out to read the instructions.",
}


def tools_of(spec: SkillSpec, rules: Rules) -> Iterator[Tool]:
    """List what a skill offers."""
    if spec.instructions:
        yield _read(spec)
    if spec.scripts:
        yield _run(spec)
    for one in spec.tools:
        yield _provided(spec, one, rules)


def _read(spec: SkillSpec) -> Tool:
    """Reading what the operator accepted changes nothing, and tells nothing of others."""
    low = spec.trust is Trust.LOW
    return Tool(
        id=tool_id(Kind.EXTENSION, spec.name, READ),
        kind=Kind.EXTENSION,
        source=spec.name,
        name=wire_name("skill", spec.name),
        description=f"Read the skill {spec.name} before you do what it is for: {spec.description}",
        input_schema={
            "type": "object",
            "properties": {"file": _FILE},
            "additionalProperties": False,
        },
        risk=Risk.LOW,
        tags=frozenset({"fs.read"}),
        labels=Labels.EXTERNAL_NETWORK if low else Labels.NONE,
        trust=spec.trust,
        idempotent=True,
    )


def _run(spec: SkillSpec) -> Tool:
    properties = {
        "script": {"type": "string", "enum": list(spec.scripts)},
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": _MOST_ARGUMENTS,
            "description": "Its arguments, one entry each; no shell reads them.",
        },
        "stdin": {"type": "string", "description": "What it reads on its standard input."},
    }
    return Tool(
        id=tool_id(Kind.EXTENSION, spec.name, RUN),
        kind=Kind.EXTENSION,
        source=spec.name,
        name=wire_name("skill", spec.name, RUN),
        description=f"Run a script of the skill {spec.name}, in a folder of the skill's own.",
        input_schema={
            "type": "object",
            "properties": properties,
            "required": ["script"],
            "additionalProperties": False,
        },
        risk=Risk.HIGH,
        tags=frozenset({"system.exec"}) | (_NETWORK if spec.network else _NOTHING),
        sink=Sink(effect=Effect.EXEC, targets=("script", "args")),
        labels=_labels(spec),
        trust=spec.trust,
        timeout=spec.timeout,
        lane=spec.id,
        at_once=AT_ONCE,
    )


def _labels(spec: SkillSpec) -> Labels:
    outside = spec.network or spec.trust is Trust.LOW
    return Labels.EXTERNAL_NETWORK if outside else Labels.NONE


def _provided(spec: SkillSpec, one: Provided, rules: Rules) -> Tool:
    """Classify it as any foreign tool; what reaches the network brings back what others wrote."""
    foreign = ForeignTool(
        kind=Kind.EXTENSION,
        source=spec.name,
        name=one.name,
        description=one.description,
        input_schema=one.input_schema,
    )
    verdict = classify(foreign, trust=spec.trust, rules=rules)
    tool = classified_tool(foreign, verdict, trust=spec.trust)
    return replace(
        tool,
        tags=tool.tags | _NETWORK if spec.network else tool.tags,
        labels=tool.labels | _labels(spec),
        timeout=spec.timeout,
        lane=spec.id,
        at_once=AT_ONCE,
    )
