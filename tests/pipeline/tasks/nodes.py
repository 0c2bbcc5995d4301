"""Several nodes with nothing but tasks, on one real Postgres database."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from tests.pipeline.tasks.scene import ME, says

from openfang.audit.broker import Broker
from openfang.audit.chain import digest
from openfang.core.tasks import Sent
from openfang.pipeline.tasks.service import TaskService
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import PostgresStorage
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.processes import Process
from openfang.storage.tasks import TaskStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.service import Work


@dataclass(frozen=True)
class Node:
    """One of them."""

    service: TaskService
    storage: PostgresStorage
    writer: PostgresWriter

    async def begin(self, work: Work, text: str = "go") -> Task:
        sent = Sent(agent="echo", message=says(text))
        return await self.service.begin(
            sent, caller=ME, context="talk", session="session_1", work=work
        )


@asynccontextmanager
async def node(url: str, folder: Path, name: str) -> AsyncGenerator[Node]:
    """Open one. It hardly ever looks by itself: what it sees at once it was told."""
    storage, process = PostgresStorage(Address(url)), Process(folder / "run")
    writer = PostgresWriter(address=Address(url), node=name, digest=digest)
    await writer.open()
    listening = anyio.Event()
    storage.on("tasks", lambda _: listening.set())
    try:
        broker = Broker(writer=writer, process=process, redact=lambda text: text)
        service = TaskService(
            store=TaskStore(storage),
            append=broker.append,
            process=process,
            low_water=lambda: broker.low_water,
            look_seconds=60.0,
        )
        service.listen(storage)
        with anyio.fail_after(30):
            await listening.wait()
        async with anyio.create_task_group() as group:
            await group.start(service.run)
            yield Node(service, storage, writer)
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await writer.drain()
            await writer.aclose()
            await storage.aclose()
        process.release()
