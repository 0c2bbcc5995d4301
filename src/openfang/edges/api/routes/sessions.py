"""`/api/sessions`: conversations with agents. Another caller's do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.wire import session_body, turn_body
from openfang.edges.api.endpoint import Endpoint, Text
from openfang.edges.api.exchange import Stream, json_answer
from openfang.edges.api.sessions import EXPORT_QUERY, SESSIONS_QUERY

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ONE = "/api/sessions/{id}"
_TYPES = {"jsonl": b"application/x-ndjson", "md": b"text/markdown; charset=utf-8"}


async def _list(asked: Asked) -> Answer:
    found = await asked.session.sessions(**asked.query)
    bodies = [session_body(one) for one in found.sessions]
    return json_answer({"sessions": bodies, "total": found.total, "after": found.after})


async def _show(asked: Asked) -> Answer:
    session, turns = await asked.session.session(asked.path["id"])
    return json_answer({**session_body(session), "turns": [turn_body(turn) for turn in turns]})


async def _export(asked: Asked) -> Stream:
    form = asked.query.get("format", "jsonl")
    pieces = await asked.session.export_session(asked.path["id"], form)
    return Stream(pieces=pieces, content_type=_TYPES[form])


async def _delete(asked: Asked) -> Answer:
    return json_answer(session_body(await asked.session.delete_session(asked.path["id"])))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/sessions",
        name="list_sessions",
        summary="List conversations with agents, newest first: one's own, or all for who watches.",
        handle=_list,
        query=SESSIONS_QUERY,
        answers={200: "Sessions"},
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_session",
        summary="Show a whole conversation.",
        handle=_show,
        answers={200: "SessionWithTurns"},
        problems=(404, 422),
    ),
    Endpoint(
        method="GET",
        path=f"{_ONE}/export",
        name="export_session",
        summary="Write a conversation out, however long it is, as lines of JSON or Markdown.",
        handle=_export,
        work="message",
        query=EXPORT_QUERY,
        answers={200: Text("application/x-ndjson")},
        streams=Text("text/markdown"),
        problems=(404,),
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="delete_session",
        summary="Delete a conversation and all that was said in it.",
        handle=_delete,
        answers={200: "Session"},
        problems=(403, 404, 409),
    ),
)
