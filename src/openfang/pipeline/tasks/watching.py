"""Watching a task: as it is, then all that happens to it, each once and in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Spoken, TaskUpdate
from openfang.pipeline.tasks.changes import difference
from openfang.storage.processes import gone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.tasks import Seen, Task
    from openfang.pipeline.tasks.ledger import Ledger
    from openfang.pipeline.tasks.rooms import Room, Watcher
    from openfang.storage.processes import Process

_LOOK_SECONDS: Final = 0.25
_LOOKS_AT_FIRST: Final = 40


@dataclass(slots=True)
class Watching:
    """Tells tasks. Those of another process are looked at now and then.

    `recovered` is whether what processes that are gone had left has been seen to: a node that
    starts has a moment for that.
    """

    ledger: Ledger
    process: Process
    recovered: bool = field(init=False, default=False)

    async def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one from now on; who comes late hears all that was said so far at once."""
        with self.ledger.rooms.of(task_id) as room:
            stored = None if room.task else await self.ledger.stored(task_id)
            # From here to what was said so far without a pause: nothing is heard twice.
            with room.watched() as watcher:
                task = room.task or stored or await self.ledger.stored(task_id)
                so_far = self._so_far(room, task)
                yield task
                if so_far is not None:
                    yield so_far
                while not task.state.final:
                    update = await self._next(room, watcher, task)
                    if update.n > task.version:
                        task = update.task
                    elif update.n:
                        continue
                    yield update

    def _so_far(self, room: Room, task: Task) -> TaskUpdate | None:
        text = room.speech.so_far if room.speech else ""
        if not text or task.state.final:
            return None
        spoken = Spoken(text=text, first=True)
        return TaskUpdate(task=task, what=spoken, at=self.ledger.now())

    async def _next(self, room: Room, watcher: Watcher, task: Task) -> TaskUpdate:
        looks = 0
        while room.task is None:
            with anyio.move_on_after(_LOOK_SECONDS):
                return await watcher.next()
            update = await self._look(task)
            if update is not None:
                return update
            looks = looks + 1 if await self._is_left(task.id) else 0
            if looks > (0 if self.recovered else _LOOKS_AT_FIRST):
                raise SourceFailed(
                    f"Nobody is at work on the task {task.id}: the process that was is gone.",
                    way_out="openfang start: the node goes on with what was left",
                )
        return await watcher.next()

    async def _look(self, task: Task) -> TaskUpdate | None:
        """See what another process has made of it."""
        found = await self.ledger.stored(task.id)
        if found.version == task.version:
            return None
        moved, at = difference(task, found), found.changed_at
        return TaskUpdate(task=found, what=moved, at=at, n=found.version)

    async def _is_left(self, task_id: str) -> bool:
        """Whether nobody goes on with it: not who did, and here it is not being worked on."""
        process = await self.ledger.store.process(task_id)
        if process == self.process.id:
            return True
        return bool(await to_thread.run_sync(gone, self.process.folder, (process,)))
