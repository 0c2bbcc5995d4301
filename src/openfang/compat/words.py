"""The seed's nouns, and how each says the same as one of ours."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from openfang.core.calls import Call, Context, Mode
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Tool
from openfang.core.values import dataclass
from openfang.policy.context import Wish

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_TOOL_SECONDS = 60.0
_MILLISECONDS = 1000


class ToolSource(StrEnum):
    """Where a tool comes from: the seed's three, and those of ours that it does not know."""

    EXTENSION = "extension"
    MCP = "mcp"
    BUILTIN = "builtin"
    AGENT = "agent"
    A2A = "a2a"
    CLIENT = "client"

    @property
    def kind(self) -> Kind:
        """Our word for it."""
        return next(kind for kind in Kind if kind.source_type == self.value)


class RiskLevel(IntEnum):
    """Ordered, and equal to our `Risk`; `RiskLevel("MED")` reads a word."""

    LOW = Risk.LOW
    MEDIUM = Risk.MEDIUM
    MED = Risk.MEDIUM
    HIGH = Risk.HIGH
    CRITICAL = Risk.CRITICAL

    @classmethod
    def _missing_(cls, value: object) -> RiskLevel | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescriptor:
    """A tool as the seed describes it."""

    tool_id: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    risk_level: RiskLevel = RiskLevel.MEDIUM
    side_effect_tags: Sequence[str] = ()
    requires_admin_token: bool = False
    source_type: ToolSource = ToolSource.MCP
    source_id: str = ""
    timeout_ms: int = int(_TOOL_SECONDS * _MILLISECONDS)
    enabled: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "risk_level", RiskLevel(self.risk_level))
        object.__setattr__(self, "source_type", ToolSource(self.source_type))

    @classmethod
    def of(cls, tool: Tool, *, limit: float = _TOOL_SECONDS) -> ToolDescriptor:
        """Describe one of our tools; `limit` is the timeout of one that has none of its own."""
        seconds = limit if tool.timeout is None else tool.timeout
        return cls(
            tool_id=tool.id,
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            risk_level=RiskLevel(tool.risk),
            side_effect_tags=sorted(tool.tags),
            requires_admin_token=tool.requires_admin_token,
            source_type=ToolSource(tool.kind.source_type),
            source_id=tool.source,
            timeout_ms=int(seconds * _MILLISECONDS),
            enabled=tool.available,
        )

    def as_tool(self) -> Tool:
        """Say what gates read in our words."""
        return Tool(
            id=self.tool_id,
            kind=self.source_type.kind,
            source=self.source_id,
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            risk=Risk(self.risk_level),
            tags=frozenset(self.side_effect_tags),
            requires_admin_token=self.requires_admin_token,
            enabled=self.enabled,
            timeout=self.timeout_ms / _MILLISECONDS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationContext:
    """What a caller wishes and claims. `session_id` names a run, for the loop guard."""

    mode: str = Mode.EXECUTION.value
    spec_frozen: bool = False
    spec_hash: str | None = None
    project_id: str | None = None
    policy_blacklist: Collection[str] = ()
    admin_token: str | None = field(default=None, repr=False)
    task_id: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", Mode(self.mode).value)

    @classmethod
    def of(cls, call: Call, *, spec_frozen: bool) -> InvocationContext:
        """Show one of our calls to a gate of the seed's form."""
        context = call.context
        return cls(
            mode=context.mode.value,
            spec_frozen=spec_frozen,
            spec_hash=context.spec_hash,
            project_id=context.project,
            policy_blacklist=context.blacklist,
            admin_token=call.admin_token,
            task_id=context.task_id,
            session_id=call.run,
        )

    @property
    def wish(self) -> Wish:
        """What a call may ask for. `spec_frozen` is no wish: it is looked up.

        Neither is `execution`: it is what the seed means by saying nothing.
        """
        return Wish(
            mode=Mode.PLANNING if self.mode == Mode.PLANNING.value else None,
            project_id=self.project_id,
            spec_hash=self.spec_hash,
            task_id=self.task_id,
            blacklist=frozenset(self.policy_blacklist),
        )

    @property
    def as_it_stands(self) -> Context:
        """The context of a call if all of it were true."""
        return Context(
            mode=Mode(self.mode),
            project=self.project_id,
            spec_hash=self.spec_hash,
            task_id=self.task_id,
            blacklist=frozenset(self.policy_blacklist),
        )


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a gate, or all of them, say to a call."""

    allowed: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call brought back, or why it brought nothing.

    `payload` is the structured answer, else the text, else the list of parts. `metadata` is the
    object that the HTTP API answers (a problem, for a refusal).
    """

    success: bool = False
    payload: Any = None
    error: str | None = None
    invocation_id: str = ""
    declared_side_effects: Sequence[str] = ()
    duration_ms: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class HealthStatus(StrEnum):
    """How a server is."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPTool:
    """A tool as its server describes it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPResult:
    """What a call brought back; one that was refused, or failed, is an error that says why."""

    content: Sequence[Mapping[str, Any]] = ()
    structured_content: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """All of its text."""
        return "\n".join(part["text"] for part in self.content if part.get("type") == "text")
