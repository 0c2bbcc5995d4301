"""One run in a warm child, from outside: what it says is passed on, what it asks for is done."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from anyio import Semaphore

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.progress import Progress
from openfang.host.lines import Gone
from openfang.protocols.children.messages import (
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
    Unreadable,
    encode,
)

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from openfang.core.agents import Artifact
    from openfang.core.progress import Told

MOST_MESSAGES: Final = 100_000
MOST_TEXT: Final = 10_000_000
MOST_ARTIFACTS: Final = 100
MOST_WAITING: Final = 1000
WAY_OUT: Final = "what it raised is in the log: of a daemon, logs/daemon.log in the home"

Send: TypeAlias = "Callable[[bytes], Awaitable[None]]"
Outcome = TypeVar("Outcome")


class Running(ABC, Generic[Outcome]):
    """A run under way. `over` gets its ending, or the error that it ended with.

    `ended` says whether the process knows of that, too. It makes `at_once` calls at a time;
    `stirred` is done when the first is wanted, or when it is over: most runs want none.
    """

    who: str
    name: str
    log: logging.Logger

    def __init__(self, number: int, send: Send, at_once: int) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.over: asyncio.Future[Outcome | OpenFangError] = loop.create_future()
        self.stirred: asyncio.Future[None] = loop.create_future()
        self.ended = False
        self.artifacts: list[Artifact] = []
        self._send = send
        self._tasks: TaskGroup | None = None
        self._early: list[Called | Asked] = []
        self._at_once = at_once
        self._slots: Semaphore | None = None
        self._waiting = 0
        self._messages = 0
        self._room = MOST_TEXT

    @abstractmethod
    def concluded(self, said: Said) -> None:
        """Take what only this kind of run can say."""

    @abstractmethod
    async def answer(self, said: Called | Asked) -> bytes:
        """Do what it asks for, and write the answer."""

    @abstractmethod
    def late(self) -> Outcome | OpenFangError:
        """Say what becomes of it when its time is over."""

    @abstractmethod
    def told(self, told: Told) -> None:
        """Pass on how far it has got."""

    def heard(self, said: Said) -> None:
        """Take what it says."""
        self.ended = self.ended or isinstance(said, Returned | Declined | Raised | Stopped)
        self._messages += 1
        if self._messages > MOST_MESSAGES:
            self.fail(f"it sent more than {MOST_MESSAGES} messages in one run")
        if self.over.done():
            return
        match said:
            case Called() | Asked():
                self._serve(said)
            case Advanced(done, total, message):
                self.told(Progress(progress=done, total=total, message=message))
            case Produced(artifact):
                self._produce(artifact)
            case Logged(text):
                self.log.info("%s: %s", self.name, text)
            case Unreadable(reason):
                self.fail(f"it sent a message that cannot be read. {reason}")
            case Stopped():
                self.fail("the run was stopped")
            case _:
                self.concluded(said)

    def conclude(self, outcome: Outcome | OpenFangError) -> None:
        """Say how it ended; only the first word counts."""
        if not self.over.done():
            self.over.set_result(outcome)
            self._stir()

    def _stir(self) -> None:
        if not self.stirred.done():
            self.stirred.set_result(None)

    @property
    def wants(self) -> bool:
        """Whether it has asked for something that nobody attends to yet."""
        return bool(self._early)

    def attend(self, tasks: TaskGroup) -> None:
        """Serve what it asks for, from now on and from before."""
        self._tasks = tasks
        for said in self._early:
            tasks.start_soon(self._answer, said)

    def fail(self, reason: str, way_out: str = "") -> None:
        """Say that it failed, and why."""
        self.conclude(SourceFailed(f"{self.who} failed: {reason}", way_out=way_out))

    def takes(self, size: int) -> bool:
        """Count what it says; too much of it fails the run."""
        self._room -= size
        if self._room < 0:
            self.fail(f"it said more than {MOST_TEXT} characters in one run")
        return self._room >= 0

    def _produce(self, artifact: Artifact) -> None:
        size = len(encode({"parts": list(artifact.parts)}))
        if len(self.artifacts) >= MOST_ARTIFACTS:
            self.fail(f"it made more than {MOST_ARTIFACTS} artifacts in one run")
        elif self.takes(size):
            self.artifacts.append(artifact)

    def _serve(self, said: Called | Asked) -> None:
        self._waiting += 1
        if self._waiting > MOST_WAITING:
            self.fail(f"more than {MOST_WAITING} of its calls wait at once")
        elif self._tasks is None:
            self._early.append(said)
            self._stir()
        else:
            self._tasks.start_soon(self._answer, said)

    async def _answer(self, said: Called | Asked) -> None:
        if self._slots is None:
            self._slots = Semaphore(self._at_once)
        try:
            async with self._slots:
                line = await self.answer(said)
            with suppress(Gone):
                await self._send(line)
        finally:
            self._waiting -= 1
