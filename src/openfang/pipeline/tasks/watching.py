"""Watching a task: as it is, then all that happens to it, each once and in order."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Spoken, TaskUpdate
from openfang.core.values import dataclass
from openfang.pipeline.tasks.changes import difference
from openfang.storage.queued import is_queued

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.tasks import Seen, Task
    from openfang.pipeline.tasks.carrying import Carrying
    from openfang.pipeline.tasks.ledger import Ledger
    from openfang.pipeline.tasks.rooms import Room, Watcher
    from openfang.storage.processes import Process

_LOOK_SECONDS: Final = 0.25
_LOOK_SECONDS_IF_TOLD: Final = 1.0
_SECONDS_TO_TAKE_OVER: Final = 10.0


@dataclass(slots=True)
class Watching:
    """Tells tasks. Those of another process are looked at now and then, and whenever that `tells`.

    `recovered` is whether what processes that are gone had left has been seen to: a node that
    starts has a moment for that, and so have other nodes when one is gone.
    """

    ledger: Ledger
    process: Process
    carrying: Carrying | None = field(init=False, default=None)
    recovered: bool = field(init=False, default=False)

    @property
    def tells(self) -> bool:
        """Whether other nodes tell what they change."""
        return self.carrying is not None

    async def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one from now on; who comes late hears all that was said so far at once."""
        with self.ledger.rooms.of(task_id) as room:
            # Who has changed it at another node sees that here, even before we were told.
            known = room.task is not None and not self.tells
            stored = None if known else await self.ledger.stored(task_id)
            # From here to what was said so far without a pause: nothing is heard twice.
            with room.watched() as watcher:
                task = _newest(room.task, stored) or await self.ledger.stored(task_id)
                room.seen = task
                so_far = self._so_far(room, task)
                yield task
                if so_far is not None:
                    yield so_far
                while not task.state.final:
                    update = await self._next(room, watcher, task)
                    if update.n > task.version:
                        task = room.seen = update.task
                    elif update.n:
                        continue
                    yield update

    def _so_far(self, room: Room, task: Task) -> TaskUpdate | None:
        text = room.speech.so_far if room.speech else room.words
        if not text or task.state.final:
            return None
        spoken = Spoken(text=text, first=True)
        return TaskUpdate(task=task, what=spoken, at=self.ledger.now())

    async def _next(self, room: Room, watcher: Watcher, task: Task) -> TaskUpdate:
        left: float | None = None
        self._say(room)
        while (update := await self._heard(room, watcher)) is None:
            if room.task is not None:
                continue
            if (update := await self._look(task)) is not None:
                break
            self._say(room)
            if not await self.is_left(task.id):
                left = None
            elif self._for_too_long(left := left or time.monotonic()):
                raise SourceFailed(
                    f"Nobody is at work on the task {task.id}: the process that was is gone.",
                    way_out="openfang start: the node goes on with what was left",
                )
        return update

    async def _heard(self, room: Room, watcher: Watcher) -> TaskUpdate | None:
        """Wait for what happens here; None: it is time to look whether it happened elsewhere."""
        if room.task is not None:
            return await watcher.news()
        with anyio.move_on_after(_LOOK_SECONDS_IF_TOLD if self.tells else _LOOK_SECONDS):
            return await watcher.news()
        return None

    def _say(self, room: Room) -> None:
        """Say now and then that somebody watches here what another node says."""
        if self.carrying is not None and room.task is None:
            self.carrying.want(room)

    def _for_too_long(self, since: float) -> bool:
        seconds = _LOOK_SECONDS if self.recovered and not self.tells else _SECONDS_TO_TAKE_OVER
        return time.monotonic() - since >= seconds

    async def _look(self, task: Task) -> TaskUpdate | None:
        """See what another process has made of it."""
        found = await self.ledger.stored(task.id)
        if found.version == task.version:
            return None
        moved, at = difference(task, found), found.changed_at
        return TaskUpdate(task=found, what=moved, at=at, n=found.version)

    async def is_left(self, task_id: str) -> bool:
        """Whether nobody goes on with it: not who did, and here it is not being worked on."""
        process = await self.ledger.store.process(task_id)
        if is_queued(process):  # whoever takes it from its queue will
            return False
        if process == self.process.id:
            return True
        return bool(await self.process.roll.gone((process,)))


def _newest(*found: Task | None) -> Task | None:
    return max((one for one in found if one), key=lambda one: one.version, default=None)
