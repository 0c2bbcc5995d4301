"""Tasks: begun once, worked on here, told to whoever watches, and ended whatever happens."""

from __future__ import annotations

import time
from contextlib import aclosing, nullcontext
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import TASK_STATUS_IGNORED

from openfang.core.errors import Conflict, NotFound, SourceFailed
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.tasks import Moved, Task, TaskState, TaskUpdate
from openfang.core.values import dataclass
from openfang.pipeline.tasks.answering import Answer, left
from openfang.pipeline.tasks.carrying import Carrying
from openfang.pipeline.tasks.changes import TASKS, Changes
from openfang.pipeline.tasks.engine import Inline
from openfang.pipeline.tasks.ledger import Ledger, alone
from openfang.pipeline.tasks.outcomes import expired, left_with
from openfang.pipeline.tasks.rooms import Rooms
from openfang.pipeline.tasks.space import Space, TaskBounds
from openfang.pipeline.tasks.watching import Watching
from openfang.pipeline.tasks.working import Work, Working
from openfang.storage.queued import QUEUE, is_queued, taken
from openfang.storage.task_bodies import written
from openfang.storage.tasks import TaskHead

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from anyio.abc import TaskStatus

    from openfang.core.results import Result
    from openfang.core.tasks import Seen, Sent, TaskFilter, TaskMessage, TaskPage
    from openfang.pipeline.tasks.changes import Append, Audience, Outbox
    from openfang.pipeline.tasks.engine import Build, TaskEngine, Written
    from openfang.pipeline.tasks.ledger import Beside
    from openfang.storage.ports import Storage
    from openfang.storage.processes import Process
    from openfang.storage.tasks import Statement, TaskStore

__all__ = ["TaskBounds", "TaskService", "Work"]

_SECOND: Final = 1_000_000_000
_NEWER: Final = 2**62


def _to_nobody(task: Task, update: TaskUpdate) -> Sequence[Statement]:
    del task, update
    return ()


def _nothing() -> None:
    """Nobody waits for it."""


async def _no_recipe() -> None:
    """Only this process can work on it."""


@dataclass(slots=True, kw_only=True)
class TaskService:
    """All tasks of a node. Each change is one unit: the task, its event, its record, the outbox.

    `append` writes units, and `low_water` is the oldest record whose call may still be open.
    `outbox` says what goes into the unit of a change for whoever is to be told of it; `committed`
    is called when that is written; where other nodes may know better whom that is, `audience` is
    asked. Tasks that are worked on here may be ended by another process: `look_seconds` is how
    often that is looked for. `engine` is who hands tasks to those who work on them.
    """

    store: TaskStore
    append: Append
    process: Process
    low_water: Callable[[], int]
    now: Callable[[], int] = time.time_ns
    bounds: Callable[[], TaskBounds] = TaskBounds
    outbox: Outbox = _to_nobody
    committed: Callable[[], None] = _nothing
    audience: Audience | None = None
    look_seconds: float = 1.0
    engine: TaskEngine = field(default_factory=Inline)
    _rooms: Rooms = field(init=False, default_factory=Rooms)
    _space: Space = field(init=False)
    _changes: Changes = field(init=False)
    _ledger: Ledger = field(init=False)
    _working: Working = field(init=False)
    _watching: Watching = field(init=False)
    _interrupted: anyio.Event = field(init=False, default_factory=anyio.Event)
    _goes_on: anyio.Event = field(init=False, default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._space = Space(self.store)
        self._changes = Changes(
            append=self.append,
            process=self.process,
            low_water=self.low_water,
            outbox=self.outbox,
            committed=self.committed,
            audience=self.audience,
        )
        self._ledger = Ledger(
            store=self.store,
            changes=self._changes,
            rooms=self._rooms,
            space=self._space,
            now=self.now,
        )
        self._working = Working(self._ledger, self.process)
        self._watching = Watching(self._ledger, self.process)

    def listen(self, storage: Storage) -> None:
        """Hear at once what other nodes make of tasks, where there are any."""
        if storage.on(TASKS, self._hear):
            carrying = Carrying(storage, self._rooms, self.now)
            carrying.listen()
            self._working.carrying = self._watching.carrying = carrying

    def _hear(self, subject: str) -> None:
        """A task has changed, maybe here; or any may have."""
        task_id, _, version = subject.partition(" ")
        room = self._rooms.find(task_id)
        for one in (room,) if room else () if task_id else self._rooms:
            one.hear()
            if one.task is not None and int(version or _NEWER) > one.task.version:
                self._working.wake()

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Own the works. When this is cancelled they are interrupted, and nobody waits for them."""
        started = task_status.started
        while True:
            await self._work(started)
            self._interrupted.set()
            await self._goes_on.wait()
            started = _nothing

    async def _work(self, started: Callable[[], None]) -> None:
        """Let works begin, until they are interrupted."""
        try:
            async with anyio.create_task_group() as group:
                self._working.group = group
                started()
                try:
                    await self._working.look_about(self.look_seconds)
                finally:
                    self._working.group = None
        finally:
            for room in self._rooms:
                room.end(_stopped())

    def interrupt(self) -> None:
        """Stop all works as the end of the node does, and take none until it goes on."""
        if self._working.group is not None:
            self._interrupted, self._goes_on = anyio.Event(), anyio.Event()
            self._working.group.cancel_scope.cancel()

    async def stopped(self) -> None:
        """Wait until the works that were interrupted have stopped."""
        await self._interrupted.wait()

    async def go_on(self) -> None:
        """Take tasks again."""
        self._goes_on.set()

    def drain(self, *, on: bool) -> None:
        """Take no new tasks; or take them again."""
        self._working.draining = on

    async def begin(  # noqa: PLR0913 - all that a task is made of, each by its name
        self,
        sent: Sent,
        *,
        caller: str,
        context: str,
        session: str,
        work: Work,
        recipe: Written = _no_recipe,
        statements: Sequence[Statement] = (),
        task_id: str = "",
    ) -> Task:
        """Keep a task with the statements that belong to it, and begin the work on it.

        A message that has begun one is not taken again: that task is the answer. By its `recipe`
        another node can build the work.
        """
        self._working.check()
        now = self.now()
        task = Task(
            id=task_id or new_id("task"),
            agent=sent.agent,
            caller=caller,
            context=context,
            session=session,
            state=TaskState.WORKING,
            history=(sent.message,),
            metadata=sent.metadata,
            version=2,
            created_at=now,
            changed_at=now,
        )
        queued = await self.engine.queued(task, recipe)
        begin = partial(self._begun, task, sent.message.id, (*statements, *queued))
        return await self._working.to_its_end(partial(begin, None if queued else work))

    async def _begun(
        self, task: Task, message_id: str, statements: Sequence[Statement], work: Work | None
    ) -> Task:
        """Keep it. Without work, it is for whoever takes it from its queue."""
        body, process = written(task), "" if work else QUEUE
        place = await self._space.take(task.caller, len(body), self.bounds())
        with self._rooms.of(task.id) as room:
            if work is not None:
                room.scope = anyio.CancelScope()  # it can be ended as soon as it is written
            try:
                beside = (*place.statements, *statements)
                await self._changes.insert(task, body, message_id, beside, process)
            except Conflict:
                self._space.forget(place)
                known = await self.known(task.caller, task.agent, message_id)
                if known is None:
                    raise
                return known
            except BaseException:
                self._space.forget(place)
                raise
            self._space.written(place)
            if work is not None:
                self._working.start(task, work)
            else:
                self.engine.kept()
        return task

    async def work(self, task_id: str, build: Build) -> bool:
        """Work on a task that was taken from its queue; whether it has ended.

        One that has not was taken by another process meanwhile.
        """
        task = await self._unended(task_id)
        if task is None:
            return True
        await self.append([], (taken(task_id, self.process.id),), ())
        work = await build(task)
        task = await self._unended(task_id)  # it may have been cancelled meanwhile
        if task is None or await self._working.work(task, work):
            return True
        head = await self.store.head(task_id)
        return head is None or head.state.final

    async def _unended(self, task_id: str) -> Task | None:
        found = await self.store.get(task_id)
        return None if found is None or found.state.final else found

    async def known(self, caller: str, agent: str, message_id: str) -> Task | None:
        """Find the task that a message of this caller to this agent has begun."""
        return await self.store.of_message(caller, agent, message_id)

    async def find(self, task_id: str, caller: str | None = None) -> Task | None:
        """Find one: of this caller, or anybody's."""
        found = self._here(task_id) or await self.store.get(task_id)
        return found if found is None or caller in {None, found.caller} else None

    async def head(self, task_id: str) -> TaskHead | None:
        """Tell whose one is, without all that it holds."""
        task = self._here(task_id)
        if task is not None:
            return TaskHead(task.agent, task.caller, task.state)
        return await self.store.head(task_id)

    def _here(self, task_id: str) -> Task | None:
        """Give one that is worked on here, where no other node may have changed it just now."""
        return None if self._watching.tells else self._rooms.task(task_id)

    async def page(self, caller: str | None, wanted: TaskFilter) -> TaskPage:
        """List those of this caller, or everybody's."""
        return await self.store.page(caller, wanted)

    async def states(self, task_id: str) -> Sequence[tuple[int, int, TaskState]]:
        """Tell the states that one went through: number, time, state."""
        return await self.store.states(task_id)

    async def answer(
        self,
        task_id: str,
        message: TaskMessage,
        labels: Labels = Labels.NONE,
        beside: AbstractContextManager[Beside] | None = None,
    ) -> Task:
        """Give a task what it waits for; the same message again changes nothing.

        `labels` are what the message carries. `beside` gives what goes into the unit of the answer,
        and hears of it if that is refused.
        """
        given, answer = beside or nullcontext(alone), Answer(message, labels)
        return await self._working.to_its_end(partial(self._answered, task_id, answer, given))

    async def _answered(
        self, task_id: str, answer: Answer, beside: AbstractContextManager[Beside]
    ) -> Task:
        with self._rooms.of(task_id) as room, beside as statements:
            if room.question is None and await self._is_left(task_id):
                raise left(task_id)
            return await self._ledger.move(task_id, answer.decide, beside=statements)

    async def _is_left(self, task_id: str) -> bool:
        """Whether a task waits in a process that is gone, so that no answer would reach it."""
        head = await self.store.head(task_id)
        return head is not None and head.state.waiting and await self._watching.is_left(task_id)

    async def asked(self, task_id: str) -> Mapping[str, Any]:
        """Give the form that a task waits for to be filled in, in whichever process it waits."""
        task = await self.find(task_id)
        return task.form if task else {}

    async def cancel(self, task_id: str) -> Task:
        """End one, then the work on it: what that still brings changes nothing."""
        canceled = Moved(state=TaskState.CANCELED)
        return await self._working.to_its_end(partial(self._ended, task_id, lambda _: canceled))

    async def _ended(self, task_id: str, decide: Callable[[Task], Moved]) -> Task:
        with self._rooms.of(task_id) as room:
            task = await self._ledger.move(task_id, decide)
            if room.scope is not None:
                room.scope.cancel()
            return task

    def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one as it is, then all that happens to it, until it has ended."""
        return self._watching.watch(task_id)

    async def settled(self, task_id: str) -> Task:
        """Wait until one has ended, or waits for its caller."""
        async with aclosing(self.watch(task_id)) as watched:
            async for seen in watched:
                task = seen.task if isinstance(seen, TaskUpdate) else seen
                if task.state.resting:
                    return task
        raise _stopped()

    async def recover(
        self,
        resumable: Mapping[str, Work],
        ended_as: Callable[[str], Awaitable[Result | None]],
        elsewhere: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        """See to the tasks whose processes are gone: go on with them, or end them.

        `ended_as` gives what the agent had answered, if it had and only the task did not know.
        `elsewhere` is whether another node was faster, and goes on with one.
        """
        unfinished = await self.store.unfinished()
        others = {process for _, process in unfinished if not is_queued(process)}
        others.discard(self.process.id)
        dead = await self.process.roll.gone(others)
        for task_id, process in unfinished:
            if process in dead and task_id in resumable:
                await self._taken_over(task_id, process, resumable[task_id])
            elif process in dead and not (elsewhere and await elsewhere(task_id)):
                await self._ledger.insist(
                    task_id, left_with(await ended_as(task_id)), taken_from=process
                )
        self._watching.recovered = True

    async def _taken_over(self, task_id: str, process: str, work: Work) -> None:
        """Go on with a task, unless somebody else was faster."""
        working = Moved(state=TaskState.WORKING)
        task = await self._ledger.insist(task_id, working, taken_from=process)
        if task is not None:
            self._working.start(task, work)

    async def give_up(self, task_id: str) -> None:
        """End a task on which nobody will ever go on."""
        process = await self.store.process(task_id)
        await self._ledger.insist(task_id, left_with(None), taken_from=process)

    async def expire(self, now: int) -> int:
        """Give up those to which nothing has happened for too long; returns when to ask again."""
        seconds = self.bounds().stuck_seconds
        limit = int(seconds * _SECOND)
        for task_id in await self.store.stuck(now - limit):
            try:
                await self._ended(task_id, lambda task: expired(task, now - limit, seconds))
            except (Conflict, NotFound):
                continue
        oldest = await self.store.longest_unchanged()
        return max(min(now if oldest is None else oldest, now) + limit, now + _SECOND)


def _stopped() -> SourceFailed:
    return SourceFailed(
        "The node stopped while the task was under way.",
        way_out="ask for the task again when it is back",
    )
