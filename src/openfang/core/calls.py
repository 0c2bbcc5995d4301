"""A call: who wants what from which tool, on whose behalf, until when, with what attached."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.trace import Chain, new_chain
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.clients import Attended, Client
    from openfang.core.deadline import Pause
    from openfang.core.progress import Listener
    from openfang.core.tools import Tool


Statements: TypeAlias = "tuple[tuple[str, Sequence[Any]], ...]"
FOREVER: Final = float("inf")
"""The patience of a call for which nobody holds a connection: it waits for the answer."""


class Mode(Enum):
    """While planning, nothing with a side effect runs (gate 2)."""

    PLANNING = "planning"
    EXECUTION = "execution"


class Role(Enum):
    """What a caller may do with the node itself, beside its calls."""

    USER = "user"
    AUDITOR = "auditor"
    APPROVER = "approver"
    ADMIN = "admin"


@value
class Grants:
    """What a caller may reach. Nothing granted means nothing allowed; `"*"` must be written.

    `agents` are those that it may call; None, for who is no agent itself, means as `tools` says.
    `closed` are paths of its workspace that stay closed to it all the same.
    """

    tools: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    memory_read: tuple[str, ...] = ()
    memory_write: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None
    agent_spawn: bool = False
    agent_kill: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


EVERYTHING = Grants(  # noqa: S604 - a grant, not a shell
    tools=("*",),
    network=("*",),
    shell=("*",),
    memory_read=("*",),
    memory_write=("*",),
)


@value
class Bounds:
    """What a caller may use at most, beside what the node allows; None is no bound of its own.

    `tool_calls` are calls to plain tools in one run, each of at most `tool_seconds`.
    """

    tool_calls: int | None = None
    calls_per_minute: int | None = None
    tool_seconds: float | None = None


UNBOUNDED = Bounds()


class Within(Protocol):
    """A selection of tools: for who comes in by it, there are no others."""

    def holds(self, tool: Tool) -> bool:
        """Whether the tool is one of them."""
        ...


@value
class Caller:
    """Who calls, as the credential says: never taken from a body.

    `within` is the selection whose address was used, if one was.
    """

    id: str
    role: Role = Role.USER
    grants: Grants = Grants()
    mode: Mode = Mode.EXECUTION
    projects: tuple[str, ...] = ()
    spec: str | None = None
    blacklist: frozenset[str] = frozenset()
    cells_per_minute: int | None = None
    bounds: Bounds = UNBOUNDED
    within: Within | None = field(default=None, compare=False, repr=False)

    @property
    def admin(self) -> bool:
        """Whether it manages the node."""
        return self.role is Role.ADMIN

    @property
    def space(self) -> str:
        """The name of the caller's own workspace and memory."""
        return self.id.replace(":", "-").replace("/", "-")


@value
class Excess:
    """A wish for more than is bound to the caller: the pipeline refuses the call for it."""

    rule: str
    message: str
    way_out: str


@value
class Context:
    """What the gates read, chosen among what is bound to the caller, or tighter (C7.7)."""

    mode: Mode = Mode.EXECUTION
    project: str | None = None
    spec_hash: str | None = None
    task_id: str | None = None
    blacklist: frozenset[str] = frozenset()
    excess: Excess | None = None


@value
class Papers:
    """What a call may show beside its caller, as it was found: right before the gates read it.

    `projects` are those for which its spec is frozen, `tools` those that its admin token opens.
    """

    projects: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()

    def frozen_for(self, project: str | None) -> bool:
        """Whether the spec is frozen for this project; without one, for any."""
        return project in self.projects if project is not None else bool(self.projects)


NO_PAPERS: Final = Papers()


@value
class Call:
    """One call on its way. A step deeper is `replace(...)` with a deeper chain.

    `client` can be asked while the call runs; those that it leads to may ask as well. `resumes` is
    the run of an agent that another process began and did not end. `asker` is who began the chain,
    if that is somebody else; `sessions` are the conversations that wait further up in it. `task` is
    the one that this call is the work on. `papers` are what the gates go by, and nobody sends them:
    the path looks them up. `meta` is what the caller wants a peer that serves this
    call to know besides. `peer` is who made the call, if that is an agent or a node elsewhere.
    `beside` are statements that are written in the unit in which its start is recorded: they hold
    if, and only if, it was made. `pause` stops the time of those who wait. What comes of a call
    stays `apart` from the run, if it comes from outside: who made it lets nobody read it unasked.
    `step` names it among all calls, and the same way when it is made again: whoever serves it can
    tell by that.
    """

    tool: str
    caller: Caller
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Context = Context()
    chain: Chain = field(default_factory=new_chain)
    run: str | None = None
    labels: Labels = Labels.NONE
    admin_token: str | None = field(default=None, repr=False)
    papers: Papers = field(default=NO_PAPERS, compare=False, repr=False)
    edge: str = "api"
    patience: float = 0.0
    progress: Listener | None = field(default=None, compare=False, repr=False)
    client: Client | None = field(default=None, compare=False, repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    resumes: str = ""
    task: str = ""
    asker: str = ""
    sessions: tuple[str, ...] = ()
    peer: str = ""
    beside: Statements = field(default=(), compare=False, repr=False)
    pause: Pause | None = field(default=None, compare=False, repr=False)
    apart: bool = False
    step: str = ""
    id: str = field(default_factory=lambda: new_id("call"))

    @property
    def root(self) -> str:
        """Who began the chain: what is kept for somebody is kept for them."""
        return self.asker or self.caller.id

    @property
    def run_id(self) -> str | None:
        """The run this call belongs to, else its shared trace, else none: never a loop (C10.1).

        Who begins a chain names its own runs: one of the same name is another caller's own.
        """
        if self.run is not None:
            return self.run if self.asker else f"{self.caller.id}/{self.run}"
        chain = self.chain
        return f"trace:{chain.starry_id or chain.trace_id}" if chain.shared else None

    def child(self, tool: str, arguments: Mapping[str, Any], *, ancestor: str) -> Call:
        """Make the call that `ancestor` makes while it serves this one."""
        waited = self.pause.waited if self.pause is not None else 0.0
        return replace(
            self,
            id=new_id("call"),
            tool=tool,
            arguments=arguments,
            chain=self.chain.later(waited).deeper(ancestor),
            admin_token=None,
            papers=NO_PAPERS,
            progress=None,
            meta={},
            resumes="",
            task="",
            apart=False,
            step="",
            asker=self.root,
            peer="",
            beside=(),
        )


@value
class Admitted:
    """A call that may run: its tool, its deadline, and the stamp that sources check."""

    call: Call
    tool: Tool
    stamp: bytes
    timeout: float
    labels: Labels = Labels.NONE
    progress: Listener | None = field(default=None, compare=False, repr=False)
    client: Attended | None = field(default=None, compare=False, repr=False)
