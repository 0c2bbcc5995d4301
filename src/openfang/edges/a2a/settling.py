"""Waiting for a task on behalf of a client: until it rests, or the client, key or node has gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from openfang.core.errors import CallFailed, Unauthenticated
from openfang.edges.api.serving import go_on

if TYPE_CHECKING:
    from openfang.core.tasks import Task, Tasks
    from openfang.edges.a2a.staying import Staying
    from openfang.edges.api.mount import Came


async def settled(staying: Staying, came: Came, tasks: Tasks, task: Task) -> Task:
    """Wait for a task; when the node ends before it does, it is told as it was."""
    if task.state.resting:
        return task
    with staying.stay(came) as stay:
        try:
            return await tasks.settled(task.id)
        except CallFailed:
            if came.node.ready:
                raise
        except asyncio.CancelledError:
            if not stay.ended:
                raise
            go_on()
    if came.node.ready:
        raise Unauthenticated(
            f"The key has ended, and the task {task.id} goes on.", way_out="use another key"
        )
    return task
