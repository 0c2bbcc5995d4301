"""The operations answered in the JSON of A2A 1.0: the same for both of its bindings."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from openfang.edges.a2a.reading import history_of
from openfang.edges.a2a.sdk import MessageToDict, pb
from openfang.edges.a2a.written import event_json, page_json, task_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.edges.a2a.asked import Asked
    from openfang.edges.a2a.handler import Handler
    from openfang.edges.a2a.telling import Event
    from openfang.edges.a2a.written import Json


class Answers:
    """What the handler finds, as it is written."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def send(self, params: pb.SendMessageRequest, asked: Asked) -> Json:
        """Take a message."""
        history = history_of(params.configuration)
        return {"task": task_json(await self._handler.send(params, asked), history)}

    async def get(self, params: pb.GetTaskRequest, asked: Asked) -> Json:
        """Read a task."""
        history = history_of(params)
        return task_json(await self._handler.get(params, asked), history)

    async def cancel(self, params: pb.CancelTaskRequest, asked: Asked) -> Json:
        """End a task."""
        return task_json(await self._handler.cancel(params, asked))

    async def page(self, params: pb.ListTasksRequest, asked: Asked) -> Json:
        """List tasks."""
        history = history_of(params)
        page, limit = await self._handler.page(params, asked)
        return page_json(page, limit, history, with_artifacts=params.include_artifacts)

    async def set_push(self, params: pb.TaskPushNotificationConfig, asked: Asked) -> Json:
        """Let somebody be told of what happens to a task."""
        handler = self._handler
        kept = await handler.on_create_task_push_notification_config(params, asked.context())
        return MessageToDict(kept)

    async def push(self, params: pb.GetTaskPushNotificationConfigRequest, asked: Asked) -> Json:
        """Read who is told."""
        handler = self._handler
        found = await handler.on_get_task_push_notification_config(params, asked.context())
        return MessageToDict(found)

    async def pushes(self, params: pb.ListTaskPushNotificationConfigsRequest, asked: Asked) -> Json:
        """List who is told."""
        handler = self._handler
        found = await handler.on_list_task_push_notification_configs(params, asked.context())
        return MessageToDict(found)

    async def delete_push(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, asked: Asked
    ) -> None:
        """Tell somebody no longer."""
        await self._handler.on_delete_task_push_notification_config(params, asked.context())

    async def card(self, params: pb.GetExtendedAgentCardRequest, asked: Asked) -> Json:
        """Show the agent as this caller may see it."""
        return MessageToDict(
            await self._handler.on_get_extended_agent_card(params, asked.context())
        )

    async def story(
        self, params: pb.SendMessageRequest | pb.SubscribeToTaskRequest, asked: Asked
    ) -> AsyncGenerator[Json]:
        """Begin a stream: what is wrong with it is known by its first event."""
        if isinstance(params, pb.SendMessageRequest):
            history = history_of(params.configuration)
            events = self._handler.send_story(params, asked)
        else:
            history, events = None, self._handler.watch_story(params, asked)
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
