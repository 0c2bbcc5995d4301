"""One agent's processes: the one that takes its runs, and those that only finish theirs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio import Lock, to_thread

from openfang.agents.code.running import LOG
from openfang.agents.code.start import to_start
from openfang.agents.code.warm import Warm
from openfang.agents.spec import Program
from openfang.core.errors import OpenFangError, SourceFailed

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import TaskGroup

    from openfang.agents.code.environments import Environments
    from openfang.agents.code.start import Confine, Witness
    from openfang.agents.spec import AgentSpec

LOOK_SECONDS: Final = 0.3
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
_MOST_FILES: Final = 2000
_MOST_FOLDERS: Final = 500
_LIST: Final = "openfang agents list"
_LOG: Final = "the log says why"

Files: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every agent's process is started with."""

    confine: Confine
    environments: Environments
    witness: Witness
    tasks: TaskGroup


@dataclass(slots=True)
class _Starting:
    """A process on its way, whoever waits for it."""

    done: anyio.Event = field(default_factory=anyio.Event)
    error: OpenFangError | None = None


@dataclass(slots=True)
class Keeper:
    """Starts a process at the first use, and another when it died or when something changed.

    A start belongs to nobody: who does not wait for its end leaves it to the next.
    """

    means: Means
    _warm: Warm | None = None
    _start: _Starting | None = None
    _made_of: tuple[Program, Path] | None = None
    _files: Files = ()
    _looked: float = 0.0
    _failures: int = 0
    _not_before: float = 0.0
    _reason: str = ""
    _retired: bool = False
    _looking: Lock = field(default_factory=Lock)

    async def warm(self, spec: AgentSpec) -> Warm:
        """Give a process that takes a run of this agent, as it is now."""
        while True:
            if self._warm is not None:
                await self._warm.settled()
            if self._takes and anyio.current_time() - self._looked < LOOK_SECONDS:
                warm = self._warm
                if warm is not None and self._made_of == (spec.does, spec.workspace):
                    return warm
            async with self._looking:
                found = await self._looked_after(spec)
            if isinstance(found, Warm):
                return found
            await found.done.wait()
            if found.error is not None:
                raise SourceFailed(found.error.message, way_out=found.error.way_out)

    def retire(self) -> None:
        """Let the process end with its last run; there will be no other."""
        self._retired = True
        if self._warm is not None:
            self._warm.retire()

    @property
    def layers(self) -> tuple[str, ...]:
        """What stands between its process and the machine; nothing if none runs."""
        return self._warm.layers if self._warm is not None and not self._warm.reason else ()

    @property
    def _takes(self) -> bool:
        warm = self._warm
        return warm is not None and warm.takes and not warm.tired

    async def _looked_after(self, spec: AgentSpec) -> Warm | _Starting:
        program = spec.does
        if not isinstance(program, Program):
            raise SourceFailed(f"The agent {spec.name} is no program.")
        if self._retired:
            raise SourceFailed(f"The agent {spec.name} was removed.", way_out=_LIST)
        if await self._same(program, spec.workspace):
            if self._takes and self._warm is not None:
                return self._warm
            if self._start is not None:
                return self._start
        self._take_stock(spec.name)
        start = self._start = _Starting()
        self.means.tasks.start_soon(self._begin, spec, program, start)
        return start

    async def _begin(self, spec: AgentSpec, program: Program, start: _Starting) -> None:
        """Start a process, and put it in its place unless there is a newer one by now."""
        try:
            warm = await self._started(spec, program)
        except OpenFangError as error:
            start.error = error
            if self._start is start:
                self._note(error.message)
        except Exception as error:  # noqa: BLE001 - whatever it is, other agents do not notice
            LOG.error("The agent %s cannot be started", spec.name, exc_info=error)
            start.error = SourceFailed(f"The agent {spec.name} cannot be started.", way_out=_LOG)
        except BaseException:
            start.error = SourceFailed(f"The agent {spec.name} was not started.")
            raise
        else:
            if self._start is start:
                self._warm = warm
            if self._start is not start or self._retired:
                warm.retire()
        finally:
            if self._start is start:
                self._start = None
            start.done.set()

    async def _same(self, program: Program, workspace: Path) -> bool:
        """Look whether anything changed; if so, what went wrong before counts no more."""
        files = await to_thread.run_sync(_files, program.root)
        same = files == self._files and self._made_of == (program, workspace)
        self._files, self._made_of = files, (program, workspace)
        self._looked = anyio.current_time()
        if not same:
            self._failures, self._not_before = 0, 0.0
        return same

    def _take_stock(self, agent: str) -> None:
        """Count processes that died without having answered; each makes us wait longer."""
        warm, self._warm = self._warm, None
        if warm is not None:
            warm.retire()
            if warm.served:
                self._failures = 0
            elif warm.reason:
                self._note(warm.reason)
        left = self._not_before - anyio.current_time()
        if left > 0:
            raise SourceFailed(
                f"The agent {agent} has failed {self._failures} times in a row: {self._reason}",
                way_out=f"correct its code; it is started again in {left:.0f} s",
            )

    def _note(self, reason: str) -> None:
        """Wait before the next start. The first time may be bad luck."""
        self._failures += 1
        self._reason = reason
        if self._failures > 1:
            pause = min(FIRST_PAUSE * 2 ** (self._failures - 2), LONGEST_PAUSE)
            self._not_before = anyio.current_time() + pause

    async def _started(self, spec: AgentSpec, program: Program) -> Warm:
        means = self.means
        runtime = await means.environments.runtime(program, means.tasks)
        start = to_start(spec, program, runtime.python, runtime.environment)
        launch = await means.confine(start)
        warm = Warm(spec.name, program.cpu_seconds)
        await means.tasks.start(warm.live, launch)
        try:
            await warm.loaded()
            warm.layers = tuple(await means.witness(start, warm.pid))
        except BaseException:
            warm.retire()
            raise
        return warm


def _files(folder: Path) -> Files:
    """See what could have changed: the Python files of the agent's folder. Blocks."""
    found: list[tuple[str, int, int]] = []
    for inner, folders, names in islice(os.walk(folder), _MOST_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            if name.endswith(".py"):
                found += _seen(os.path.join(inner, name))  # noqa: PTH118 - there may be many
        if len(found) >= _MOST_FILES:
            break
    return tuple(found)


def _seen(file: str) -> Files:
    try:
        status = os.stat(file)  # noqa: PTH116 - as above
    except OSError:  # it may have gone a moment ago
        return ()
    return ((file, status.st_mtime_ns, status.st_size),)
