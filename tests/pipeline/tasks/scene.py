"""A task service on a real database, writer and broker; works are plain functions of the test."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint
from tests.slow import Slow

from openfang.audit.broker import Broker
from openfang.audit.chain import digest
from openfang.core.ids import new_id
from openfang.core.results import text_part, text_result
from openfang.core.tasks import Role, Sent, TaskMessage
from openfang.pipeline.tasks.service import TaskBounds, TaskService
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.processes import Process
from openfang.storage.tasks import TaskStore
from openfang.storage.writer import Writer
from openfang.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from openfang.audit.broker import Statements
    from openfang.core.clients import Client
    from openfang.core.events import Record
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Seen, Task
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.units import Notice

ME = "key:me"


@dataclass(kw_only=True)
class Scene:
    """A node with nothing but tasks."""

    service: TaskService
    database: Database
    process: Process
    clock: ManualClock

    async def begin(
        self, work: Work, text: str = "go", *, message_id: str = "", caller: str = ME, **more: Any
    ) -> Task:
        sent = Sent(agent=more.pop("agent", "echo"), message=says(text, message_id))
        known: dict[str, Any] = {"context": "talk", "session": "session_1", **more}
        return await self.service.begin(sent, caller=caller, work=work, **known)

    def states(self, task: Task) -> list[str]:
        return [state.value for _, _, state in at_once(self.service.states(task.id))]

    def records(self, task: Task) -> list[tuple[str, str, str]]:
        sql = (
            "SELECT payload ->> '$.from', payload ->> '$.to', payload ->> '$.reason' "
            "FROM audit WHERE event = 'task_changed' AND task_id = ? ORDER BY seq"
        )
        return [(a, b, c or "") for a, b, c in self.database.read_now(sql, (task.id,))]


def says(text: str, message_id: str = "", *parts: dict[str, Any]) -> TaskMessage:
    message_id = message_id or new_id("message")
    return TaskMessage(id=message_id, role=Role.USER, parts=(text_part(text), *parts))


@asynccontextmanager
async def scene(
    folder: Path,
    *,
    bounds: TaskBounds | None = None,
    busy: bool = False,
    written: Callable[[], Awaitable[None]] = checkpoint,
    **more: Any,
) -> AsyncGenerator[Scene]:
    """Open one in a folder, and end it as a node ends: the works are cancelled.

    What a busy one reads and writes takes a turn of the loop before and after, or what it writes
    as long as `written` does.
    """
    clock, file = ManualClock(), folder / "openfang.db"
    database, process = await to_thread.run_sync(open_home, file), Process(folder / "run")
    writer = Writer(path=file, node="n", digest=digest)
    try:
        broker = Broker(writer=writer, process=process, redact=lambda text: text)

        async def append(
            records: Sequence[Record], statements: Statements, notices: tuple[Notice, ...] = ()
        ) -> object:
            await checkpoint()
            numbers = await broker.append(records, statements, notices)
            await written()
            return numbers

        service = TaskService(
            store=TaskStore(Slow(database) if busy else database),
            append=append if busy else broker.append,
            process=process,
            low_water=lambda: broker.low_water,
            now=clock.time_ns,
            bounds=lambda: bounds or TaskBounds(),
            **more,
        )
        async with anyio.create_task_group() as group:
            await group.start(service.run)
            yield Scene(service=service, database=database, process=process, clock=clock)
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await writer.drain()
        writer.close()
        process.release()
        database.close()


async def answers(client: Client, listener: Listener) -> Result:
    """Work that is done at once."""
    del client, listener
    return text_result("done")


@dataclass
class Held:
    """Work that goes on until it is let go, or ended."""

    began: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    listener: Listener | None = None

    async def __call__(self, client: Client, listener: Listener) -> Result:
        del client
        self.listener = listener
        self.began.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        return text_result("done")


async def everything(service: TaskService, task_id: str) -> list[Seen]:
    """Watch a task to its end."""
    return [seen async for seen in service.watch(task_id)]


async def cut_off(doing: Coroutine[Any, Any, object], turns: int) -> None:
    """Cancel a request as an edge does whose peer is gone, so many turns of the loop later."""
    request = asyncio.ensure_future(doing)
    for _ in range(turns):
        await checkpoint()
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request


async def idle(service: TaskService) -> None:
    """Wait until nothing is worked on."""
    with anyio.fail_after(30):
        while any(room.task is not None for room in service._rooms):
            await checkpoint()
