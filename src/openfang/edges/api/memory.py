"""The shapes of memories, as JSON Schema."""

from __future__ import annotations

from openfang.core.memory import LONGEST_QUERY, MOST_RECALLED
from openfang.edges.api.schemas import COUNT, TEXT, Schema, listed, or_null, ref, whole, word

SPACE_QUERY: dict[str, Schema] = {"agent": word(), "space": word()}
MEMORIES_QUERY: dict[str, Schema] = {
    **SPACE_QUERY,
    "query": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY},
    "after": {"type": "integer", "minimum": 1, "maximum": 2**53},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RECALLED},
}

COMPONENTS: dict[str, Schema] = {
    "Memory": whole(
        {
            "key": TEXT,
            "labels": listed(TEXT),
            "stored_at": {"type": "string", "format": "date-time"},
            "stored_by": TEXT,
            "asked_by": TEXT,
            "trace": TEXT,
            "call_id": TEXT,
        },
        value={},
        snippet=TEXT,
    ),
    "Memories": whole({"space": TEXT, "memories": listed(ref("Memory")), "after": or_null(COUNT)}),
}
