"""The shapes of what was used up, as JSON Schema."""

from __future__ import annotations

from openfang.core.usage import DAYS, GROUPS
from openfang.edges.api.schemas import COUNT, TEXT, Schema, listed, one_of, whole, word

USAGE_QUERY: dict[str, Schema] = {
    "by": one_of(*GROUPS),
    "since": {"type": "string", "anyOf": [{"pattern": DAYS}, {"format": "date"}]},
    "agent": word(),
    "key": word(),
}
_SPENDING: dict[str, Schema] = {
    "requests": COUNT,
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "cost_usd": {"type": "number", "minimum": 0},
    "tool_calls": COUNT,
    "schema_bytes": COUNT,
}
COMPONENTS: dict[str, Schema] = {
    "UsageReport": whole(
        {
            "by": one_of(*GROUPS),
            "since": {"type": "string", "format": "date"},
            "usage": listed(whole(_SPENDING, **dict.fromkeys(GROUPS, TEXT))),
            "total": whole(_SPENDING),
            "more": {"type": "boolean"},
        }
    ),
}
