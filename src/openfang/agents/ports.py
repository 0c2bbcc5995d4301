"""What agents are handed: where conversations stay, what thinks, and who runs their programs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openfang.agents.sessions import Interrupted
    from openfang.agents.spec import AgentSpec, Mind
    from openfang.core.agents import Asked, Ended, Message, Model, Usage, Wish
    from openfang.core.budgets import Reached
    from openfang.core.calls import Admitted, Call, Caller, Statements
    from openfang.core.labels import Labels
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.core.trace import Chain
    from openfang.core.usage import Entry, Payer, Spending

Invoke: TypeAlias = "Callable[[Call], Awaitable[Result]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """An open session: its end, as much as the agent remembers, and what it has come to carry."""

    id: str
    history: Sequence[Message]
    labels: Labels


class Busy(Exception):  # noqa: N818 - it reads as what it is
    """A run of another process is under way in the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """Where a run comes from: what whoever asked was bound to, and the task that it works on."""

    origin: str = ""
    task: str = ""


NOWHERE = Came()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is kept with the end of a run: last turns, and what was used up since the one before."""

    said: Sequence[Message] = ()
    entry: Entry | None = None


NO_REST = Rest()


class Sessions(Protocol):
    """Conversations, one for each agent, caller and name. What returned is durable."""

    async def find(self, agent: str, caller: str, name: str) -> str:
        """Give the id of a session: find it by its name, or begin one.

        What is an id already is looked for when it is opened.
        """
        ...

    async def open(self, agent: str, caller: str, name: str, *, most: int) -> Conversation:
        """Open one; of its messages the last, cut where a person speaks."""
        ...

    async def begin(
        self, session: str, run: str, message: Message, labels: Labels, came: Came = NOWHERE
    ) -> None:
        """Begin a run with what was said to the agent, and the labels that it came with.

        `Busy` while another process has a run there.
        """
        ...

    async def said(
        self, session: str, run: str, message: Message, entry: Entry | None = None
    ) -> None:
        """Keep a turn of a run, and what was used up until then."""
        ...

    def begun(self, run: str, wish: Wish) -> Statements:
        """Give what keeps that a call of a run is made, for the unit in which it begins."""
        ...

    async def reopen(self, interrupted: Interrupted, *, most: int) -> Conversation:
        """Open a session as it was before an interrupted run."""
        ...

    async def end(
        self,
        session: str,
        run: str,
        ended: Ended,
        labels: Labels,
        rest: Rest = NO_REST,
    ) -> None:
        """Keep how a run ended, its last turns, and what the conversation carries from now on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What is said to an agent, with all that came along."""

    message: str
    session: str
    run: str
    message_id: str = ""
    parts: Sequence[Mapping[str, Any]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    history: Sequence[Message] = ()


class Programs(Protocol):
    """Runs agents that are code."""

    async def answer(
        self,
        spec: AgentSpec,
        incoming: Incoming,
        *,
        call: Callable[[Wish], Awaitable[Result]],
        ask: Callable[[str], Awaitable[str]],
        told: Listener,
    ) -> Ended:
        """Hand a message to the agent's program and wait for its answer."""
        ...


class Handles(Protocol):
    """Results that a model holds without having read them."""

    async def keep(self, call: Call, result: Result) -> str:
        """Keep a result; what is returned stands for it."""
        ...

    async def find(self, call: Call, handle: str) -> tuple[str, Labels] | None:
        """Read the text of a result, and what it carries."""
        ...

    async def reveal(self, call: Call, handle: str, labels: Labels) -> None:
        """Let what a result carries enter the run, on record."""
        ...


class Budgets(Protocol):
    """Who pays for a run, and whether it may go on."""

    def payer(self, spec: AgentSpec, call: Call, run: str) -> Payer:
        """Say on whose account a run goes."""
        ...

    def holding(
        self, spec: AgentSpec, payer: Payer, chain: Chain
    ) -> Callable[[Usage], Awaitable[Reached | None]]:
        """Begin a run: what is returned finds a budget that is used up, given the run's usage."""
        ...

    def spent(self, spending: Spending, chain: Chain) -> None:
        """Hear of what was written down, and in which chain it was spent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What every agent is handed.

    `hear` keeps what somebody trusted said: for whom, in which conversation, and what. `thought` is
    told of each question to a model.
    """

    invoke: Invoke
    check: Callable[[Admitted], None]
    tools: Callable[[Caller], Sequence[Tool]]
    bind: Callable[[Caller, Call], Awaitable[Call]]
    model: Callable[[Mind], Model]
    sees: Callable[[Mind], bool]
    sessions: Sessions
    programs: Programs
    safe: Callable[[Wish], bool]
    budgets: Budgets
    interrupted: Mapping[str, Interrupted]
    client_known: Callable[[str], None]
    blob: Callable[[Call, str], Awaitable[bytes | None]]
    operate: Callable[[Admitted], Awaitable[Result]]
    ending: Callable[[], bool]
    hear: Callable[[str, str, str], None]
    handles: Handles
    thought: Callable[[Chain, Asked], None]
    now: Callable[[], int]
