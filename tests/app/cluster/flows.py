"""A node's part in the queues of DBOS, without the node: what it takes the test ends."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from openfang.app.cluster.durable.bell import Bell
from openfang.app.cluster.durable.flows import Flows
from openfang.app.cluster.durable.queues import Queue, put_run
from openfang.core.values import value
from openfang.storage.postgres.address import address
from openfang.storage.postgres.dialect import numbered
from openfang.storage.postgres.driver import connect

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.app.cluster.durable.flows import Take

LONG: Final = 60.0
SOON: Final = 20.0
WORKER: Final = "queue-worker-openfang"
QUEUE: Final = Queue(name="openfang", on_a_node=50, of_a_caller=50, seconds=LONG)


@value
class Run:
    """What somebody left."""

    id: str
    agent: str = "clock"
    caller: str = "key:me"


@contextmanager
def taking(url: str, take: Take) -> Generator[Flows]:
    """Take from a queue at which is looked once a minute, and when the bell is rung."""
    flows = Flows(address(url), "a/1", take, Bell(longest=LONG))
    flows.launch()
    try:
        flows.register(QUEUE)
        until = time.monotonic() + SOON
        while not any(one.name == WORKER for one in threading.enumerate()):  # made by DBOS
            assert time.monotonic() < until
            threading.Event().wait(0.01)
        yield flows
    finally:
        flows.leave()


def enqueue(url: str, *runs: Run) -> None:
    """Put runs on the queue, as a node that takes them over does."""
    asyncio.run(_enqueue(url, runs))


async def _enqueue(url: str, runs: tuple[Run, ...]) -> None:
    connection = await connect(address(url))
    async with connection.transaction():
        for run in runs:
            sql, parameters = put_run(QUEUE, run)
            await connection.execute(numbered(sql), *parameters)
    await connection.close()
