"""One run of a code agent, from outside: what it says is passed on, what it asks for is done."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from anyio import Semaphore

from openfang.agents.code import messages
from openfang.agents.code.messages import (
    Advanced,
    Asked,
    Called,
    Declined,
    Logged,
    Produced,
    Raised,
    Returned,
    Said,
    Stopped,
    Streamed,
    Unreadable,
)
from openfang.core.agents import Artifact, Ended, Ending, Made, Wanted, Wish, Words
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, SourceFailed
from openfang.core.progress import Progress
from openfang.host.lines import Gone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from openfang.agents.code.allotted import Allotted
    from openfang.agents.ports import Incoming
    from openfang.agents.spec import AgentSpec
    from openfang.core.progress import Listener
    from openfang.core.results import Receipt, Result

LOG = logging.getLogger("openfang.agents")
MOST_MESSAGES: Final = 100_000
MOST_TEXT: Final = 10_000_000
MOST_ARTIFACTS: Final = 100
MOST_WAITING: Final = 1000
_WAY_OUT: Final = "what it raised is in the log: of a daemon, logs/daemon.log in the home"

Ask: TypeAlias = "Callable[[str], Awaitable[str]]"
Call: TypeAlias = "Callable[[Wish], Awaitable[Result]]"
Send: TypeAlias = "Callable[[bytes], Awaitable[None]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be answered, by whom, and with what at hand."""

    spec: AgentSpec
    incoming: Incoming
    call: Call
    told: Listener
    ask: Ask
    time: Allotted


class Running:
    """A run under way. `over` gets its ending, or the error that it ended with.

    `ended` says whether the process knows of that, too.
    """

    def __init__(self, number: int, order: Order, send: Send, tasks: TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.over: asyncio.Future[Ended | OpenFangError] = loop.create_future()
        self.ended = False
        self._order = order
        self._told = order.told
        self._send = send
        self._tasks = tasks
        self._slots = Semaphore(order.spec.budget.at_once)
        self._waiting = 0
        self._said: list[str] = []
        self._artifacts: list[Artifact] = []
        self._messages = 0
        self._room = MOST_TEXT

    def heard(self, said: Said) -> None:
        """Take what it says."""
        self.ended = self.ended or isinstance(said, Returned | Declined | Raised | Stopped)
        self._messages += 1
        if self._messages > MOST_MESSAGES:
            self.fail(f"it sent more than {MOST_MESSAGES} messages in one run")
        if self.over.done():
            return
        match said:
            case Streamed(text):
                self._stream(text)
            case Called() | Asked():
                self._serve(said)
            case Advanced(done, total, message):
                self._told(Progress(progress=done, total=total, message=message))
            case Produced(artifact):
                self._produce(artifact)
            case Logged(text):
                LOG.info("%s: %s", self._order.spec.name, text)
            case _:
                self._end(said)

    def _end(self, said: Said) -> None:
        match said:
            case Returned(text):
                self.end(self.so_far if text is None else text, Ending.ANSWERED)
            case Declined(reason):
                self.end(reason, Ending.REJECTED)
            case Raised(reason, traceback):
                LOG.warning("The agent %s failed: %s\n%s", self._order.spec.name, reason, traceback)
                self.fail(reason, _WAY_OUT)
            case Unreadable(reason):
                self.fail(f"it sent a message that cannot be read. {reason}")
            case Stopped():
                self.fail("the run was stopped")
            case _:
                pass

    @property
    def so_far(self) -> str:
        """What was streamed."""
        return "".join(self._said)

    def end(self, text: str, ending: Ending) -> Ended:
        """Say how it ended; only the first word counts."""
        ended = Ended(answer=text, ending=ending, artifacts=tuple(self._artifacts))
        if not self.over.done():
            self.over.set_result(ended)
            self._told(ended)
        return ended

    def fail(self, reason: str, way_out: str = "") -> None:
        """Say that it failed, and why."""
        if not self.over.done():
            sentence = f"The agent {self._order.spec.name} failed: {reason}"
            self.over.set_result(SourceFailed(sentence, way_out=way_out))

    def _stream(self, text: str) -> None:
        if self._takes(len(text)) and text:
            self._said.append(text)
            self._told(Words(text))

    def _produce(self, artifact: Artifact) -> None:
        size = len(messages.encode({"parts": list(artifact.parts)}))
        if len(self._artifacts) >= MOST_ARTIFACTS:
            self.fail(f"it made more than {MOST_ARTIFACTS} artifacts in one run")
        elif self._takes(size):
            self._artifacts.append(artifact)

    def _takes(self, size: int) -> bool:
        self._room -= size
        if self._room < 0:
            self.fail(f"it said more than {MOST_TEXT} characters in one run")
        return self._room >= 0

    def _serve(self, said: Called | Asked) -> None:
        self._waiting += 1
        if self._waiting > MOST_WAITING:
            self.fail(f"more than {MOST_WAITING} of its calls wait at once")
        else:
            self._tasks.start_soon(self._answer, said)

    async def _answer(self, said: Called | Asked) -> None:
        try:
            async with self._slots:
                line = await (self._made(said) if isinstance(said, Called) else self._asked(said))
            with suppress(Gone):
                await self._send(line)
        finally:
            self._waiting -= 1

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
        self._told(Wanted(wish))
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
        self._told(Made(wish=wish, outcome=outcome, text=text, receipt=receipt))
