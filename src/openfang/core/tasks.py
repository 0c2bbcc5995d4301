"""A task: work for an agent that outlives its request, what may become of it, and what happened."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from openfang.core.labels import Labels
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from openfang.core.results import Part
    from openfang.core.session import Options

MOST_TASKS: Final = 100
"""So many fit on a page."""
ANSWER: Final = "tasks/answer"
"""The operation of an agent by which a task is given what it waits for."""
RESPONSE: Final = "response"
"""The artifact that an agent's own words are, where results are artifacts."""


class TaskState(Enum):
    """How far a task has got. A final state is never left."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    REJECTED = "rejected"

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self in _FINAL

    @property
    def waiting(self) -> bool:
        """Whether it is the caller's turn."""
        return self in _WAITING

    @property
    def resting(self) -> bool:
        """Whether whoever waits for the task has waited long enough."""
        return self.final or self.waiting

    def may_become(self, other: TaskState) -> bool:
        """Whether the other may follow."""
        return other in _MOVES[self]


_FINAL: Final = frozenset(
    {TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED, TaskState.REJECTED}
)
_WAITING: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
_UNDER_WAY: Final = frozenset({TaskState.WORKING}) | _WAITING | _FINAL
_MOVES: Final[Mapping[TaskState, frozenset[TaskState]]] = {
    TaskState.SUBMITTED: _UNDER_WAY,
    TaskState.WORKING: _UNDER_WAY,
    TaskState.INPUT_REQUIRED: _UNDER_WAY,
    TaskState.AUTH_REQUIRED: _UNDER_WAY,
    **{state: frozenset[TaskState]() for state in _FINAL},
}


class Role(Enum):
    """Who says it."""

    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMessage:
    """Something said in a task.

    A part is `{"type": "text", "text"}`, `{"type": "file", "name", "mime_type", "data"}` with the
    content in base 64 (or `uri` in the place of `data`), or `{"type": "data", "data"}` with any
    JSON; `mime_type` and `metadata` may stand in each.
    """

    id: str
    role: Role
    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extensions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All text parts, joined."""
        texts = (part.get("text") for part in self.parts if part.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskArtifact:
    """Something that came out of a task, in parts like those of a message."""

    id: str
    name: str
    parts: tuple[Part, ...]
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Given:
    """What a form was filled with, and what that carries."""

    content: Mapping[str, Any]
    labels: Labels = Labels.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it is. `version` is the number of the last thing that happened to it.

    `context` is the conversation as the caller names it, `session` the id under which it is kept.
    `status` is what was said with the state: a question, or why it ended; it is not in `history`.
    `form` is what it waits for, and `given` what it got just now: neither is told to anybody, but
    it may wait in one process and be answered in another.
    """

    id: str
    agent: str
    caller: str
    context: str
    session: str
    state: TaskState
    status: TaskMessage | None = None
    history: tuple[TaskMessage, ...] = ()
    artifacts: tuple[TaskArtifact, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: Labels = Labels.NONE
    form: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    given: Given | None = field(default=None, repr=False, compare=False)
    version: int = 1
    created_at: int = 0
    changed_at: int = 0

    def moved(self, to: Moved, at: int) -> Task:
        """The task in another state; what was said with the one before becomes history."""
        said = () if self.status is None else (self.status,)
        return replace(
            self,
            state=to.state,
            status=to.status,
            history=(*self.history, *said, *to.said),
            artifacts=(*self.artifacts, *to.artifacts),
            metadata={**self.metadata, **to.metadata} if to.metadata else self.metadata,
            labels=self.labels | to.labels,
            form=to.form,
            given=to.given,
            version=self.version + 1,
            changed_at=at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A change of state, with all that comes with it: `said` goes to the history.

    `metadata` is what is told of the task from now on, beside what its caller told. `form` is what
    it waits for from now on, and `given` what it waited for until now.
    """

    state: TaskState
    status: TaskMessage | None = None
    said: tuple[TaskMessage, ...] = ()
    artifacts: tuple[TaskArtifact, ...] = ()
    labels: Labels = Labels.NONE
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    form: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    given: Given | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A piece of the answer while it is being written: the next one is appended to it."""

    text: str
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate:
    """Something that happened to a task. What is only `Spoken` is told, not kept, and has no `n`.

    `task` is the task as it is after it.
    """

    task: Task
    what: Moved | Spoken
    at: int
    n: int = 0


Seen: TypeAlias = "Task | TaskUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message to an agent. `task` is one that asked for it, `context` the conversation it is in.

    The same message of the same caller, by its id, is taken once.
    """

    agent: str
    message: TaskMessage
    context: str = ""
    task: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    push: Push | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """Who wants to be told of what happens to a task, and how. `dialect` is how it is told.

    `scheme` and `credentials` are what the request is authenticated by; `token` is told along.
    """

    id: str
    task: str
    url: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
    dialect: str = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks are listed: newest change first, behind a cursor."""

    agent: str = ""
    context: str = ""
    state: TaskState | None = None
    since: int | None = None
    after: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage:
    """Some of `total` tasks; `after` is where the rest begins, if there is any."""

    tasks: Sequence[Task]
    total: int
    after: str = ""


class Tasks(Protocol):
    """What one caller can do with tasks. Another caller's do not exist: `NotFound`."""

    async def send(self, sent: Sent, options: Options) -> Task:
        """Take a message: a new task, or the answer that one waited for. Returns at once.

        The task is kept by then. `NotFound`: no such agent or task. `Conflict`: the task has ended,
        or is not waiting for anything. `Rejected`: there is no room, or the message makes no sense.
        """
        ...

    async def settled(self, task_id: str) -> Task:
        """Wait until it has ended, or waits for its caller."""
        ...

    def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell the task as it is, then all that happens to it, until it has ended."""
        ...

    async def get(self, task_id: str) -> Task:
        """Read one."""
        ...

    async def page(self, wanted: TaskFilter) -> TaskPage:
        """List them."""
        ...

    async def cancel(self, task_id: str) -> Task:
        """End it, and the work on it. `Conflict`: it has ended already."""
        ...

    async def events(self, task_id: str) -> Sequence[tuple[int, int, TaskState]]:
        """Tell its states in order: number, time, state."""
        ...

    async def set_push(self, push: Push) -> Push:
        """Let somebody be told of what happens to it; one of the same id is replaced."""
        ...

    async def pushes(self, task_id: str) -> Sequence[Push]:
        """List who is told."""
        ...

    async def delete_push(self, task_id: str, push_id: str) -> None:
        """Tell them no longer; one that is not there is no error."""
        ...
