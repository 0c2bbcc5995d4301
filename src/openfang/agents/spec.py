"""One agent as a value: who it is, what it thinks with, what it may reach and spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from openfang.agents.loop import Budget
from openfang.agents.models.providers import Choice
from openfang.agents.models.routed import NO_ROUTES, Routes
from openfang.core.calls import Caller, Grants, Mode
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass
from openfang.policy.grants import held_to

if TYPE_CHECKING:
    from pathlib import Path


Sandbox: TypeAlias = Literal["required", "auto", "off"]
NOTHING = Grants()
NO_BUDGET = Budget()
NO_CHOICE = Choice()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An agent that is code: a file in its folder, and what it runs with.

    `folder` is that of its manifest, if the file lies deeper.
    """

    file: Path
    folder: Path | None = None
    function: str = "run"
    python: str | None = None
    requirements: tuple[str, ...] = ()
    memory_bytes: int = 256 << 20
    cpu_seconds: float = 30.0
    sandbox: Sandbox = "required"

    @property
    def root(self) -> Path:
        """The folder of all that is its code."""
        return self.folder or self.file.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """An agent that is a model in a loop. `window` is what it is given to read, in tokens.

    `fallbacks` stand in for its model, in this order; a step has `seconds` with each of them.
    `handles` is whether results from outside are shown only when it asks for them.
    """

    choice: Choice = NO_CHOICE
    fallbacks: tuple[Choice, ...] = ()
    routes: Routes = NO_ROUTES
    seconds: float = 120.0
    system: str = ""
    max_tokens: int = 4096
    temperature: float = 0.7
    window: int = 100_000
    handles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """What of the tools and resources within its reach others see over MCP, by pattern."""

    tools: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


NO_EXPORTS = Exports()


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """Whose messages an agent takes, of other agents', and how long they may be, in bytes."""

    senders: tuple[str, ...] | None = None
    bytes: int = 1 << 20


TAKES_ALL = Takes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What an agent does without being asked: by the clock, and when something happens.

    `quiet` is when it does not start by the clock, as a cron expression.
    """

    schedule: str = ""
    message: str = ""
    events: tuple[str, ...] = ()
    quiet: str = ""


ONLY_ASKED = Acts()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What is known of an agent. Two that are equal are the same.

    One that was started by somebody has a `parent`, and a `life` that tells it from all others that
    ever had its name. `runs` is how many tasks of it all nodes work on at once, if it says.
    """

    name: str
    title: str = ""
    description: str = ""
    version: str = "0.1.0"
    tags: tuple[str, ...] = ()
    does: Mind | Program = Mind()
    grants: Grants = NOTHING
    mode: Mode = Mode.EXECUTION
    projects: tuple[str, ...] = ()
    spec: str | None = None
    blacklist: frozenset[str] = frozenset()
    workspace: Path
    budget: Budget = NO_BUDGET
    history: int = 20
    allow_reentry: bool = False
    exports: Exports = NO_EXPORTS
    parent: str = ""
    life: str = ""
    shares_memory: bool = False
    takes: Takes = TAKES_ALL
    acts: Acts = ONLY_ASKED
    runs: int | None = None

    @property
    def place(self) -> str:
        """Under which name its sessions and memories are kept: no later agent finds them there."""
        return f"{self.name}~{self.life}" if self.life else self.name

    @property
    def id(self) -> str:
        """Its canonical id, as caller and as tool."""
        return tool_id(Kind.AGENT, self.name)

    @property
    def caller(self) -> Caller:
        """The agent as the one who calls."""
        return Caller(
            id=self.id,
            grants=self.grants,
            mode=self.mode,
            projects=self.projects,
            spec=self.spec,
            blacklist=self.blacklist,
            bounds=self.budget.bounds,
        )


def both(one: AgentSpec, other: AgentSpec) -> Caller:
    """The agent as the one who calls, if it may do only what both of these allow."""
    if one is other:
        return one.caller
    return held_to(other.caller, one.caller)
