"""The shapes of agents and of what they answer, as JSON Schema."""

from __future__ import annotations

from openfang.core.agents import Ending
from openfang.edges.api.schemas import (
    RECEIPT,
    Schema,
    exact,
    listed,
    one_of,
    or_null,
    page,
    ref,
    whole,
    word,
)

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_WORDS = listed(_TEXT)

MESSAGE = exact({"message": _TEXT, "session": word()}, "message")

COMPONENTS: dict[str, Schema] = {
    "Agent": whole(
        {
            "name": _TEXT,
            "title": _TEXT,
            "description": _TEXT,
            "version": _TEXT,
            "tags": _WORDS,
            "model": _TEXT,
        },
        tools=_WORDS,
        agents=_WORDS,
        workspace=_TEXT,
        parent=or_null(_TEXT),
    ),
    "Agents": page("agents", ref("Agent")),
    "Usage": whole(
        {
            "requests": _COUNT,
            "input_tokens": _COUNT,
            "output_tokens": _COUNT,
            "cost_usd": {"type": "number", "minimum": 0},
        }
    ),
    "Reply": whole(
        {
            "response": _TEXT,
            "session": or_null(_TEXT),
            "ending": or_null(one_of(*(ending.value for ending in Ending))),
            "usage": or_null(ref("Usage")),
            "call_id": _TEXT,
            "audit": or_null(RECEIPT),
        }
    ),
    "ReplyOrFailure": {"anyOf": [ref("Reply"), ref("Result")]},
}
