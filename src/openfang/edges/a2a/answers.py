"""The operations answered in the JSON of A2A 1.0: the same for both of its bindings."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from openfang.edges.a2a.reading import history_of
from openfang.edges.a2a.sdk import pb
from openfang.edges.a2a.written import event_json, page_json, task_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.edges.a2a.handler import Handler
    from openfang.edges.a2a.sdk import ServerCallContext
    from openfang.edges.a2a.telling import Event
    from openfang.edges.a2a.written import Json


class Answers:
    """What the handler finds, as it is written."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def send(self, params: pb.SendMessageRequest, context: ServerCallContext) -> Json:
        """Take a message."""
        history = history_of(params.configuration)
        return {"task": task_json(await self._handler.send(params, context), history)}

    async def get(self, params: pb.GetTaskRequest, context: ServerCallContext) -> Json:
        """Read a task."""
        history = history_of(params)
        return task_json(await self._handler.get(params, context), history)

    async def cancel(self, params: pb.CancelTaskRequest, context: ServerCallContext) -> Json:
        """End a task."""
        return task_json(await self._handler.cancel(params, context))

    async def page(self, params: pb.ListTasksRequest, context: ServerCallContext) -> Json:
        """List tasks."""
        history = history_of(params)
        page, limit = await self._handler.page(params, context)
        return page_json(page, limit, history, with_artifacts=params.include_artifacts)

    async def story(
        self, params: pb.SendMessageRequest | pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Json]:
        """Begin a stream: what is wrong with it is known by its first event."""
        if isinstance(params, pb.SendMessageRequest):
            history = history_of(params.configuration)
            events = self._handler.send_story(params, context)
        else:
            history, events = None, self._handler.watch_story(params, context)
        first = await anext(events, None)
        return _told(first, events, history)


async def _told(
    first: Event | None, events: AsyncGenerator[Event], history: int | None
) -> AsyncGenerator[Json]:
    async with aclosing(events):
        if first is not None:
            yield event_json(first, history)
        async for event in events:
            yield event_json(event, history)
