"""The shapes of agents and of what they answer, as JSON Schema."""

from __future__ import annotations

from openfang.core.agents import Ending
from openfang.core.budgets import Window
from openfang.core.calls import Mode
from openfang.edges.api.schemas import (
    CONTEXT,
    COUNT,
    RECEIPT,
    TEXT,
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

_WORDS = listed(TEXT)

MESSAGE = exact(
    {
        "message": TEXT,
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
            "name": TEXT,
            "title": TEXT,
            "description": TEXT,
            "version": TEXT,
            "tags": _WORDS,
            "model": TEXT,
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
        spec=or_null(TEXT),
        blacklist=_WORDS,
        tokens_per_hour=or_null(COUNT),
        cost_usd_per_hour=or_null({"type": "number", "minimum": 0}),
        tool_calls=or_null(COUNT),
        tool_calls_per_minute=or_null(COUNT),
        tool_timeout_secs=or_null({"type": "number", "minimum": 0}),
        receive_from=or_null(_WORDS),
        workspace=TEXT,
        deny_paths=_WORDS,
        sandbox=or_null(TEXT),
        layers=_WORDS,
        parent=or_null(TEXT),
    ),
    "Agents": page("agents", ref("Agent")),
    "Usage": whole(
        {
            "requests": COUNT,
            "input_tokens": COUNT,
            "output_tokens": COUNT,
            "cost_usd": {"type": "number", "minimum": 0},
        }
    ),
    "Reply": whole(
        {
            "response": TEXT,
            "session": or_null(TEXT),
            "ending": or_null(one_of(*(ending.value for ending in Ending))),
            "usage": or_null(ref("Usage")),
            "artifacts": listed(whole({"name": TEXT, "parts": listed({"type": "object"})})),
            "call_id": TEXT,
            "audit": or_null(RECEIPT),
        },
        budget=ref("ReachedBudget"),
    ),
    "ReachedBudget": whole(
        {
            "of": TEXT,
            "setting": TEXT,
            "window": one_of(*(window.value for window in Window)),
            "unit": one_of("tokens", "usd"),
            "limit": {"type": "number"},
            "used": {"type": "number"},
            "resets_at": or_null({"type": "string", "format": "date-time"}),
        }
    ),
    "ReplyOrFailure": {"anyOf": [ref("Reply"), ref("Result")]},
}
