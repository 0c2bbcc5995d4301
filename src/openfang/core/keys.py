"""Keys, admin tokens, specs and questions: what is bound to a caller, and what a person decided."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import EVERYTHING, Caller, Grants, Mode, Role
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

EDGES = frozenset({"api", "mcp", "a2a", "web", "openai"})
_ANY: Final = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A named key. What the gates read is bound to it (C7.7).

    `toolsets` and `agents` are those that it opens, by name; `"*"` is any.
    """

    id: str
    name: str
    role: Role = Role.USER
    edges: tuple[str, ...] = _ANY
    toolsets: tuple[str, ...] = _ANY
    agents: tuple[str, ...] = _ANY
    grants: Grants = EVERYTHING
    mode: Mode = Mode.EXECUTION
    projects: tuple[str, ...] = ()
    spec: str | None = None
    blacklist: frozenset[str] = frozenset()
    cells_per_minute: int | None = None
    budget_usd_per_day: float | None = None
    created_at: int = 0
    expires_at: int | None = None
    revoked_at: int | None = None

    @property
    def bound(self) -> bool:
        """Whether it opens some toolsets or some agents only."""
        return "*" not in self.toolsets or "*" not in self.agents

    def opens(self, edge: str) -> bool:
        """Whether it is good for this edge."""
        return "*" in self.edges or edge in self.edges

    def caller(self) -> Caller:
        """Who calls with this key."""
        return Caller(
            id=f"key:{self.name}",
            role=self.role,
            grants=self.grants,
            mode=self.mode,
            projects=self.projects,
            spec=self.spec,
            blacklist=self.blacklist,
            cells_per_minute=self.cells_per_minute,
        )


def opened(
    toolsets: Iterable[str] | None, agents: Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say which toolsets and which agents a new key opens: any, or those that are named.

    A key for one agent opens no toolset, unless that is named too; nor the other way round.
    """
    unsaid = _ANY if toolsets is None and agents is None else ()
    return (
        unsaid if toolsets is None else tuple(toolsets),
        unsaid if agents is None else tuple(agents),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminToken:
    """A second credential, for gate 6: it opens tools, it does not manage the node."""

    id: str
    name: str
    tools: tuple[str, ...] = ("*",)
    created_at: int = 0
    expires_at: int | None = None
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A plan that was frozen: a call names it by its hash."""

    hash: str
    project: str
    name: str
    frozen_by: str
    frozen_at: int


class Answer(Enum):
    """The states of a question."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    SPENT = "spent"


class Scope(Enum):
    """How far an approval reaches."""

    ONCE = "once"
    SESSION = "session"
    RULE = "rule"


class Way(Enum):
    """The ways by which an answer comes."""

    CLI = "cli"
    API = "api"
    WEB = "web"
    WEBHOOK = "webhook"
    CLIENT = "client"
    A2A = "a2a"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked, bound to caller, tool, arguments and time.

    `root` is who began the chain that the call is part of; `about` is what a person may want to
    know besides: the verdicts, what the call carries, how it came here.
    """

    id: str
    caller: str
    tool: str
    arguments_hash: str
    run: str
    rule: str
    reason: str
    arguments: str
    state: Answer
    scope: Scope
    asked_at: int
    expires_at: int
    answered_at: int | None = None
    answered_by: str | None = None
    via: Way | None = None
    root: str = ""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def askers(self) -> frozenset[str]:
        """Who wants it: whoever makes the call, and whoever began the chain."""
        return frozenset({self.caller, self.root} - {""})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFilter:
    """Which questions are wanted, newest first; `after` is the last id of the page before.

    `state` is one of `pending`, `approved`, `denied`, `spent`, `expired`, or `all`.
    """

    state: str = "pending"
    caller: str = ""
    tool: str = ""
    after: str = ""
    limit: int = 1000


OPEN: Final = QuestionFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """Some questions, how many there are in all, and what comes `after` them, if anything does."""

    questions: Sequence[Question]
    total: int
    next: str = ""
