"""Works on tasks: each in its own scope, so that one can be ended without the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
from anyio import get_cancelled_exc_class

from openfang.core.clients import Client, client_key
from openfang.core.errors import Conflict, HomeError, OpenFangError, Rejected
from openfang.core.progress import Listener
from openfang.core.results import Result
from openfang.core.tasks import Given, Moved, Spoken, TaskState, TaskUpdate
from openfang.core.values import dataclass
from openfang.pipeline.tasks.client import TaskClient
from openfang.pipeline.tasks.forms import question_of
from openfang.pipeline.tasks.ledger import shielded
from openfang.pipeline.tasks.outcomes import outcome
from openfang.pipeline.tasks.rooms import Question
from openfang.pipeline.tasks.telling import Speech

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.carrying import Carrying
    from openfang.pipeline.tasks.client import Filled
    from openfang.pipeline.tasks.ledger import Ledger
    from openfang.pipeline.tasks.rooms import Room
    from openfang.storage.processes import Process

Work: TypeAlias = Callable[[Client, Listener], Awaitable[Result]]
T = TypeVar("T")
_log = logging.getLogger("openfang.tasks")


@dataclass(slots=True)
class Working:
    """The works of this process, in the task group that it is given while the node serves."""

    ledger: Ledger
    process: Process
    group: TaskGroup | None = field(init=False, default=None)
    carrying: Carrying | None = field(init=False, default=None)
    draining: bool = field(init=False, default=False)
    _woken: anyio.Event = field(init=False, default_factory=anyio.Event)

    def check(self) -> None:
        """Refuse what could not be worked on."""
        if self.draining:
            raise Rejected(
                "The node is not taking tasks: it drains.",
                status=503,
                rule="not_serving",
                way_out="send it to another node: openfang nodes list",
            )
        if self.group is None:
            raise Rejected(
                "The node is not taking tasks: it starts or stops.",
                status=503,
                rule="not_serving",
                way_out="send it again in a moment",
            )

    async def look_about(self, pause: float) -> None:
        """See what others made of tasks that are worked on here: now and then, or when told."""
        while True:
            with anyio.move_on_after(pause):
                await self._woken.wait()
            self._woken = anyio.Event()
            here = {
                room.id: room.task.version
                for room in self.ledger.rooms
                if room.task and not room.task.state.final
            }
            if here:
                await self._look_at(here)

    def wake(self) -> None:
        """Look now."""
        self._woken.set()

    async def _look_at(self, here: Mapping[str, int]) -> None:
        try:
            held = await self.ledger.store.held_by(self.process.id)
            for task_id, version in here.items():
                if held.get(task_id) != version:
                    await self.ledger.look(task_id)
        except HomeError as error:  # they are looked at again
            _log.warning("What another process made of tasks cannot be seen: %s", error.message)

    async def to_its_end(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change, and all that follows from it, even if whoever asked for it goes away.

        An edge ends a request by cancelling its task, which no scope keeps off: so the change is
        made in a task of the group's.
        """
        if self.group is None:
            return await _kept(change)
        made = asyncio.get_running_loop().create_future()
        self.group.start_soon(_made, change, made)
        with shielded():
            return await made

    def start(self, task: Task, work: Work) -> None:
        """Begin to work on a task, unless it was ended at once.

        If the node stops this moment, the next start goes on.
        """
        room = self.ledger.rooms.of(task.id)
        scope = room.scope or anyio.CancelScope()
        if self.group is None or scope.cancel_called:
            return
        self._enter(room, task, scope)
        self.group.start_soon(self._to_its_end, room, task, work)

    async def work(self, task: Task, work: Work) -> bool:
        """Work on a task here and now; whether it was to the end of the work."""
        room, scope = self.ledger.rooms.of(task.id), anyio.CancelScope()
        self._enter(room, task, scope)
        await self._to_its_end(room, task, work)
        return not scope.cancelled_caught

    def _enter(self, room: Room, task: Task, scope: anyio.CancelScope) -> None:
        room.enter()
        room.task, room.scope = task, scope
        room.speech = Speech(partial(self._spoken, room))

    def _spoken(self, room: Room, spoken: Spoken) -> None:
        if room.task is not None and not room.task.state.final:
            room.tell(TaskUpdate(task=room.task, what=spoken, at=self.ledger.now()))
            if self.carrying is not None:
                self.carrying.spoken(room, spoken)

    async def _to_its_end(self, room: Room, task: Task, work: Work) -> None:
        scope, speech = room.scope, room.speech
        assert scope is not None  # noqa: S101 - as `start` left it
        assert speech is not None  # noqa: S101 - as `start` left it
        put = partial(self._put, room, task.id)
        client = TaskClient(key=client_key(task.caller), connection=task.id, put=put)
        try:
            with scope:
                moved = await outcome(lambda: work(client, speech))
                await self.ledger.insist(task.id, moved)
        finally:
            room.task = room.scope = room.speech = None
            if self.carrying is not None:
                self.carrying.forget(room.id)
            room.hear()  # if it has not ended, another process goes on with it
            room.leave()

    async def _put(self, room: Room, task_id: str, form: Mapping[str, Any]) -> Filled:
        """Let the task wait for its caller, and then give what they say, and what that carries."""
        question = room.question = Question()
        asked = Moved(state=TaskState.INPUT_REQUIRED, status=question_of(form), form=form)
        try:
            await self.ledger.move(task_id, lambda _: asked)
            await question.answered.wait()
        except get_cancelled_exc_class():
            await self._take_back(room, task_id, question)
            raise
        finally:
            room.question = None
        given = question.given or Given({})
        return given.content, given.labels

    async def _take_back(self, room: Room, task_id: str, question: Question) -> None:
        """Let the task wait no longer for what nobody asks: who asked had no more time for it."""
        if room.scope is None or room.scope.cancel_called or question.given is not None:
            return
        with suppress(OpenFangError):  # it went on meanwhile, or its end will be written later
            await self.ledger.move(task_id, _back_at_work)


async def _kept(change: Callable[[], Awaitable[T]]) -> T:
    with shielded():
        return await change()


async def _made(change: Callable[[], Awaitable[T]], made: asyncio.Future[T]) -> None:
    """Make a change for whoever waits for it, if they still do."""
    try:
        result = await _kept(change)
    except Exception as error:  # noqa: BLE001 - it is raised where the change is waited for
        if not made.done():
            made.set_exception(error)
    else:
        if not made.done():
            made.set_result(result)
    finally:
        made.cancel()


def _back_at_work(task: Task) -> Moved:
    if not task.state.waiting:
        raise Conflict(f"The task {task.id} is {task.state.value}.")
    return Moved(state=TaskState.WORKING)
