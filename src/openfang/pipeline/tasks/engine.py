"""Who works on a task or a run: the process that began it, or whichever node takes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.working import Work
    from openfang.storage.tasks import Statement

Recipe: TypeAlias = Mapping[str, Any]
"""All that any node needs to build the work on a task; it is kept as JSON."""
Written: TypeAlias = Callable[[], Awaitable[Recipe | None]]
"""Writes the recipe of a task, where it has one: what only this process can do has none."""
Build: TypeAlias = "Callable[[Task], Awaitable[Work]]"


class Left(Protocol):
    """A run that was interrupted: which, of what agent, for whom."""

    @property
    def id(self) -> str:
        """The run, and its workflow."""
        ...

    @property
    def agent(self) -> str:
        """Its agent, by the name that its conversations have."""
        ...

    @property
    def caller(self) -> str:
        """Who asked."""
        ...


class TaskEngine(Protocol):
    """Hands tasks to whoever works on them.

    Answers and ends need no word to it: they are changes of the task, which whoever works on it
    hears of wherever they are made.
    """

    async def queued(self, task: Task, recipe: Written) -> Sequence[Statement]:
        """Give what puts a task on a queue, for the unit that keeps it; none if it stays here."""
        ...

    def kept(self) -> None:
        """Hear that a task which was queued is kept."""
        ...

    async def left(self, run: Left) -> Sequence[Statement]:
        """Give what puts a run on a queue whose process is gone; none if it is gone on with here.

        While its process lives a run without a task is on none: somebody waits for it there.
        """
        ...


class Inline:
    """Whoever begins a task works on it, and so does who finds what another one left."""

    async def queued(self, task: Task, recipe: Written) -> Sequence[Statement]:
        """Leave it to this process."""
        del task, recipe
        return ()

    def kept(self) -> None:
        """Do nothing: none was."""

    async def left(self, run: Left) -> Sequence[Statement]:
        """Leave it to this process."""
        del run
        return ()
