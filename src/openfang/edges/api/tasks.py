"""The shapes of tasks, of what is told of them, and of agents elsewhere, as JSON Schema."""

from __future__ import annotations

from openfang.core.task_wire import SEEN
from openfang.core.tasks import MOST_TASKS, Role, TaskState
from openfang.edges.api.schemas import (
    COUNT,
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

_OBJECT: Schema = {"type": "object"}
_FLAG: Schema = {"type": "boolean"}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_STATE = one_of(*(state.value for state in TaskState))
_URL: Schema = {"type": "string", "minLength": 1, "maxLength": 8192}
_SAID: Schema = {"type": "string", "minLength": 1}

TASKS_QUERY: dict[str, Schema] = {
    "agent": word(),
    "context": word(),
    "state": _STATE,
    "since": {"type": "integer", "minimum": 0, "maximum": 2**33},
    "after": {"type": "string", "pattern": "^[0-7][0-9a-f]{15}-task_[0-9a-f]{32}$"},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_TASKS},
}
DISCOVER = exact({"url": _URL}, "url")
SEND: Schema = {
    **exact(
        {
            "url": _URL,
            "agent": word(),
            "message": _SAID,
            "context": word(),
            "session_id": word(),
            "task": word(),
        },
        "message",
    ),
    "oneOf": [{"required": ["url"]}, {"required": ["agent"]}],
    "not": {"required": ["context", "session_id"]},
}
NEW_TASK = exact(
    {
        "agent": word(examples=["assistant"]),
        "message": {**_SAID, "examples": ["hello"]},
        "context": word(),
        "task": word(),
    },
    "agent",
    "message",
)

COMPONENTS: dict[str, Schema] = {
    "TaskMessage": whole(
        {
            "id": TEXT,
            "role": one_of(*(role.value for role in Role)),
            "parts": listed(_OBJECT),
            "metadata": _OBJECT,
            "extensions": listed(TEXT),
            "references": listed(TEXT),
        }
    ),
    "TaskArtifact": whole(
        {
            "id": TEXT,
            "name": TEXT,
            "description": TEXT,
            "parts": listed(_OBJECT),
            "metadata": _OBJECT,
        }
    ),
    "Task": whole(
        {
            "id": TEXT,
            "agent": TEXT,
            "caller": TEXT,
            "context": TEXT,
            "session": TEXT,
            "state": _STATE,
            "status": or_null(ref("TaskMessage")),
            "history": listed(ref("TaskMessage")),
            "artifacts": listed(ref("TaskArtifact")),
            "metadata": _OBJECT,
            "labels": listed(TEXT),
            "version": COUNT,
            "created_at": _MOMENT,
            "changed_at": _MOMENT,
        }
    ),
    "TaskWithStates": {
        "allOf": [
            ref("Task"),
            whole({"states": listed(whole({"n": COUNT, "at": _MOMENT, "state": _STATE}))}),
        ]
    },
    "Tasks": {"allOf": [page("tasks", ref("Task")), whole({"after": or_null(TEXT)})]},
    "Peer": whole(
        {
            "name": TEXT,
            "url": or_null(TEXT),
            "state": one_of("discovered", "held", "unreachable", "starting"),
            "card": or_null(
                whole(
                    {
                        "name": TEXT,
                        "description": TEXT,
                        "version": TEXT,
                        "digest": TEXT,
                        "dialects": listed(TEXT),
                        "interfaces": listed(TEXT),
                        "streaming": _FLAG,
                        "skills": listed(whole({"id": TEXT, "name": TEXT})),
                    }
                )
            ),
            "error": or_null(TEXT),
        }
    ),
    "Peers": page("agents", ref("Peer")),
}

TASK_EVENT = whole({"event": one_of(*SEEN, "failure", "problem"), "data": TEXT})
