"""Tasks and runs on queues: put there in one unit with their rows, and taken by any node."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from anyio import to_thread

from openfang.app.agents.rebuilding import Rebuilding
from openfang.app.cluster.durable.queues import put, put_run, queue_of
from openfang.app.cluster.durable.upkeep import Upkeep
from openfang.core.errors import AuditUnavailable, HomeError, Rejected
from openfang.core.values import dataclass
from openfang.storage.postgres.address import address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from openfang.app.agents.running import Agents
    from openfang.app.cluster.durable.flows import Flows
    from openfang.app.cluster.durable.queues import Queue
    from openfang.app.cluster.durable.standing import Standing
    from openfang.app.parts import Parts
    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.engine import Left, Recipe, Written
    from openfang.storage.tasks import Statement

    Taken: TypeAlias = tuple[str, Recipe | None, Future[None]]

_BEGIN_SECONDS: Final = 10.0
_END_SECONDS: Final = 20.0
_AGAIN_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.1
_log = logging.getLogger("openfang.durable")


@dataclass(slots=True, kw_only=True)
class Durable:
    """Keeps tasks on the queues of DBOS, and works on those that this node takes from them.

    `standing` says whether it may take any: a node that drains or is cut off takes none.
    """

    parts: Parts
    standing: Standing
    _flows: Flows | None = field(init=False, default=None)
    _door: MemoryObjectSendStream[Taken] = field(init=False)
    _late: bool = field(init=False, default=False)
    _count: int = field(init=False, default=0)
    _known: set[Queue] = field(init=False, default_factory=set["Queue"])
    _taking: anyio.Event = field(init=False, default_factory=anyio.Event)
    _turn: anyio.Event = field(init=False, default_factory=anyio.Event)
    _making: anyio.Lock = field(init=False, default_factory=anyio.Lock)
    _loop: asyncio.AbstractEventLoop = field(init=False)

    async def queued(self, task: Task, recipe: Written) -> Sequence[Statement]:
        """Give what puts a task on its queue, unless only this process can work on it."""
        written = await recipe()
        if written is None:
            return ()
        return (put(await self._queue(task.agent), task, written),)

    def kept(self) -> None:
        """Look at once: it can be taken."""
        self._ring()

    def _ring(self) -> None:
        if self._flows is not None:
            self._flows.bell.ring()

    async def left(self, run: Left) -> Sequence[Statement]:
        """Give what puts a run on its queue, where this node has any by now."""
        if not await self._has_any():
            return ()
        try:
            return (put_run(await self._queue(run.agent), run),)
        except Rejected:
            return ()
        except Exception:  # noqa: BLE001 - of DBOS, or of the drivers below it
            _log.exception("The run %s cannot be put on a queue; this node goes on with it", run.id)
            return ()

    async def _has_any(self) -> bool:
        """Whether there are queues; who has only begun has them soon, and is waited for once."""
        if self._flows is None and self.standing.may_take and not self._late:
            with anyio.move_on_after(_BEGIN_SECONDS):
                await self._taking.wait()
            self._late = self._flows is None
        return self._flows is not None

    async def _queue(self, agent: str) -> Queue:
        queue = queue_of(agent, await self._bound(agent), self.parts.config.cluster)
        if queue not in self._known:
            await self._register(queue)
        return queue

    async def _bound(self, agent: str) -> int | None:
        source = (await self._agents()).running.get(agent)
        return source.spec.runs if source else None

    async def _register(self, queue: Queue) -> None:
        with anyio.move_on_after(_BEGIN_SECONDS):
            await self._taking.wait()
        async with self._making:
            if self._flows is None:
                raise Rejected(
                    "The node is not taking tasks: it starts, drains or has lost its database.",
                    status=503,
                    rule="not_serving",
                    way_out="send it again in a moment, or to another node",
                )
            await to_thread.run_sync(self._flows.register, queue)
            self._known.add(queue)

    async def _agents(self) -> Agents:
        assert self.parts.agents is not None  # noqa: S101 - a daemon has them
        return await self.parts.agents.opened()

    async def run(self) -> None:
        """Take tasks for as long as this node may, until cancelled."""
        self._loop = asyncio.get_running_loop()
        self.standing.on_change(self._change)
        self.standing.on_gone(self._take_over)
        await (await self._agents()).ready.wait()
        while True:
            if not self.standing.may_take:
                await self._turn.wait()
                continue
            try:
                await self._joined()
                async with self._launched() as flows:
                    await self._serve(flows)
            except Exception:  # noqa: BLE001 - of DBOS, or of the drivers below it
                _log.exception("The queues of tasks are out of reach; they are tried again")
                await anyio.sleep(_AGAIN_SECONDS)

    async def _take_over(self, node: str) -> None:
        """Take over from a dead node; one that takes nothing itself leaves that to the others."""
        if self._flows is None:
            return
        try:
            await Upkeep(self.parts, self._flows, await self._agents()).take_over(node)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("What %s had taken is taken back with the next look", node)

    def _change(self) -> None:
        turn, self._turn = self._turn, anyio.Event()
        turn.set()

    async def _joined(self) -> None:
        """Wait until others know this process: what nobody knows has taken is taken from it."""
        sql = "SELECT 1 FROM members WHERE node = ? AND process = ? AND left_at IS NULL"
        while not await self.parts.database.read(sql, self._me):  # noqa: ASYNC110 - once
            await anyio.sleep(_LOOK_SECONDS)

    @property
    def _me(self) -> tuple[str, str]:
        return self.parts.writer.node, self.parts.broker.process.id

    @asynccontextmanager
    async def _launched(self) -> AsyncGenerator[Flows]:
        flows = await to_thread.run_sync(self._made)
        await to_thread.run_sync(flows.launch)
        try:
            yield flows
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_END_SECONDS):
                end = flows.hand_over if self._is_ours(flows) else flows.leave
                await to_thread.run_sync(end, abandon_on_cancel=True)

    def _is_ours(self, flows: Flows) -> bool:
        """Whether what these have taken is this process's own; not if it was cut off meanwhile."""
        return not self.standing.cut and flows.executor == "/".join(self._me)

    def _made(self) -> Flows:
        for name in [name for name in os.environ if name.startswith("DBOS_")]:
            del os.environ[name]  # they would have it report to others
        from openfang.app.cluster.durable.flows import Flows  # noqa: PLC0415 - 0.7 s, in a thread

        return Flows(address(self.parts.config.storage.url), "/".join(self._me), self._take)

    async def _serve(self, flows: Flows) -> None:
        """Work on what is taken, until this node may not take any more."""
        self._flows, self._late = flows, False
        try:
            async with anyio.create_task_group() as works:
                self._door, taken = anyio.create_memory_object_stream["Taken"](float("inf"))
                works.start_soon(self._receive, works, taken)
                await self._open()
                works.start_soon(Upkeep(self.parts, flows, await self._agents()).run)
                while self.standing.may_take and self._is_ours(flows):
                    await self._turn.wait()
                await self._finish(flows)
                works.cancel_scope.cancel()
        finally:
            self._flows = None
            self._known.clear()

    async def _open(self) -> None:
        """Make the queue known that all share: tasks may be waiting on it for this node."""
        cluster = self.parts.config.cluster
        self._taking.set()
        for agent, source in (await self._agents()).running.items():
            queue = queue_of(agent, source.spec.runs, cluster)
            if queue not in self._known:
                await self._register(queue)

    async def _finish(self, flows: Flows) -> None:
        """Take nothing more; a node that drains ends what it has begun."""
        self._taking = anyio.Event()
        flows.rest()
        while self._count and self._is_ours(flows):
            await self._turn.wait()

    def _take(self, name: str, recipe: Recipe | None) -> Future[None]:
        """Begin to work on what was taken, from the thread that took it."""
        done = Future[None]()
        self._loop.call_soon_threadsafe(self._taken, (name, recipe, done))
        return done

    def _taken(self, taken: Taken) -> None:
        try:
            self._door.send_nowait(taken)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            taken[-1].cancel()

    async def _receive(self, works: TaskGroup, taken: MemoryObjectReceiveStream[Taken]) -> None:
        async with taken:
            async for one in taken:
                works.start_soon(self._work, *one)

    async def _work(self, name: str, recipe: Recipe | None, done: Future[None]) -> None:
        self._count += 1
        self._ring()  # where one was there may be more
        try:
            ended = await self._worked(name, recipe)
        except Exception as error:  # noqa: BLE001 - one that breaks is one task that fails
            _log.exception("The work on %s broke", name)
            _tell(done, error)
        else:
            if ended:
                _tell(done)
        finally:
            done.cancel()  # who is called off leaves it to others
            self._count -= 1
            self._ring()  # there is room for another
            if not self._count:
                self._change()

    async def _worked(self, name: str, recipe: Recipe | None) -> bool:
        agents = await self._agents()
        while True:
            try:
                if recipe is None:
                    return await agents.resuming.taken(name)
                build = partial(Rebuilding(self.parts, agents).build, recipe)
                return await self.parts.tasks.work(name, build)
            except (HomeError, AuditUnavailable) as error:  # nothing was done yet
                _log.warning("The work on %s waits to be begun: %s", name, error.message)
            await anyio.sleep(_AGAIN_SECONDS)


def _tell(done: Future[Any], error: Exception | None = None) -> None:
    """Say how it ended, if anybody still waits for that."""
    if done.set_running_or_notify_cancel():
        with suppress(Exception):
            done.set_result(None) if error is None else done.set_exception(error)
