"""One child's processes: the one that takes its runs, and those that only finish theirs."""

from __future__ import annotations

import logging
import os
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio import Lock, to_thread

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.values import dataclass
from openfang.host.children.start import to_start
from openfang.host.children.warm import Warm

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import TaskGroup

    from openfang.host.children.environments import Environments
    from openfang.host.children.start import Confine, Recipe, Witness

LOOK_SECONDS: Final = 0.3
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
_MOST_FILES: Final = 2000
_MOST_FOLDERS: Final = 500
_LOG: Final = "the log says why"

Files: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every process is started with."""

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
    _made_of: Recipe | None = None
    _files: Files = ()
    _looked: float = 0.0
    restarts: int = 0
    _failures: int = 0
    _not_before: float = 0.0
    _reason: str = ""
    _way_out: str = ""
    _retired: bool = False
    _looking: Lock = field(default_factory=Lock)

    async def warm(self, recipe: Recipe) -> Warm:
        """Give a process that takes a run of what is made so, now."""
        while True:
            if self._warm is not None:
                await self._warm.settled()
            if self._takes and self._is_fresh(recipe) and self._warm is not None:
                return self._warm
            async with self._looking:
                found = await self._looked_after(recipe)
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

    def _is_fresh(self, recipe: Recipe) -> bool:
        """Whether nothing can have changed since somebody looked."""
        if self._made_of is not recipe and self._made_of != recipe:
            return False
        return recipe.watched is None or anyio.current_time() - self._looked < LOOK_SECONDS

    @property
    def pid(self) -> int:
        """The number of its process; 0 if none runs."""
        return self._warm.pid if self._warm is not None and not self._warm.reason else 0

    @property
    def trouble(self) -> tuple[str, str]:
        """Why the last process ended or could not be started, if that was no good end; what helps.

        Nothing is wrong with one that runs.
        """
        warm = self._warm
        if warm is not None and not warm.retired:
            return warm.reason, ""
        return (self._reason, self._way_out) if self._failures else ("", "")

    @property
    def layers(self) -> tuple[str, ...]:
        """What stands between its process and the machine; nothing if none runs."""
        return self._warm.layers if self._warm is not None and not self._warm.reason else ()

    @property
    def _takes(self) -> bool:
        warm = self._warm
        return warm is not None and warm.takes and not warm.tired

    async def _looked_after(self, recipe: Recipe) -> Warm | _Starting:
        if self._retired:
            raise SourceFailed(f"{recipe.who} was removed.", way_out=recipe.listing)
        if await self._same(recipe):
            if self._takes and self._warm is not None:
                return self._warm
            if self._start is not None:
                return self._start
        self._take_stock(recipe)
        start = self._start = _Starting()
        self.means.tasks.start_soon(self._begin, recipe, start)
        return start

    async def _begin(self, recipe: Recipe, start: _Starting) -> None:
        """Start a process, and put it in its place unless there is a newer one by now."""
        try:
            warm = await self._started(recipe)
        except OpenFangError as error:
            start.error = error
            if self._start is start:
                self._note(error.message, error.way_out)
        except Exception as error:
            log = logging.getLogger(recipe.log)
            log.error("%s cannot be started", recipe.who, exc_info=error)  # noqa: TRY400 - the same
            start.error = SourceFailed(f"{recipe.who} cannot be started.", way_out=_LOG)
        except BaseException:
            start.error = SourceFailed(f"{recipe.who} was not started.")
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

    async def _same(self, recipe: Recipe) -> bool:
        """Look whether anything changed; if so, what went wrong before counts no more."""
        folder = recipe.watched
        files = await to_thread.run_sync(_files, folder) if folder is not None else ()
        same = files == self._files and self._made_of == recipe
        self._files, self._made_of = files, recipe
        self._looked = anyio.current_time()
        if not same:
            self._failures, self._not_before = 0, 0.0
        return same

    def _take_stock(self, recipe: Recipe) -> None:
        """Count processes that died without having answered; each makes us wait longer."""
        warm, self._warm = self._warm, None
        if warm is not None:
            died = bool(warm.reason and not warm.retired)
            self.restarts += died
            warm.retire()
            if warm.served:
                self._failures = 0
            elif died:
                self._note(warm.reason)
        left = self._not_before - anyio.current_time()
        if left > 0:
            raise SourceFailed(
                f"{recipe.who} has failed {self._failures} times in a row: {self._reason}",
                way_out=f"correct its code; it is started again in {left:.0f} s",
            )

    def _note(self, reason: str, way_out: str = "") -> None:
        """Wait before the next start. The first time may be bad luck."""
        self._failures += 1
        self._reason, self._way_out = reason, way_out
        if self._failures > 1:
            pause = min(FIRST_PAUSE * 2 ** (self._failures - 2), LONGEST_PAUSE)
            self._not_before = anyio.current_time() + pause

    async def _started(self, recipe: Recipe) -> Warm:
        means = self.means
        if recipe.seal is not None:
            await to_thread.run_sync(recipe.seal.check)
        found = await means.environments.runtime(recipe.runtime, means.tasks, recipe.settings)
        start = to_start(recipe, found.program, found.environment)
        warm = Warm(recipe)
        await means.tasks.start(warm.live, means.confine, start)
        try:
            await warm.loaded()
            warm.layers = tuple(await means.witness(start, warm.pid))
        except BaseException:
            warm.retire()
            raise
        return warm


def _files(folder: Path) -> Files:
    """See what could have changed: the Python files of its folder. Blocks."""
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
