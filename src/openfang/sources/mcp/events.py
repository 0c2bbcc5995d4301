"""Waiting for whichever of several events comes first."""

from __future__ import annotations

import anyio


async def first_of(*events: anyio.Event) -> None:
    """Wait until one of them is set."""
    async with anyio.create_task_group() as group:
        for event in events:
            group.start_soon(_then_end, event, group.cancel_scope)


async def _then_end(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
