"""The one way in which a task changes here: in turn, all of it or nothing, then told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from openfang.core.errors import AuditUnavailable, Conflict, HomeError, NotFound
from openfang.core.tasks import Moved, Task, TaskUpdate
from openfang.core.values import dataclass
from openfang.pipeline.tasks.changes import difference
from openfang.storage.queued import own

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from openfang.pipeline.tasks.changes import Changes
    from openfang.pipeline.tasks.rooms import Room, Rooms
    from openfang.pipeline.tasks.space import Space
    from openfang.storage.tasks import Statement, TaskStore

Decide: TypeAlias = Callable[[Task], Moved | None]
Beside: TypeAlias = "Callable[[], Sequence[Statement]]"

_log = logging.getLogger("openfang.tasks")
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0


def alone() -> Sequence[Statement]:
    """Nothing goes with a change."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Changes tasks. What is decided is decided on the task as it is, and again if that was old."""

    store: TaskStore
    changes: Changes
    rooms: Rooms
    space: Space
    now: Callable[[], int]

    async def stored(self, task_id: str) -> Task:
        """Read one."""
        found = await self.store.get(task_id)
        if found is None:
            raise NotFound(f"No task {task_id}.", way_out="openfang a2a tasks")
        return found

    async def move(
        self, task_id: str, decide: Decide, *, taken_from: str = "", beside: Beside = alone
    ) -> Task:
        """Change one, and tell who watches; or leave it as it is, if that is decided.

        `beside` is asked for what goes into the unit of the change, if there is one.
        """
        with shielded(), self.rooms.of(task_id) as room:
            async with room.lock:
                while True:
                    before = room.task or await self.stored(task_id)
                    moved = decide(before)
                    if moved is None:
                        return before
                    update = self._update(before, moved)
                    try:
                        await self.changes.move(
                            before, update, taken_from=taken_from, beside=beside()
                        )
                    except Conflict:
                        if await self._caught_up(room, before):
                            continue
                        if not await self.changes.has_others(task_id):
                            raise
                    else:
                        self._told(room, update)
                        return update.task

    def _update(self, before: Task, moved: Moved) -> TaskUpdate:
        if not before.state.may_become(moved.state):
            raise ended_already(before)
        at = max(self.now(), before.changed_at)
        after = before.moved(moved, at)
        return TaskUpdate(task=after, what=moved, at=at, n=after.version)

    async def _caught_up(self, room: Room, before: Task) -> bool:
        """Whether another process has changed it, and we know how now; who works on it hears it."""
        after = await self.stored(before.id)
        if after.version == before.version:
            return False
        moved = difference(before, after)
        update = TaskUpdate(task=after, what=moved, at=after.changed_at, n=after.version)
        self._told(room, update)
        if after.state.final and room.scope is not None:
            room.scope.cancel()
        return True

    def _told(self, room: Room, update: TaskUpdate) -> None:
        if room.speech is not None:
            room.speech.flush()
        if room.task is not None:
            room.task = update.task
        if room.question is not None and update.task.given is not None:
            room.question.give(update.task.given)
        if update.task.state.final:
            self.space.ended(update.task.caller)
            self.changes.over(update.task.id)
        room.tell(update)

    async def look(self, task_id: str) -> None:
        """See what another process has made of one that is worked on here."""
        with self.rooms.of(task_id) as room:
            async with room.lock:
                if room.task is None or await self._is_ours(room, room.task):
                    return
                if room.scope is not None:
                    room.scope.cancel()

    async def _is_ours(self, room: Room, before: Task) -> bool:
        """Whether it is still to be worked on here, as it is by now; not if it was taken over."""
        try:
            await self._caught_up(room, before)
        except NotFound:  # it made way for others after its end
            return False
        return await self.store.process(before.id) in own(self.changes.process.id)

    async def insist(self, task_id: str, moved: Moved, *, taken_from: str = "") -> Task | None:
        """Change one as soon as that can be written, unless it has ended or is somebody else's."""
        for pause in _pauses():
            try:
                return await self.move(task_id, lambda _: moved, taken_from=taken_from)
            except NotFound:
                return None
            except (Conflict, AuditUnavailable, HomeError) as error:
                if isinstance(error, Conflict) and (taken_from or await self._has_ended(task_id)):
                    return None
                _log.warning("What became of %s waits to be written: %s", task_id, error.message)
                await anyio.sleep(pause)
        return None

    async def _has_ended(self, task_id: str) -> bool:
        task = await self.store.get(task_id)
        return task is None or task.state.final


@contextmanager
def shielded() -> Generator[None]:
    """Go on to the end of it, whoever goes away meanwhile."""
    with anyio.CancelScope(shield=True):
        yield


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def ended_already(task: Task) -> Conflict:
    """A task that has ended takes nothing more."""
    return Conflict(
        f"The task {task.id} has ended: it is {task.state.value}.",
        way_out="send a message without its id: it begins a new task, in the same context if named",
    )
