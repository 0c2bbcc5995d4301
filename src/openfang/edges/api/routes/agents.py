"""`/api/agents`: see the agents, and talk to them. A message is a governed call of the agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.bodies import message_body
from openfang.core.ids import Kind, tool_id
from openfang.edges.api import schemas
from openfang.edges.api.agents import MESSAGE
from openfang.edges.api.endpoint import BY_PIPELINE, Endpoint, Text
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.progress import always_streamed
from openfang.edges.api.routes.tools import CALL_HEADERS, called, read_options

if TYPE_CHECKING:
    from openfang.core.progress import Listener
    from openfang.edges.api.exchange import Answer, Asked, Stream

_ONE = "/api/agents/{name}"


async def _list(asked: Asked) -> Answer:
    found = await asked.session.agents()
    return json_answer({"agents": found, "total": len(found)})


async def _show(asked: Asked) -> Answer:
    return json_answer(await asked.session.agent(asked.path["name"]))


async def _message(asked: Asked) -> Answer:
    return await _answered(asked)


async def _stream(asked: Asked) -> Stream:
    return always_streamed(lambda told: _answered(asked, told))


async def _answered(asked: Asked, told: Listener | None = None) -> Answer:
    tool = tool_id(Kind.AGENT, asked.path["name"])
    options = replace(read_options(asked.body, asked.headers), progress=told)
    arguments = {key: value for key, value in asked.body.items() if key != "context"}
    return await called(asked, tool, arguments, options, message_body)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/agents",
        name="list_agents",
        summary="List the agents that the key may call.",
        handle=_list,
        answers={200: "Agents"},
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_agent",
        summary="Show one of them.",
        handle=_show,
        answers={200: "Agent"},
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/message",
        name="send_message",
        summary="Send a message to an agent, and wait for its answer.",
        handle=_message,
        awaited=True,
        work=BY_PIPELINE,
        headers=CALL_HEADERS,
        body=MESSAGE,
        largest=schemas.LARGEST_CALL,
        answers={200: "ReplyOrFailure", 202: "Problem"},
        problems=(403, 404, 422),
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/stream",
        name="stream_message",
        summary="The same as a stream of events; what refuses it is one of them.",
        handle=_stream,
        awaited=True,
        work=BY_PIPELINE,
        headers=CALL_HEADERS,
        body=MESSAGE,
        largest=schemas.LARGEST_CALL,
        answers={200: Text("text/event-stream", schemas.PROGRESS)},
        problems=(403, 422),
    ),
)
