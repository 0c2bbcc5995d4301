"""What a foreign tool may do, by everything that is said of it: a pure function (C11).

Weakest first, each over the one before: the name's words, the description (raises only), MCP
annotations (raise; lower for trust `high` only), the manifest, the operator.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels
from openfang.core.tools import READ_TAGS, Effect, Risk, Sink, Tool, Trust
from openfang.core.values import dataclass
from openfang.registry.rules import DEFAULT_RULES, UNKNOWN, check_tags, effects_of, outside
from openfang.registry.targets import Targets, targets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.registry.rules import Rules

# Least harm first. A tool has the effect of its worst tag.
_HARM = (
    Effect.NONE,
    Effect.EXTERNAL_READ,
    Effect.LOCAL_WRITE,
    Effect.EXTERNAL_WRITE,
    Effect.IDENTITY,
    Effect.EXEC,
    Effect.MONEY,
)
_EFFECT_OF = {
    "network.dns": Effect.EXTERNAL_READ,
    "network.http": Effect.EXTERNAL_READ,
    "network.socket": Effect.EXTERNAL_READ,
    "fs.write": Effect.LOCAL_WRITE,
    "fs.delete": Effect.LOCAL_WRITE,
    "fs.chmod": Effect.LOCAL_WRITE,
    "system.env": Effect.LOCAL_WRITE,
    "database.write": Effect.LOCAL_WRITE,
    "database.delete": Effect.LOCAL_WRITE,
    "cloud.resource_create": Effect.EXTERNAL_WRITE,
    "cloud.resource_delete": Effect.EXTERNAL_WRITE,
    "unknown": Effect.EXTERNAL_WRITE,
    "cloud.key_write": Effect.IDENTITY,
    "system.exec": Effect.EXEC,
    "payments": Effect.MONEY,
}
_LABEL_OF = {
    "unknown": Labels.EXTERNAL_NETWORK,
    "fs.read": Labels.LOCAL_FILE,
    "cloud.key_read": Labels.SECRET,
}
_OF_TWO_PARTS = frozenset({Kind.BUILTIN, Kind.AGENT, Kind.A2A})
_READS = frozenset({Effect.NONE, Effect.EXTERNAL_READ})
# A tool that is "not destructive" may still spend, run and grant.
_BEYOND_DESTRUCTION = frozenset({"payments", "system.exec", "cloud.key_write"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What somebody states about a tool. None is silence; an unknown tag is a ValueError."""

    risk: Risk | None = None
    tags: frozenset[str] | None = None
    effect: Effect | None = None
    targets: tuple[str, ...] | None = None
    labels: Labels | None = None
    polls: bool | None = None
    idempotent: bool | None = None
    requires_admin_token: bool | None = None

    def __post_init__(self) -> None:
        check_tags(self.tags or ())


Overrides: TypeAlias = Declared


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTool:
    """A tool as its source describes it. `remote`: the source is not on this machine."""

    kind: Kind
    source: str
    name: str
    description: str = ""
    title: str | None = None
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    declared: Declared | None = None
    remote: bool = False

    @property
    def id(self) -> str:
        """The canonical id."""
        if self.kind in _OF_TWO_PARTS:
            return tool_id(self.kind, self.name)
        return tool_id(self.kind, self.source, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """The verdict, and for each field the rule that set it."""

    risk: Risk
    tags: frozenset[str]
    sink: Sink
    labels: Labels
    polls: bool
    idempotent: bool
    requires_admin_token: bool
    why: Mapping[str, str]


def classify(
    foreign: ForeignTool,
    *,
    trust: Trust,
    overrides: Overrides | None = None,
    rules: Rules = DEFAULT_RULES,
) -> Classified:
    """Weigh everything that is said of a tool."""
    draft = _by_name(foreign, rules)
    draft = _by_description(draft, foreign, rules)
    draft = _by_annotations(draft, foreign.annotations, trust)
    draft = _by_statement(draft, foreign.declared, "manifest")
    draft = _by_statement(draft, overrides, "override")
    return _finish(draft, foreign, trust)


def classified_tool(foreign: ForeignTool, verdict: Classified, *, trust: Trust) -> Tool:
    """Make the tool that the registry holds; what the operator set besides is for `replace`."""
    return Tool(
        id=foreign.id,
        kind=foreign.kind,
        source=foreign.source,
        name=foreign.name,
        description=foreign.description,
        input_schema=foreign.input_schema,
        output_schema=foreign.output_schema,
        title=foreign.title,
        annotations=foreign.annotations,
        risk=verdict.risk,
        tags=verdict.tags,
        sink=verdict.sink,
        labels=verdict.labels,
        trust=trust,
        requires_admin_token=verdict.requires_admin_token,
        polls=verdict.polls,
        idempotent=verdict.idempotent,
    )


def harm(effect: Effect) -> int:
    """Order effects, so that one can be called worse than another."""
    return _HARM.index(effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A verdict in the making; None is not decided yet."""

    risk: Risk
    tags: frozenset[str]
    sends: bool
    polls: bool
    network: bool
    open_world: bool | None = None
    idempotent: bool | None = None
    effect: Effect | None = None
    targets: tuple[str, ...] | None = None
    labels: Labels | None = None
    requires_admin_token: bool | None = None
    why: Mapping[str, str] = field(default_factory=dict[str, str])

    def by(self, rule: str, **changes: object) -> _Draft:
        """Change fields, and note the rule at those that really changed."""
        changed = [name for name, value in changes.items() if getattr(self, name) != value]
        why = {**self.why, **dict.fromkeys(changed, rule)}
        return replace(self, why=why, **changes)  # pyright: ignore[reportArgumentType] - by field


def _by_name(foreign: ForeignTool, rules: Rules) -> _Draft:
    reading = rules.read_name(foreign.name)
    rule = f"name: {reading.because}" if reading.because else "unknown"
    polls = rules.polls(foreign.name)
    return _Draft(
        risk=reading.risk,
        tags=reading.tags,
        sends=reading.sends,
        polls=polls,
        network=_networked(reading.tags),
        why=dict.fromkeys(("risk", "tags", "polls"), rule),
    )


def _by_description(draft: _Draft, foreign: ForeignTool, rules: Rules) -> _Draft:
    """Prose is the server's own word: it raises, and what it alone says stays unknown beside it."""
    reading = rules.read_text(f"{foreign.title or ''}\n{foreign.description}")
    added = effects_of(reading.tags) - draft.tags
    return draft.by(
        f"description: {reading.because}",
        risk=max(draft.risk, reading.risk),
        tags=draft.tags | added | UNKNOWN if added else draft.tags,
        sends=draft.sends or reading.sends,
        network=draft.network or _networked(added),
    )


def _by_annotations(draft: _Draft, hints: Mapping[str, Any], trust: Trust) -> _Draft:
    draft = _by_openness(draft, hints.get("openWorldHint"), trust)
    draft = _by_idempotence(draft, hints.get("idempotentHint"), trust)
    reads, destroys = hints.get("readOnlyHint"), hints.get("destructiveHint")
    if destroys is True:
        return _destructive(draft)
    if reads is False:
        draft = _changing(draft)
    if trust is Trust.HIGH and reads is True:
        return draft.by("readOnlyHint", risk=Risk.LOW, tags=draft.tags & READ_TAGS, sends=False)
    if trust is Trust.HIGH and destroys is False and not draft.tags & _BEYOND_DESTRUCTION:
        return draft.by("destructiveHint", risk=min(draft.risk, Risk.MEDIUM))
    return draft


def _by_openness(draft: _Draft, hint: object, trust: Trust) -> _Draft:
    if hint is True or (hint is False and trust is Trust.HIGH):
        return draft.by("openWorldHint", open_world=hint)
    return draft


def _by_idempotence(draft: _Draft, hint: object, trust: Trust) -> _Draft:
    if hint is False or (hint is True and trust is Trust.HIGH):
        return draft.by("idempotentHint", idempotent=hint)
    return draft


def _destructive(draft: _Draft) -> _Draft:
    tags = draft.tags if effects_of(draft.tags) else draft.tags | UNKNOWN
    return draft.by("destructiveHint", risk=max(draft.risk, Risk.HIGH), tags=tags)


def _changing(draft: _Draft) -> _Draft:
    tags = draft.tags if effects_of(draft.tags) else draft.tags | UNKNOWN
    return draft.by("readOnlyHint", risk=max(draft.risk, Risk.MEDIUM), tags=tags)


def _by_statement(draft: _Draft, stated: Declared | None, rule: str) -> _Draft:
    if stated is None:
        return draft
    values = {name: getattr(stated, name) for name in _STATED}
    said = {name: value for name, value in values.items() if value is not None}
    network = draft.network if stated.tags is None else _networked(stated.tags)
    why = {**draft.why, **dict.fromkeys(said, rule)}
    return replace(draft, **said, network=network, why=why)


_STATED = (
    "risk",
    "tags",
    "effect",
    "targets",
    "labels",
    "polls",
    "idempotent",
    "requires_admin_token",
)


def _finish(draft: _Draft, foreign: ForeignTool, trust: Trust) -> Classified:
    targets = targets_of(foreign.input_schema)
    draft = _never_silent(draft, targets)
    effect = draft.effect or _effect(draft, targets, remote=foreign.remote)
    labels = _labels(draft, foreign, targets, trust) if draft.labels is None else draft.labels
    harmless = draft.risk is Risk.LOW and not effects_of(draft.tags)
    admin = draft.requires_admin_token
    return Classified(
        risk=draft.risk,
        tags=draft.tags,
        sink=Sink(effect=effect, targets=_chosen(draft, targets, effect)),
        labels=labels,
        polls=draft.polls,
        idempotent=harmless if draft.idempotent is None else draft.idempotent,
        requires_admin_token=draft.risk is Risk.CRITICAL if admin is None else admin,
        why=_reasons(draft),
    )


def _reasons(draft: _Draft) -> dict[str, str]:
    """What nobody stated follows from something else."""
    derived = {
        "effect": "tags",
        "targets": "schema",
        "labels": draft.why.get("open_world", "tags"),
        "idempotent": "risk",
        "requires_admin_token": "risk",
    }
    return {name: draft.why.get(name) or derived[name] for name in _STATED}


def _never_silent(draft: _Draft, targets: Targets) -> _Draft:
    """Whoever is dangerous has an effect, and a schema that cannot be read hides one."""
    if draft.why["tags"] == "override" or effects_of(draft.tags):
        return draft
    if draft.risk >= Risk.HIGH:
        return draft.by("risk", tags=draft.tags | UNKNOWN)
    if not targets.complete:
        risk = max(draft.risk, Risk.MEDIUM)
        return draft.by("schema too large to read", risk=risk, tags=draft.tags | UNKNOWN)
    return draft


def _effect(draft: _Draft, targets: Targets, *, remote: bool) -> Effect:
    found = {_EFFECT_OF.get(tag, Effect.NONE) for tag in draft.tags}
    worst = max(found, key=harm, default=Effect.NONE)
    abroad = remote or _open(draft)
    match worst:
        case Effect.LOCAL_WRITE if abroad or targets.places:
            return Effect.EXTERNAL_WRITE
        case Effect.EXTERNAL_READ if draft.sends or draft.risk >= Risk.HIGH:
            return Effect.EXTERNAL_WRITE
        case Effect.NONE if abroad:
            return Effect.EXTERNAL_READ
        case _:
            return worst


def _chosen(draft: _Draft, targets: Targets, effect: Effect) -> tuple[str, ...]:
    """A read chooses nothing but the place that it reaches."""
    if draft.targets is not None:
        return draft.targets
    return targets.places if effect in _READS else targets.chosen


def _labels(draft: _Draft, foreign: ForeignTool, targets: Targets, trust: Trust) -> Labels:
    found = Labels.NONE
    for tag in draft.tags:
        found |= _LABEL_OF.get(tag, Labels.NONE)
    if foreign.remote or trust is Trust.LOW or _open(draft) or outside(foreign.name):
        found |= Labels.EXTERNAL_NETWORK
    if draft.open_world is False:
        found &= ~Labels.EXTERNAL_NETWORK
    return found | Labels.EXTERNAL_NETWORK if targets.places else found


def _open(draft: _Draft) -> bool:
    return draft.network if draft.open_world is None else draft.open_world


def _networked(tags: frozenset[str]) -> bool:
    return any(tag.startswith("network.") for tag in tags)
