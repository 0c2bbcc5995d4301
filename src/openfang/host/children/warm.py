"""One warm process: it is started once, and serves many runs at once until it ends.

A run that nobody waits for any more is cancelled. Where the process cannot even say that it heard
so, it is killed; where the run will not stop, the process takes no more runs and ends with its
last.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from math import inf
from secrets import randbits
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import anyio
from anyio import to_thread

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.trace import CURRENT_TRACE
from openfang.host.children.running import MOST_MESSAGES
from openfang.host.children.start import MOST_PROCESSES
from openfang.host.headcount import family, weight
from openfang.host.lines import Gone, Lines, open_lines
from openfang.host.sizes import size_of
from openfang.protocols.children import messages
from openfang.protocols.children.messages import (
    Broken,
    Declined,
    Lingers,
    Raised,
    Ready,
    Returned,
    Stopped,
)

if TYPE_CHECKING:
    from collections.abc import Container
    from contextlib import AbstractContextManager

    from anyio.abc import TaskStatus

    from openfang.host.children.running import Running, Send
    from openfang.host.children.start import Confine, Recipe, Start

GRACE: Final = 0.7
LOADS_SECONDS: Final = 60.0
_MOST_LOST: Final = 10_000
_NUMBER_BITS: Final = 53  # what every JSON reader keeps whole
_COUNT_BUSY: Final = 0.25
_COUNT_IDLE: Final = 2.0
_SIGNALLED: Final = 128
Outcome = TypeVar("Outcome")


class Errand(Protocol[Outcome]):
    """What is to be run in it, for whom."""

    def begin(self, number: int) -> bytes:
        """Write that the run is to begin."""
        ...

    def running(self, number: int, send: Send) -> Running[Outcome]:
        """Be the run from outside."""
        ...

    def limited(self) -> AbstractContextManager[object]:
        """Give a scope that is left when the time is over."""
        ...


class Warm:
    """A process and its runs. `over` is set when it is to end, or has ended."""

    def __init__(self, recipe: Recipe) -> None:
        self.over = anyio.Event()
        self.ready = anyio.Event()
        self.reason = ""
        self.served = 0
        self.cpu = 0.0
        self.layers: tuple[str, ...] = ()
        self._recipe = recipe
        self._log = logging.getLogger(recipe.log)
        self._lines: Lines | None = None
        self._runs: dict[int, Running[Any]] = {}
        self._rested = 0.0
        self._looked_at = (0, 0)
        self._leaving: set[int] = set()
        self._given_up: set[int] = set()
        self._settled = anyio.Event()
        self._retired = False
        self._lost = 0
        self._last_words = ""

    @property
    def retired(self) -> bool:
        """Whether its end was our wish."""
        return self._retired

    @property
    def takes(self) -> bool:
        """Whether it takes more runs."""
        return not (self.reason or self._retired)

    @property
    def pid(self) -> int:
        """Its number; 0 if it was not started."""
        return self._lines.process.pid if self._lines is not None else 0

    @property
    def tired(self) -> bool:
        """Whether it has used so much of its processor time that another should go on."""
        return self.served > 0 and self.cpu > self._recipe.cpu_seconds / 2

    async def live(
        self,
        confine: Confine,
        start: Start,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Hold the process from its start to its end, with all that it needs meanwhile."""
        CURRENT_TRACE.set("")
        async with AsyncExitStack() as stack:
            launch = await confine(start, stack)
            lines = open_lines(launch, self, limit=messages.LARGEST)
            self._lines = await stack.enter_async_context(lines)
            if self._recipe.greeting is not None:
                self._lines.post(messages.greet(self._recipe.greeting))
            task_status.started()
            await self._watched(self._lines.process.pid)
        self._lose("it was ended")

    async def _watched(self, pid: int) -> None:
        self._rested = anyio.current_time()
        while not self.over.is_set():
            await self._weigh(pid)
            with anyio.move_on_after(_COUNT_BUSY if self._runs else _COUNT_IDLE):
                await self.over.wait()
            idle = anyio.current_time() - self._rested
            if not self._runs and idle > self._recipe.idle and self.ready.is_set():
                self.retire()

    async def _weigh(self, pid: int) -> None:
        """The kernel does not hold root to a number of processes; and a child can leave some."""
        excess = await to_thread.run_sync(self._excess, pid)
        if excess:
            self._kill(excess)

    def _excess(self, pid: int) -> str:
        """Say what it takes too much of. Blocks."""
        recipe, found = self._recipe, family(pid)
        if len(found) > MOST_PROCESSES:
            return f"it started more than {MOST_PROCESSES} processes"
        if weight(found) > recipe.memory_bytes:
            return f"its processes held more than {recipe.memory_bytes >> 20} MB of memory"
        if self._wrote and size_of(recipe.workspace, recipe.disk_bytes) > recipe.disk_bytes:
            return f"it wrote more than {recipe.disk_bytes / (1 << 20):g} MB into its workspace"
        return ""

    @property
    def _wrote(self) -> bool:
        """Whether it could have written something since that was looked at."""
        used, self._looked_at = self._looked_at, (len(self._runs), self.served)
        return self._recipe.disk_bytes < inf and (bool(self._runs) or used != self._looked_at)

    async def settled(self) -> None:
        """Wait until it is known whether it let go of the runs that were cancelled."""
        while self._leaving and not self.reason:
            await self._settled.wait()

    async def loaded(self) -> None:
        """Wait until its code is loaded; raise if it cannot be."""
        with anyio.move_on_after(LOADS_SECONDS):
            await self.ready.wait()
        if not self.ready.is_set():
            self._kill(f"its file was not loaded after {LOADS_SECONDS:g} s")
        if self.reason:
            raise self._failed(self.reason)

    async def serve(self, errand: Errand[Outcome]) -> Outcome:
        """Run something to its end. Whoever leaves before cancels the run."""
        outcome: Outcome | OpenFangError | None = None
        run = errand.running(_number(self._runs), self._send)
        self._runs[run.number] = run
        try:
            with errand.limited():
                outcome = await self._to_its_end(run, errand)
        finally:
            self._leave(run)
        if outcome is None:
            outcome = run.late()
        if isinstance(outcome, OpenFangError):
            raise outcome
        if outcome is None:
            raise self._failed(self.reason)
        return outcome

    async def _to_its_end(
        self, run: Running[Outcome], errand: Errand[Outcome]
    ) -> Outcome | OpenFangError:
        try:
            await self._send(errand.begin(run.number))
        except Gone:
            return self._failed(self.reason)
        await run.stirred
        return await self._attended(run) if run.wants else run.over.result()

    async def _attended(self, run: Running[Outcome]) -> Outcome | OpenFangError:
        """Do what it asks for, until it is over; what is under way then is given up."""
        async with anyio.create_task_group() as tasks:
            run.attend(tasks)
            await anyio.lowlevel.checkpoint()  # what was asked for begins, even if it is over now
            await asyncio.wait((run.over,))
            tasks.cancel_scope.cancel()
        return run.over.result()

    async def _send(self, line: bytes) -> None:
        if self.reason or self._lines is None:
            raise Gone(self.reason)
        await self._lines.send(line)

    def _leave(self, run: Running[Any]) -> None:
        """Let go of a run; one that has not ended is cancelled, and watched."""
        del self._runs[run.number]
        self._rested = asyncio.get_running_loop().time()
        if not self.reason and run.number not in self._leaving and not run.ended:
            if not self._leaving:
                self._settled = anyio.Event()
            self._leaving.add(run.number)
            self._given_up.add(run.number)
            self._cancel(run.number)
        self._end_if_idle()

    def _cancel(self, number: int) -> None:
        if self._lines is not None and not self._lines.reason:
            self._lines.post(messages.cancel(number))
        asyncio.get_running_loop().call_later(GRACE, self._overdue, number)

    def _overdue(self, number: int) -> None:
        if number in self._leaving:
            self._kill("it was ended, because a run that was cancelled blocked it")

    def retire(self) -> None:
        """Take no more runs, and end with the last one."""
        self._retired = True
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._retired and not self._runs and not self._leaving:
            self.over.set()

    def _kill(self, reason: str) -> None:
        """End it now, for a reason that its runs are told."""
        lines, known = self._lines, self.reason
        self._lose(reason)
        if lines is not None and not known and lines.returncode is None:
            lines.process.kill()

    def heard(self, message: object) -> None:
        """Take what the process says."""
        heard = messages.read(message)
        run = self._runs.get(heard.run)
        match heard.said:
            case Ready() | Broken() as said if not self.ready.is_set():
                self._begun(said)
            case Returned() | Declined() | Raised() | Stopped() as said if self._knows(heard.run):
                self._ended(heard.run, said)
            case Lingers() if heard.run in self._leaving:
                self._lingers(heard.run)
            case _:
                self._count_lost(heard.run)
        if run is not None:
            run.heard(heard.said)

    def _knows(self, number: int) -> bool:
        return number in self._runs or number in self._given_up

    def _count_lost(self, number: int) -> None:
        """What a run says that was given up is on its way still; what belongs to none is odd."""
        if number in self._runs:
            return
        self._lost += 1
        most = MOST_MESSAGES if number in self._given_up else _MOST_LOST
        if self._lost > most:
            self._kill(f"it wrote more than {most} messages that belong to no run")

    def complained(self, line: str) -> None:
        """Take a line that it printed."""
        self._last_words = line
        self._log.info("%s: %s", self._recipe.name, line)

    def gone(self, reason: str) -> None:
        """Hear that nothing more will come of it."""
        code = self._lines.returncode if self._lines is not None else None
        reason = _in_words(code, self._recipe.cpu_seconds) or reason
        if not self.ready.is_set() and self._last_words:
            reason = f"{reason}, saying: {self._last_words}"
        self._lose(reason)

    def _begun(self, said: Ready | Broken) -> None:
        self.ready.set()
        if isinstance(said, Broken):
            self._log.warning("%s cannot be loaded: %s", self._recipe.who, said.traceback)
            self._lose(f"its file cannot be loaded: {said.reason}")

    def _ended(self, number: int, said: Returned | Declined | Raised | Stopped) -> None:
        self.served += not isinstance(said, Stopped)
        if isinstance(said, Returned):
            self.cpu = said.cpu
        self._given_up.discard(number)
        self._let_go(number)

    def _lingers(self, number: int) -> None:
        name = self._recipe.name
        self._log.warning("A cancelled run of %s does not stop: it is replaced.", name)
        self._retired = True
        self._let_go(number)

    def _let_go(self, number: int) -> None:
        self._leaving.discard(number)
        if not self._leaving:
            self._settled.set()
        self._end_if_idle()

    def _lose(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            self.ready.set()
            self.over.set()
            self._settled.set()
            for run in list(self._runs.values()):
                run.fail(reason)

    def _failed(self, reason: str) -> SourceFailed:
        return SourceFailed(f"{self._recipe.who} failed: {reason}")


def _number(taken: Container[int]) -> int:
    """Number a run so that no other run can guess it."""
    number = randbits(_NUMBER_BITS)
    return number if number and number not in taken else _number(taken)


def _in_words(code: int | None, cpu_seconds: float) -> str:
    """Say what ended it; the sandbox tells of a signal by its number and 128."""
    if code is None:
        return ""
    number = code - _SIGNALLED if code > _SIGNALLED else -code
    if number == signal.SIGXCPU:
        return f"it has used up its {cpu_seconds:g} s of processor time"
    if number <= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by the signal {signal.Signals(number).name}"
    except ValueError:
        return f"it ended with exit code {code}"
