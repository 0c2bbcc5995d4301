"""What this process has of tasks: who works on one, who watches it, what it waits for."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Final, Self

import anyio

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from openfang.core.errors import OpenFangError
    from openfang.core.tasks import Given, Task, TaskUpdate
    from openfang.pipeline.tasks.telling import Speech

MOST_WAITING: Final = 1000
"""Who has so many updates before it and reads none is watching no longer."""


class Watcher:
    """Somebody who is told of all that happens to a task, and reads it when they can."""

    __slots__ = ("_fault", "_hinted", "_news", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[TaskUpdate] = deque()
        self._news: anyio.Event | None = None
        self._fault: OpenFangError | None = None
        self._hinted = True  # it may have changed elsewhere since it was read

    def tell(self, update: TaskUpdate) -> bool:
        """Let it wait for them; or say that they are too far behind."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.end(_too_slow(update.task.id))
            return False
        self._waiting.append(update)
        self._wake()
        return True

    def end(self, fault: OpenFangError) -> None:
        """Tell them, behind all the rest, why there is no more."""
        self._fault = fault
        self._wake()

    def hint(self) -> None:
        """Say that something may have happened elsewhere."""
        self._hinted = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()

    async def news(self) -> TaskUpdate | None:
        """Wait for what happens next; None: something may have happened elsewhere."""
        while not self._waiting:
            if self._fault is not None:
                raise self._fault
            if self._hinted:
                self._hinted = False
                return None
            self._news = anyio.Event()
            await self._news.wait()
        return self._waiting.popleft()


def _too_slow(task_id: str) -> SourceFailed:
    return SourceFailed(
        f"Whoever watches the task {task_id} has not read the last {MOST_WAITING} updates.",
        way_out="watch it again: it begins with the task as it is",
    )


@dataclass(slots=True, eq=False)
class Question:
    """What a task waits for here: the next message to it, as what a form is filled with."""

    given: Given | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)

    def give(self, given: Given) -> None:
        """Give the answer to whoever asked, and what it carries."""
        self.given = given
        self.answered.set()


@dataclass(slots=True, eq=False)
class Room:
    """One task. While the work on it is done here, `task` is how it is and `scope` ends the work.

    Of one that another node works on, `seen` is how it was last, and `words` what it says.

    Changes take their turn by the lock, so that they are told in the order in which they happened.
    """

    id: str
    forget: Callable[[str], object]
    task: Task | None = None
    scope: anyio.CancelScope | None = None
    speech: Speech | None = None
    question: Question | None = None
    seen: Task | None = None
    words: str = ""
    said_at: float = 0.0
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    _users: int = 0
    _watchers: dict[Watcher, None] = field(default_factory=dict["Watcher", None])

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def enter(self) -> None:
        """Come in; the room is there until everybody has left."""
        self._users += 1

    def leave(self) -> None:
        """Leave it."""
        self._users -= 1
        if not self._users:
            self.forget(self.id)

    def tell(self, update: TaskUpdate) -> None:
        """Tell everybody who watches; who does not read is told no more."""
        slow = [watcher for watcher in self._watchers if not watcher.tell(update)]
        for watcher in slow:
            del self._watchers[watcher]

    def end(self, fault: OpenFangError) -> None:
        """Tell everybody that there is no more to be told."""
        for watcher in self._watchers:
            watcher.end(fault)

    def hear(self) -> None:
        """Tell everybody that another process may have changed it."""
        for watcher in self._watchers:
            watcher.hint()

    @contextmanager
    def watched(self) -> Generator[Watcher]:
        """Be told of all that happens from now on."""
        watcher = Watcher()
        self._watchers[watcher] = None
        try:
            yield watcher
        finally:
            self._watchers.pop(watcher, None)


class Rooms:
    """One for each task that anybody here has to do with."""

    def __init__(self) -> None:
        self._all: dict[str, Room] = {}

    def of(self, task_id: str) -> Room:
        """Find the one of a task, for who goes in at once."""
        room = self._all.get(task_id)
        if room is None:
            room = self._all[task_id] = Room(task_id, self._all.pop)
        return room

    def find(self, task_id: str) -> Room | None:
        """Find the one of a task that anybody here has to do with."""
        return self._all.get(task_id)

    def task(self, task_id: str) -> Task | None:
        """Give a task that is being worked on here, as it is."""
        room = self._all.get(task_id)
        return room.task if room else None

    def __iter__(self) -> Iterator[Room]:
        return iter(tuple(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)
