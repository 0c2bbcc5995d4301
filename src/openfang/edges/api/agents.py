"""The shapes of agents and of what they answer, as JSON Schema."""

from __future__ import annotations

from openfang.core.agents import Ending
from openfang.core.calls import Mode
from openfang.edges.api.schemas import (
    CONTEXT,
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

MESSAGE = exact(
    {
        "message": _TEXT,
        "session": word(),
        "parts": {"type": "array", "items": {"type": "object"}, "maxItems": 1000},
        "metadata": {"type": "object"},
        "context": CONTEXT,
    },
    "message",
)

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
        network=_WORDS,
        shell=_WORDS,
        memory_read=_WORDS,
        memory_write=_WORDS,
        agents=_WORDS,
        agent_spawn={"type": "boolean"},
        agent_kill=_WORDS,
        mode=one_of(*(mode.value for mode in Mode)),
        projects=_WORDS,
        spec=or_null(_TEXT),
        blacklist=_WORDS,
        tokens_per_hour=or_null(_COUNT),
        cost_usd_per_hour=or_null({"type": "number", "minimum": 0}),
        tool_calls=or_null(_COUNT),
        tool_calls_per_minute=or_null(_COUNT),
        tool_timeout_secs=or_null({"type": "number", "minimum": 0}),
        receive_from=or_null(_WORDS),
        workspace=_TEXT,
        deny_paths=_WORDS,
        sandbox=or_null(_TEXT),
        layers=_WORDS,
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
            "artifacts": listed(whole({"name": _TEXT, "parts": listed({"type": "object"})})),
            "call_id": _TEXT,
            "audit": or_null(RECEIPT),
        }
    ),
    "ReplyOrFailure": {"anyOf": [ref("Reply"), ref("Result")]},
}
