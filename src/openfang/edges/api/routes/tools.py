"""`/api/tools` and `/api/results`: see, call, explain and accept tools."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.bodies import explanation_body, failure_body, result_body, tool_body
from openfang.core.calls import Mode
from openfang.core.errors import CallCancelled, CallFailed, NotFound, UnknownTool
from openfang.core.ids import Kind
from openfang.core.session import NO_OPTIONS, Options
from openfang.core.tools import Risk
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import BY_PIPELINE, Access, Endpoint, Text
from openfang.edges.api.exchange import Answer, json_answer
from openfang.edges.api.progress import streamed, wants_progress
from openfang.edges.api.serving import go_on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.results import Result
    from openfang.edges.api.exchange import Asked, Headers, Stream

_WAIT = re.compile(rb"(?:\A|[,;\s])wait=([0-9]{1,6})(?:\Z|[,;\s])")
_LONGEST_WAIT = 600
_KINDS = {word: kind for kind in Kind for word in (kind.value, kind.source_type)}


async def _call(asked: Asked) -> Answer | Stream:
    options = read_options(asked.body, asked.headers)
    return await made(asked, asked.path["id"], asked.body.get("arguments", {}), options)


async def made(
    asked: Asked, tool: str, arguments: Mapping[str, Any], options: Options
) -> Answer | Stream:
    """Make a call; who can read a stream hears of it on its way."""
    if wants_progress(asked.headers):
        return await streamed(
            lambda told: called(asked, tool, arguments, replace(options, progress=told))
        )
    return await called(asked, tool, arguments, options)


async def called(
    asked: Asked,
    tool: str,
    arguments: Mapping[str, Any],
    options: Options,
    body: Callable[[Result], dict[str, Any]] = result_body,
) -> Answer:
    """Make a call, and answer with what it brought back."""
    try:
        result = await asked.session.call(tool, arguments, options)
    except CallFailed as failure:
        return _failure(failure)
    except asyncio.CancelledError:
        if asked.node.ready:
            raise
        return _failure(_cut_short())
    except UnknownTool:
        asked.node.charge(asked.caller, "call")  # who guesses names pays for it
        raise
    return json_answer(body(result))


def _failure(failure: CallFailed) -> Answer:
    code = (b"openfang-failure", failure.code.encode())
    return Answer(body=orjson.dumps(failure_body(failure)), headers=(code,))


def _cut_short() -> CallFailed:
    """The node ends before the call did: it was begun, so nobody may think that it was not."""
    go_on()
    return CallCancelled(
        "The node is ending: the call was cancelled, and may have had an effect.",
        way_out="openfang audit tail shows how far it got",
    )


async def _explain(asked: Asked) -> Answer:
    body = asked.body
    found = await asked.session.explain(
        asked.path["id"], body.get("arguments", {}), read_options(body, asked.headers)
    )
    return json_answer(explanation_body(found))


def read_options(body: dict[str, Any], headers: Headers) -> Options:
    """Read what the caller chose; whether it may is decided further in."""
    context: dict[str, Any] | None = body.get("context")
    token, prefer = headers.get(b"x-admin-token"), headers.get(b"prefer")
    if context is None:
        if token is None and prefer is None:
            return NO_OPTIONS
        context = {}
    mode: str | None = context.get("mode")
    return Options(
        mode=Mode(mode) if mode else None,
        project=context.get("project_id"),
        spec=context.get("spec_hash"),
        task=context.get("task_id"),
        run=context.get("run"),
        blacklist=frozenset(context.get("blacklist", ())),
        admin_token=token.decode("latin-1") if token else None,
        patience=_patience(prefer or b""),
    )


def _patience(prefer: bytes) -> float:
    """How long the caller would rather wait for a person than be sent away (RFC 7240)."""
    found = _WAIT.search(prefer)
    return float(min(int(found[1]), _LONGEST_WAIT)) if found else 0.0


async def _list(asked: Asked) -> Answer:
    source, risk = asked.query.get("source"), asked.query.get("risk")
    found = await asked.session.tools(
        kind=_KINDS[source] if source else None,
        risk=Risk.parse(risk) if risk else None,
        tag=asked.query.get("tag"),
        disabled=asked.query.get("all", False),
    )
    return json_answer({"tools": [tool_body(tool) for tool in found], "total": len(found)})


async def _show(asked: Asked) -> Answer:
    tool, held = await asked.session.tool(asked.path["id"])
    diff = held["diff"] if held else ""
    return json_answer({**tool_body(tool), "diff": diff, "held_back": held})


async def _accept(asked: Asked) -> Answer:
    return json_answer(tool_body(await asked.session.accept_tool(asked.path["id"])))


async def _result(asked: Asked) -> Answer:
    body = await asked.session.whole_result(asked.path["id"])
    if body is None:
        raise NotFound(
            "That result is not kept, no longer kept, or another caller's.",
            way_out="make the call again",
        )
    return Answer(body=body)


CALL_HEADERS = {
    "X-Admin-Token": "A second credential, for tools that require it.",
    "traceparent": "The W3C trace that the call belongs to.",
    "X-OpenStarry-Trace-ID": "A trace of another system, kept as received.",
    "OpenFang-Chain": "Who called whom before, with commas: it makes the chain deeper.",
}
CALL = Endpoint(
    method="POST",
    path="/api/tools/{id}/call",
    name="call_tool",
    summary="Make a governed call of a tool.",
    handle=_call,
    awaited=True,
    work=BY_PIPELINE,
    headers={
        **CALL_HEADERS,
        "Prefer": "`wait=SECONDS`: wait for a person's answer instead of 202.",
    },
    body=schemas.CALL,
    largest=schemas.LARGEST_CALL,
    answers={200: "Result", 202: "Problem"},
    streams=Text("text/event-stream", schemas.PROGRESS),
    problems=(403, 404, 422),
)
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/tools",
        name="list_tools",
        summary="List the tools that the key can see.",
        handle=_list,
        query=schemas.TOOL_QUERY,
        answers={200: "Tools"},
    ),
    CALL,
    Endpoint(
        method="POST",
        path="/api/tools/{id}/explain",
        name="explain_call",
        summary="Decide on a call, and do nothing.",
        handle=_explain,
        awaited=True,
        headers=CALL_HEADERS,
        body=schemas.CALL,
        largest=schemas.LARGEST_CALL,
        answers={200: "Explanation"},
        problems=(404, 422),
    ),
    Endpoint(
        method="POST",
        path="/api/tools/{id}/accept",
        name="accept_tool",
        summary="Take a tool that is held back as it is now.",
        handle=_accept,
        access=Access.ADMIN,
        body=schemas.NOTHING,
        answers={200: "Tool"},
        problems=(403, 404, 422),
    ),
    Endpoint(
        method="GET",
        path="/api/tools/{id}",
        name="show_tool",
        summary="Show everything that is known of a tool.",
        handle=_show,
        answers={200: "ToolWithDiff"},
        problems=(404,),
    ),
    Endpoint(
        method="GET",
        path="/api/results/{id}",
        name="show_result",
        summary="Read the whole of a result that was cut.",
        handle=_result,
        answers={200: "WholeResult"},
        problems=(404,),
    ),
)
