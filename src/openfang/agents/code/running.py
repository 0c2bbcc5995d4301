"""One run of a code agent, from outside: its words, its questions and its calls."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.agents import Ended, Ending, Made, Wanted, Wish, Words
from openfang.core.errors import CallFailed, CallRefused, OpenFangError
from openfang.core.values import dataclass
from openfang.host.children.running import WAY_OUT, Running
from openfang.protocols.children import messages
from openfang.protocols.children.messages import (
    Asked,
    Called,
    Declined,
    Raised,
    Returned,
    Said,
    Streamed,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio import CancelScope

    from openfang.agents.code.allotted import Allotted
    from openfang.agents.ports import Incoming
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Message
    from openfang.core.progress import Listener, Told
    from openfang.core.results import Receipt, Result
    from openfang.host.children.running import Send

LOG = logging.getLogger("openfang.agents")
_NO_TIME: Final = "I stopped: the run has no more time left."

Ask: TypeAlias = "Callable[[str], Awaitable[str]]"
Call: TypeAlias = "Callable[[Wish], Awaitable[Result]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be answered, by whom, and with what at hand."""

    spec: AgentSpec
    incoming: Incoming
    call: Call
    told: Listener
    ask: Ask
    time: Allotted

    def begin(self, number: int) -> bytes:
        """Write that the run is to begin."""
        return messages.begin(number, _told(self.incoming))

    def running(self, number: int, send: Send) -> AgentRun:
        """Be the run from outside."""
        return AgentRun(number, self, send)

    def limited(self) -> CancelScope:
        """Give a scope that is left when the time is over."""
        return self.time.limited()


class AgentRun(Running[Ended]):
    """A run under way, of an agent."""

    log = LOG

    def __init__(self, number: int, order: Order, send: Send) -> None:
        super().__init__(number, send, order.spec.budget.at_once)
        self.name = order.spec.name
        self.who = f"The agent {self.name}"
        self._order = order
        self._said: list[str] = []

    def concluded(self, said: Said) -> None:
        """Take words, and the end."""
        match said:
            case Streamed(text):
                self._stream(text)
            case Returned(text=text):
                self._end(self._so_far if text is None else text, Ending.ANSWERED)
            case Declined(reason):
                self._end(reason, Ending.REJECTED)
            case Raised(reason, traceback):
                LOG.warning("The agent %s failed: %s\n%s", self.name, reason, traceback)
                self.fail(reason, WAY_OUT)
            case _:
                pass

    def late(self) -> Ended:
        """Answer with what was said so far."""
        return self._end(self._so_far or _NO_TIME, Ending.TIME)

    def told(self, told: Told) -> None:
        """Pass it on to whoever listens."""
        self._order.told(told)

    @property
    def _so_far(self) -> str:
        return "".join(self._said)

    def _end(self, text: str, ending: Ending) -> Ended:
        ended = Ended(answer=text, ending=ending, artifacts=tuple(self.artifacts))
        if not self.over.done():
            self.conclude(ended)
            self.told(ended)
        return ended

    def _stream(self, text: str) -> None:
        if self.takes(len(text)) and text:
            self._said.append(text)
            self.told(Words(text))

    async def answer(self, said: Called | Asked) -> bytes:
        """Make its call, or ask its question."""
        return await (self._made(said) if isinstance(said, Called) else self._asked(said))

    async def _asked(self, asked: Asked) -> bytes:
        try:
            with self._order.time.held():
                answer = await self._order.ask(asked.question)
        except OpenFangError as error:
            return messages.failure(self.number, asked.call, error)
        return messages.words(self.number, asked.call, answer)

    async def _made(self, called: Called) -> bytes:
        """Make a call; a refusal goes back to the agent, which may do without."""
        wish = Wish(
            id=f"{self._order.incoming.run}.{called.call}",
            tool=called.tool,
            arguments=called.arguments,
        )
        self.told(Wanted(wish))
        try:
            result = await self._order.call(wish)
        except OpenFangError as error:
            outcome = "refused" if isinstance(error, CallRefused) else "error"
            receipt = error.receipt if isinstance(error, CallFailed) else None
            self._tell(wish, outcome, error.message, receipt)
            return messages.failure(self.number, called.call, error)
        self._tell(wish, result.outcome.value, result.text, result.receipt)
        return messages.result(self.number, called.call, result)

    def _tell(self, wish: Wish, outcome: str, text: str, receipt: Receipt | None) -> None:
        self.told(Made(wish=wish, outcome=outcome, text=text, receipt=receipt))


def _told(incoming: Incoming) -> dict[str, Any]:
    return {
        "message": incoming.message,
        "message_id": incoming.message_id,
        "session": incoming.session,
        "parts": list(incoming.parts),
        "metadata": incoming.metadata,
        "history": [_turn(turn) for turn in incoming.history],
    }


def _turn(turn: Message) -> dict[str, Any]:
    return {
        "role": turn.speaker.value,
        "text": turn.text,
        "calls": [{"id": w.id, "tool": w.tool, "arguments": w.arguments} for w in turn.wishes],
        "answers": turn.answers,
        "is_error": turn.is_error,
    }
