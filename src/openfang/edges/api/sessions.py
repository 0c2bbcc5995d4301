"""The shapes of conversations with agents, as JSON Schema."""

from __future__ import annotations

from openfang.core.agents import Speaker
from openfang.core.sessions import CURSOR, FORMATS, MOST_SESSIONS
from openfang.edges.api.schemas import (
    COUNT,
    TEXT,
    Schema,
    listed,
    one_of,
    or_null,
    page,
    ref,
    whole,
    word,
)

_MOMENT: Schema = {"type": "string", "format": "date-time"}

SESSIONS_QUERY: dict[str, Schema] = {
    "agent": word(),
    "after": {"type": "string", "pattern": CURSOR},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_SESSIONS},
}
EXPORT_QUERY: dict[str, Schema] = {"format": one_of(*FORMATS)}

COMPONENTS: dict[str, Schema] = {
    "Session": whole(
        {
            "id": TEXT,
            "agent": TEXT,
            "caller": TEXT,
            "name": TEXT,
            "title": TEXT,
            "messages": COUNT,
            "labels": listed(TEXT),
            "created_at": _MOMENT,
            "updated_at": _MOMENT,
        }
    ),
    "Sessions": {
        "allOf": [page("sessions", ref("Session")), whole({"after": or_null(TEXT)})],
    },
    "Turn": whole(
        {
            "seq": COUNT,
            "run": TEXT,
            "created_at": _MOMENT,
            "speaker": one_of(*(speaker.value for speaker in Speaker)),
            "text": TEXT,
            "wishes": listed(whole({"id": TEXT, "tool": TEXT, "arguments": {"type": "object"}})),
            "answers": or_null(TEXT),
            "is_error": {"type": "boolean"},
        }
    ),
    "SessionWithTurns": {"allOf": [ref("Session"), whole({"turns": listed(ref("Turn"))})]},
}
