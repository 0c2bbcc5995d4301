"""A conversation with an agent: who said what, what a model is asked and says, what it cost."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from openfang.core.budgets import Reached
    from openfang.core.results import Receipt
    from openfang.core.tools import Tool


class Speaker(Enum):
    """Who said it."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A call that a model wants made. `id` binds its result to it.

    `unread` is what the model wrote in the place of arguments, where nobody can read it: such a
    call is never made.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture that came with a message."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. The agent's may hold wishes; a tool's is the result of the wish `answers`."""

    speaker: Speaker
    text: str = ""
    wishes: tuple[Wish, ...] = ()
    answers: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used up."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )

    @property
    def tokens(self) -> int:
        """Both ways together."""
        return self.input_tokens + self.output_tokens


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is asked: everything, each time."""

    system: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[Tool] = ()
    max_tokens: int = 4096
    temperature: float = 0.7


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is to be made before the model goes on."""

    wish: Wish


class Stop(Enum):
    """Why a model said no more: it was done, it had no room left, or it would not."""

    DONE = "done"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Spent:
    """What the request cost, and why it ended; the last thing that a model says."""

    usage: Usage
    stop: Stop = Stop.DONE


Said: TypeAlias = Words | Wanted | Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question to a model that is over: what it took, and what it failed with, if it did."""

    model: str
    seconds: float
    usage: Usage
    error: str = ""


class Model(Protocol):
    """What an agent thinks with."""

    @property
    def name(self) -> str:
        """How it is named to people."""
        ...

    def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer piece by piece; close it to stop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call that was made, and how it ended."""

    wish: Wish
    outcome: str
    text: str
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Something that was made on the way: named, in parts like those of a result."""

    name: str
    parts: tuple[Mapping[str, Any], ...] = ()


class Ending(Enum):
    """Why a run ended."""

    ANSWERED = "answered"
    STEPS = "steps"
    TOKENS = "tokens"
    COST = "cost"
    TIME = "time"
    LENGTH = "length"
    REJECTED = "rejected"
    CALLS = "calls"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a run: the whole answer, why there is no more of it, and what it cost.

    `wishes` are calls that the caller is asked to make itself, before the agent goes on. `why` says
    why there is no more of it in words, where more is known than the ending; `budget` is the one
    that ended it.
    """

    answer: str
    ending: Ending = Ending.ANSWERED
    why: str = ""
    usage: Usage = Usage()
    artifacts: tuple[Artifact, ...] = ()
    wishes: tuple[Wish, ...] = ()
    budget: Reached | None = None


Heard: TypeAlias = Words | Wanted | Made | Ended
