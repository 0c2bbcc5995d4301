"""`/api/a2a`: work that outlives its request, for our agents; and agents elsewhere.

A task of another caller does not exist. What is sent elsewhere is a governed call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.ids import Kind, tool_id
from openfang.core.task_wire import states_body, task_body, tasks_body
from openfang.core.tasks import TaskFilter, TaskState
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import BY_PIPELINE, Endpoint, Text
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.routes.node import still_of
from openfang.edges.api.routes.tools import CALL_HEADERS, made, read_options
from openfang.edges.api.task_events import task_stream
from openfang.edges.api.tasks import DISCOVER, NEW_TASK, SEND, TASK_EVENT, TASKS_QUERY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.api.exchange import Answer, Asked, Stream

_TASKS: Final = "/api/a2a/tasks"
_ONE: Final = "/api/a2a/tasks/{id}"
_DISCOVER: Final = tool_id(Kind.BUILTIN, "a2a_discover")
_SEND: Final = tool_id(Kind.BUILTIN, "a2a_send")
_NAMES: Final = {"session_id": "context"}
_SECOND: Final = 1_000_000_000
_ACCEPTED: Final = 202
_WAITING_HEADERS: Final = {
    **CALL_HEADERS,
    "Prefer": "`wait=SECONDS`: wait for a person's answer instead of 202.",
}


async def _peers(asked: Asked) -> Answer:
    found = await asked.session.peers()
    return json_answer({"agents": found, "total": len(found)})


async def _discover_peer(asked: Asked) -> Answer:
    return json_answer(await asked.session.discover_peer(asked.path["name"]))


async def _discover(asked: Asked) -> Answer | Stream:
    return await made(asked, _DISCOVER, asked.body, read_options({}, asked.headers))


async def _send(asked: Asked) -> Answer | Stream:
    given: Mapping[str, Any] = asked.body
    arguments = {_NAMES.get(name, name): value for name, value in given.items()}
    peer: str | None = arguments.pop("agent", None)
    tool = _SEND if peer is None else tool_id(Kind.A2A, peer)
    return await made(asked, tool, arguments, read_options({}, asked.headers))


async def _begin(asked: Asked) -> Answer:
    asked.node.check_call(asked.caller, "message")
    return json_answer(task_body(await asked.session.send_task(**asked.body)), _ACCEPTED)


async def _list(asked: Asked) -> Answer:
    query = dict(asked.query)
    if "state" in query:
        query["state"] = TaskState(query["state"])
    if "since" in query:
        query["since"] *= _SECOND
    return json_answer(tasks_body(await asked.session.tasks(TaskFilter(**query))))


async def _show(asked: Asked) -> Answer:
    task, states = await asked.session.task(asked.path["id"])
    return json_answer({**task_body(task), "states": states_body(states)})


async def _cancel(asked: Asked) -> Answer:
    return json_answer(task_body(await asked.session.cancel_task(asked.path["id"])))


async def _events(asked: Asked) -> Stream:
    still = still_of(asked)
    return await task_stream(
        asked.session.watch_task(asked.path["id"]),
        asked.node.place(asked.caller),
        lambda: asked.node.ready and still(),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/a2a/agents",
        name="list_peers",
        summary="List the agents elsewhere that are configured, and how each is.",
        handle=_peers,
        answers={200: "Peers"},
    ),
    Endpoint(
        method="POST",
        path="/api/a2a/agents/{name}/discover",
        name="discover_peer",
        summary="Ask an agent elsewhere that is configured for its card, now.",
        handle=_discover_peer,
        awaited=True,
        body=schemas.NOTHING,
        answers={200: "Peer"},
        problems=(404, 422),
    ),
    Endpoint(
        method="POST",
        path="/api/a2a/discover",
        name="discover_agent",
        summary="Read the card of an agent elsewhere: a call of a2a_discover.",
        handle=_discover,
        awaited=True,
        work=BY_PIPELINE,
        headers=_WAITING_HEADERS,
        body=DISCOVER,
        largest=schemas.LARGEST_CALL,
        answers={200: "Result", 202: "Problem"},
        streams=Text("text/event-stream", schemas.PROGRESS),
        problems=(403, 404, 422),
    ),
    Endpoint(
        method="POST",
        path="/api/a2a/send",
        name="send_elsewhere",
        summary="Send a message to an agent elsewhere, and wait: a call of it, or of a2a_send.",
        handle=_send,
        awaited=True,
        work=BY_PIPELINE,
        headers=_WAITING_HEADERS,
        body=SEND,
        largest=schemas.LARGEST_CALL,
        answers={200: "Result", 202: "Problem"},
        streams=Text("text/event-stream", schemas.PROGRESS),
        problems=(403, 404, 422),
    ),
    Endpoint(
        method="GET",
        path=_TASKS,
        name="list_tasks",
        summary="List tasks, the last changed first: one's own, or all for who watches.",
        handle=_list,
        query=TASKS_QUERY,
        answers={200: "Tasks"},
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path=_TASKS,
        name="begin_task",
        summary="Give an agent of this node work, or the answer that a task waits for.",
        handle=_begin,
        body=NEW_TASK,
        largest=schemas.LARGEST_CALL,
        answers={202: "Task"},
        problems=(404, 409, 422),
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_task",
        summary="Show a task, and the states it went through.",
        handle=_show,
        answers={200: "TaskWithStates"},
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/cancel",
        name="cancel_task",
        summary="End a task, and the work on it.",
        handle=_cancel,
        body=schemas.NOTHING,
        answers={200: "Task"},
        problems=(404, 409, 422),
    ),
    Endpoint(
        method="GET",
        path=f"{_ONE}/events",
        name="watch_task",
        summary="A task as it is, then all that happens to it, until it has ended.",
        handle=_events,
        answers={200: Text("text/event-stream", TASK_EVENT)},
        problems=(404, 429),
    ),
)
