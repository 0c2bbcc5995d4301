"""The operations of A2A on our tasks, in the words of version 1.0; 0.3 is translated to them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from openfang.core.tasks import Task
from openfang.edges.a2a.asked import asked_in
from openfang.edges.a2a.convert import write_event, write_task
from openfang.edges.a2a.faults import told
from openfang.edges.a2a.reading import (
    filter_of,
    history_of,
    missing,
    push_of,
    sent_of,
    task_id_of,
    write_push,
)
from openfang.edges.a2a.sdk import RequestHandler, ServerCallContext, errors, pb
from openfang.edges.a2a.settling import settled
from openfang.edges.a2a.telling import Telling
from openfang.edges.a2a.wishes import options_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable

    from openfang.core.calls import Caller
    from openfang.core.session import Options
    from openfang.core.tasks import Seen, Sent, TaskPage, Tasks
    from openfang.edges.a2a.asked import Asked
    from openfang.edges.a2a.staying import Staying
    from openfang.edges.a2a.telling import Event

    Written: TypeAlias = pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent
    Card: TypeAlias = Callable[[str, Caller], Awaitable[pb.AgentCard | None]]


class Handler(RequestHandler):
    """Serves all agents. Which one is meant, and for whom, comes with each request."""

    def __init__(self, card: Card, staying: Staying) -> None:
        self._card = card
        self._staying = staying

    async def send(self, params: pb.SendMessageRequest, asked: Asked) -> Task:
        """Take a message; unless told otherwise, wait for what becomes of it."""
        at_once = params.configuration.return_immediately
        with told(asked.came.chain):
            sent, options = _sent(params, asked)
            tasks = asked.tasks(options.chain)
            task = await tasks.send(sent, options)
            return task if at_once else await settled(self._staying, asked.came, tasks, task)

    async def on_message_send(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> pb.Task:
        """Take a message."""
        history = history_of(params.configuration)
        asked = asked_in(context)
        return write_task(_lean(await self.send(params, asked), asked), history=history)

    async def send_story(
        self, params: pb.SendMessageRequest, asked: Asked
    ) -> AsyncGenerator[Event]:
        """Take a message, and tell what becomes of it until it is the caller's turn again."""
        with _until_stopped(asked), told(asked.came.chain):
            sent, options = _sent(params, asked)
            tasks = asked.tasks(options.chain)
            task, telling = await tasks.send(sent, options), Telling()
            async for seen in asked.watches(tasks.watch(task.id)):
                for event in _events(telling, seen):
                    yield event
                if _task_of(seen).state.resting:
                    return

    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Written]:
        """Take a message, and tell what becomes of it."""
        asked, history = asked_in(context), history_of(params.configuration)
        async for event in self.send_story(params, asked):
            yield write_event(asked.given.event(event), history)

    async def watch_story(
        self, params: pb.SubscribeToTaskRequest, asked: Asked
    ) -> AsyncGenerator[Event]:
        """Tell a task as it is, and then what becomes of it until it has ended."""
        task_id = task_id_of("id", params.id)
        with _until_stopped(asked), told(asked.came.chain):
            telling = Telling()
            async for seen in asked.watches(asked.tasks().watch(task_id)):
                if isinstance(seen, Task):
                    _check_begun(asked, seen)
                for event in _events(telling, seen):
                    yield event

    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Written]:
        """Tell a task, and what becomes of it."""
        asked = asked_in(context)
        async for event in self.watch_story(params, asked):
            yield write_event(asked.given.event(event))

    async def get(self, params: pb.GetTaskRequest, asked: Asked) -> Task:
        """Read a task."""
        task_id = task_id_of("id", params.id)
        with told(asked.came.chain):
            return await _own(asked, asked.tasks(), task_id)

    async def on_get_task(self, params: pb.GetTaskRequest, context: ServerCallContext) -> pb.Task:
        """Read a task."""
        asked, history = asked_in(context), history_of(params)
        return write_task(_lean(await self.get(params, asked), asked), history=history)

    async def page(self, params: pb.ListTasksRequest, asked: Asked) -> tuple[TaskPage, int]:
        """List the caller's tasks of this agent, and say how many of them a page has."""
        wanted = filter_of(params, asked.agent)
        with told(asked.came.chain):
            return await asked.tasks().page(wanted), wanted.limit

    async def on_list_tasks(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        """List tasks."""
        asked, history = asked_in(context), history_of(params)
        artifacts = params.include_artifacts
        page, limit = await self.page(params, asked)
        return pb.ListTasksResponse(
            tasks=[
                write_task(_lean(task, asked), history=history, with_artifacts=artifacts)
                for task in page.tasks
            ],
            next_page_token=page.after,
            page_size=limit,
            total_size=page.total,
        )

    async def cancel(self, params: pb.CancelTaskRequest, asked: Asked) -> Task:
        """End a task, and the work on it."""
        task_id = task_id_of("id", params.id)
        with told(asked.came.chain, errors.TaskNotCancelableError):
            tasks = asked.tasks()
            await _own(asked, tasks, task_id)
            return await tasks.cancel(task_id)

    async def on_cancel_task(
        self, params: pb.CancelTaskRequest, context: ServerCallContext
    ) -> pb.Task:
        """End a task."""
        asked = asked_in(context)
        return write_task(_lean(await self.cancel(params, asked), asked))

    async def on_create_task_push_notification_config(
        self, params: pb.TaskPushNotificationConfig, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        """Let somebody be told of what happens to a task."""
        asked = asked_in(context)
        task_id, push = task_id_of("taskId", params.task_id), push_of(params, asked.version)
        with told(asked.came.chain):
            tasks = asked.tasks()
            await _own(asked, tasks, task_id)
            return write_push(await tasks.set_push(push))

    async def on_get_task_push_notification_config(
        self, params: pb.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        """Read who is told; without an id, the first of them."""
        asked = asked_in(context)
        task_id = task_id_of("taskId", params.task_id)
        with told(asked.came.chain):
            tasks = asked.tasks()
            await _own(asked, tasks, task_id)
            found = [push for push in await tasks.pushes(task_id) if params.id in ("", push.id)]
        if not found:
            raise errors.TaskNotFoundError(f"The task {task_id} tells nobody {params.id}.")
        return write_push(found[0])

    async def on_list_task_push_notification_configs(
        self, params: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        """List who is told."""
        asked = asked_in(context)
        task_id = task_id_of("taskId", params.task_id)
        with told(asked.came.chain):
            tasks = asked.tasks()
            await _own(asked, tasks, task_id)
            found = await tasks.pushes(task_id)
        return pb.ListTaskPushNotificationConfigsResponse(configs=map(write_push, found))

    async def on_delete_task_push_notification_config(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Tell somebody no longer."""
        asked = asked_in(context)
        task_id = task_id_of("taskId", params.task_id)
        if not params.id:
            raise missing("id")
        with told(asked.came.chain):
            tasks = asked.tasks()
            await _own(asked, tasks, task_id)
            await tasks.delete_push(task_id, params.id)

    async def on_get_extended_agent_card(
        self, params: pb.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> pb.AgentCard:
        """Show the agent as this caller may see it."""
        del params
        asked = asked_in(context)
        with told(asked.came.chain):
            card = await self._card(asked.agent, asked.came.caller)
        if card is None:
            raise errors.ExtendedAgentCardNotConfiguredError(f"{asked.agent} has no card here.")
        return card


def _sent(params: pb.SendMessageRequest, asked: Asked) -> tuple[Sent, Options]:
    sent = asked.taken.sent(sent_of(params, asked.agent, asked.version))
    told_of = {**sent.metadata, **sent.message.metadata}
    return sent, options_of(told_of, asked.came.chain, asked.came.headers)


def _lean(task: Task, asked: Asked) -> Task:
    """Lay aside what the library need not write."""
    return asked.given.task(task)


async def _own(asked: Asked, tasks: Tasks, task_id: str) -> Task:
    """Read a task of this agent's: at another one's address it does not exist."""
    task = await tasks.get(task_id)
    _check_agent(asked, task)
    return task


def _check_agent(asked: Asked, task: Task) -> None:
    if task.agent != asked.agent:
        raise errors.TaskNotFoundError(f"{asked.agent} has no task {task.id}.")


def _check_begun(asked: Asked, task: Task) -> None:
    _check_agent(asked, task)
    if task.state.final:
        raise errors.UnsupportedOperationError(
            f"The task {task.id} is {task.state.value}: nothing happens to it any more. "
            "Way out: get it."
        )


def _task_of(seen: Seen) -> Task:
    return seen if isinstance(seen, Task) else seen.task


def _events(telling: Telling, seen: Seen) -> Iterable[Event]:
    return (seen,) if isinstance(seen, Task) else telling.events(seen)


@contextmanager
def _until_stopped(asked: Asked) -> Generator[None]:
    """Let a story just end where the node does."""
    try:
        yield
    except errors.InternalError:
        if asked.came.node.ready:
            raise
