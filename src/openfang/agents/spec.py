"""One agent as a value: who it is, what it thinks with, what it may reach and spend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openfang.agents.loop import Budget
from openfang.core.calls import Caller, Grants, Mode
from openfang.core.ids import Kind, tool_id

if TYPE_CHECKING:
    from pathlib import Path


NOTHING = Grants()
NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An agent that is code: a file beside its manifest, and what it runs with."""

    file: Path
    function: str = "run"
    python: str | None = None
    requirements: tuple[str, ...] = ()
    memory_bytes: int = 256 << 20
    cpu_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """An agent that is a model in a loop."""

    provider: str = "default"
    model: str = "default"
    system: str = ""
    max_tokens: int = 4096
    temperature: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What is known of an agent. Two that are equal are the same."""

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
    parent: str = ""

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
        )
