"""What a tool is: identity, schema, risk, side effects, and what it does to the world."""

from __future__ import annotations

from dataclasses import field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


class Risk(IntEnum):
    """Ordered: as strings, "CRITICAL" >= "HIGH" would be false."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    @classmethod
    def parse(cls, word: str) -> Risk:
        """Read a word of the seeds; `MED` is `MEDIUM`. Anything else is a KeyError."""
        upper = word.upper()
        return cls.MEDIUM if upper == "MED" else cls[upper]


READ_TAGS = frozenset({"fs.read", "database.read", "network.dns", "cloud.key_read"})
EFFECT_TAGS = frozenset(
    {
        "fs.write",
        "fs.delete",
        "fs.chmod",
        "network.http",
        "network.socket",
        "cloud.key_write",
        "cloud.resource_create",
        "cloud.resource_delete",
        "payments",
        "system.exec",
        "system.env",
        "database.write",
        "database.delete",
        "unknown",
    }
)
TAGS = READ_TAGS | EFFECT_TAGS


class Effect(Enum):
    """What a call does to the world, as the flow rules see it (C9.2)."""

    NONE = "none"
    LOCAL_WRITE = "local_write"
    EXTERNAL_READ = "external_read"
    EXTERNAL_WRITE = "external_write"
    EXEC = "exec"
    MONEY = "money"
    IDENTITY = "identity"
    __hash__ = object.__hash__


class Trust(Enum):
    """How far the operator trusts a source (C11.4)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What a call reaches, and the arguments that choose who, where and what."""

    effect: Effect = Effect.NONE
    targets: tuple[str, ...] = ()

    @property
    def external(self) -> bool:
        """Whether data given to the tool can leave the machine."""
        return self.effect in _EXTERNAL or bool(self.targets and self.effect is Effect.NONE)


_RUNNING = frozenset({Kind.AGENT, Kind.A2A})
_CALLING = _RUNNING | {Kind.EXTENSION}
_EXTERNAL = frozenset(
    {
        Effect.EXTERNAL_READ,
        Effect.EXTERNAL_WRITE,
        Effect.EXEC,
        Effect.MONEY,
        Effect.IDENTITY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of one source, classified. `wire_name` is assigned by the registry.

    Before that, an extension's or a skill's is what it would be called. Tools of one `lane` share
    its slots: `at_once` calls run, the rest wait. An `operation` is what can be called and is no
    tool (C1.6): it is reached by its id alone, and never listed. One that `hands_on` sends its
    arguments to an agent: what comes of that is not in its tags. `accepts` is the schema of one
    that takes more than it shows: what a program may add, and no model should. A `card` is all that
    an agent elsewhere says of itself; `via` are the nodes that it is listed by.
    """

    id: str
    kind: Kind
    source: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wire_name: str = ""
    aliases: tuple[str, ...] = ()
    risk: Risk = Risk.MEDIUM
    tags: frozenset[str] = frozenset({"unknown"})
    sink: Sink = Sink()
    labels: Labels = Labels.NONE
    trust: Trust = Trust.MEDIUM
    denied_tags: frozenset[str] = frozenset()
    requires_admin_token: bool = False
    enabled: bool = True
    hold: str = ""
    polls: bool = False
    idempotent: bool = False
    timeout: float | None = None
    lane: str = ""
    at_once: int = 0
    operation: bool = False
    hands_on: bool = False
    accepts: Mapping[str, Any] | None = None
    card: Mapping[str, Any] | None = None
    via: tuple[str, ...] = ()

    @property
    def effects(self) -> frozenset[str]:
        """The tags that change something; reads do not count (C11.2)."""
        return self.tags - READ_TAGS

    @property
    def only_reads(self) -> bool:
        """Whether nothing can come of a call but its result."""
        return not (self.effects or self.bounded_by_run or self.hands_on)

    @property
    def available(self) -> bool:
        """Switched on, and not held back because its definition changed."""
        return self.enabled and not self.hold

    @property
    def calls_on(self) -> bool:
        """Whether calls of its own can come of one: its clock stops while a person is asked."""
        return self.kind in _CALLING and not self.operation

    @property
    def actor(self) -> str:
        """Who waits in a chain while it runs: an agent, a peer, or the whole extension."""
        return f"{self.kind.value}:{self.source}" if self.kind is Kind.EXTENSION else self.id

    @property
    def bounded_by_run(self) -> bool:
        """Agents and peers are bounded by run budget and chain deadline, not by the tool limit."""
        return self.kind in _RUNNING and not self.operation
