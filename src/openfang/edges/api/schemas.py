"""The shapes of requests and answers, as JSON Schema: checked on the way in, and documented."""

from __future__ import annotations

from typing import Any

from openfang.core.calls import Mode, Role
from openfang.core.ids import Kind
from openfang.core.keys import EDGES, Answer, Scope, Way
from openfang.core.telling import KINDS
from openfang.core.tools import TAGS, Effect, Risk, Trust
from openfang.safety.sizes import MAX_ARGUMENTS

Schema = dict[str, Any]
LONGEST_WORD = 200
LONGEST_QUERY = 100_000
LARGEST_CALL = MAX_ARGUMENTS + 65_536
_MOST_WORDS = 100
_MOST_CELLS = 1_000_000_000
_MOST_USD = 1_000_000
_LONGEST_TTL = 3650 * 86_400


def word(**more: object) -> Schema:
    """A short text."""
    return {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD, **more}


def one_of(*words: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": sorted(set(words))}


def listed(items: Schema, **more: object) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items, **more}


def exact(properties: dict[str, Schema], *required: str) -> Schema:
    """An object with these keys and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def whole(properties: dict[str, Schema], **sometimes: Schema) -> Schema:
    """An object with all of these keys, and some at times."""
    known = {**properties, **sometimes}
    return {"type": "object", "properties": known, "required": list(properties)}


def or_null(schema: Schema) -> Schema:
    """This, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> Schema:
    """One of the shapes below."""
    return {"$ref": f"#/components/schemas/{name}"}


def page(name: str, items: Schema) -> Schema:
    """A list under its name, with how many there are."""
    return whole({name: listed(items), "total": COUNT})


COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_NAME = word(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
_TAG = one_of(*TAGS)
_WORDS = listed(word(), maxItems=_MOST_WORDS)
_GLOBS = _WORDS
_HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MODE = one_of(*(mode.value for mode in Mode))
_ROLE = one_of(*(role.value for role in Role))

CONTEXT = exact(
    {
        "mode": _MODE,
        "project_id": word(),
        "spec_hash": word(),
        "task_id": word(),
        "run": word(),
        "blacklist": listed(_TAG, maxItems=_MOST_WORDS),
    }
)
CALL = exact({"arguments": _OBJECT, "context": CONTEXT})
ANSWER = exact(
    {"answer": one_of("approve", "deny"), "scope": one_of(*(scope.value for scope in Scope))},
    "answer",
)
NEW_SPEC = {
    **exact(
        {
            "name": word(),
            "project": _NAME,
            "content": {"type": "string", "minLength": 1, "pattern": r"\S"},
            "content_base64": {
                "type": "string",
                "minLength": 4,
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            },
        },
        "name",
    ),
    "oneOf": [{"required": ["content"]}, {"required": ["content_base64"]}],
}
_TTL: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": _LONGEST_TTL}
_NEW_KEY = exact(
    {
        "kind": {"type": "string", "const": "key"},
        "name": _NAME,
        "role": _ROLE,
        "edges": listed(one_of(*EDGES), minItems=1),
        "toolsets": _WORDS,
        "agents": _WORDS,
        "tools": listed(word(), minItems=1, maxItems=_MOST_WORDS),
        "network": _GLOBS,
        "shell": _GLOBS,
        "memory_read": _GLOBS,
        "memory_write": _GLOBS,
        "mode": _MODE,
        "projects": listed(_NAME, maxItems=_MOST_WORDS),
        "spec": _HASH,
        "blacklist": listed(_TAG),
        "cells_per_minute": {"type": "integer", "minimum": 1, "maximum": _MOST_CELLS},
        "budget_usd_per_day": {"type": "number", "exclusiveMinimum": 0, "maximum": _MOST_USD},
        "ttl_secs": _TTL,
    },
    "name",
)
_NEW_TOKEN = exact(
    {
        "kind": {"type": "string", "const": "admin_token"},
        "name": _NAME,
        "tools": listed(word(), minItems=1, maxItems=_MOST_WORDS),
        "ttl_secs": _TTL,
    },
    "kind",
    "name",
)
NEW_KEY: Schema = {"anyOf": [_NEW_KEY, _NEW_TOKEN]}
QUERY = exact(
    {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_QUERY,
            "examples": ["SELECT event_type, COUNT(*) AS n FROM task_audits GROUP BY event_type"],
        }
    },
    "query",
)
NOTHING = exact({})

_VERDICT = whole(
    {"gate": TEXT, "verdict": one_of("allow", "deny", "ask", "not_reached")},
    reason=TEXT,
    code=TEXT,
    way_out=TEXT,
    rules=listed(TEXT),
)
RECEIPT = whole({"start": COUNT, "end": COUNT, "hash": _HASH})
_TOOL = whole(
    {
        "id": TEXT,
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
        "aliases": listed(TEXT),
        "title": or_null(TEXT),
        "description": TEXT,
        "source": TEXT,
        "source_type": one_of(*(kind.source_type for kind in Kind)),
        "risk": one_of(*(risk.name for risk in Risk)),
        "side_effects": listed(_TAG),
        "effect": one_of(*(effect.value for effect in Effect)),
        "targets": listed(TEXT),
        "labels": listed(TEXT),
        "trust": one_of(*(trust.value for trust in Trust)),
        "enabled": _FLAG,
        "held": TEXT,
        "requires_admin_token": _FLAG,
        "input_schema": _OBJECT,
        "output_schema": or_null(_OBJECT),
    }
)
_KEY = whole(
    {
        "id": TEXT,
        "name": TEXT,
        "kind": one_of("key", "admin_token"),
        "state": one_of("in force", "expired", "revoked"),
        "tools": listed(TEXT),
        "created_at": or_null(_MOMENT),
        "expires_at": or_null(_MOMENT),
        "revoked_at": or_null(_MOMENT),
    },
    role=_ROLE,
    edges=listed(TEXT),
    toolsets=listed(TEXT),
    agents=listed(TEXT),
    network=listed(TEXT),
    shell=listed(TEXT),
    memory_read=listed(TEXT),
    memory_write=listed(TEXT),
    mode=_MODE,
    projects=listed(TEXT),
    spec=or_null(_HASH),
    blacklist=listed(_TAG),
    cells_per_minute=or_null(COUNT),
    budget_usd_per_day=or_null({"type": "number"}),
)
_RECORD = whole(
    {
        "audit_id": {"type": "integer"},
        "node": TEXT,
        "created_at": TEXT,
        "event_type": TEXT,
        "level": TEXT,
        "call_id": TEXT,
        "task_id": TEXT,
        "payload": _OBJECT,
        "context": _OBJECT,
        "hash": TEXT,
    }
)

COMPONENTS: dict[str, Schema] = {
    "Problem": whole(
        {
            "type": TEXT,
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
            "rule": TEXT,
            "way_out": TEXT,
        },
        gates=listed(_VERDICT),
        approval=TEXT,
        retry_after={"type": "number", "minimum": 0},
    ),
    "State": whole({"status": TEXT}),
    "Version": whole({"name": TEXT, "version": TEXT}),
    "Status": whole(
        {"status": TEXT, "version": TEXT, "caller": TEXT, "role": _ROLE, "tools": COUNT},
        node=TEXT,
        pid=COUNT,
        home=TEXT,
        started_at=_MOMENT,
        listeners=COUNT,
        approvals=COUNT,
        held=COUNT,
        rules=COUNT,
        audit=whole(
            {"records": COUNT, "hash": TEXT},
            anchor=whole(
                {"host": TEXT, "anchored": COUNT, "waiting": COUNT, "since": or_null(_MOMENT)}
            ),
        ),
        config=ref("ConfigState"),
    ),
    "Result": whole(
        {
            "call_id": TEXT,
            "outcome": one_of("ok", "error"),
            "content": listed(_OBJECT),
            "structured": {},
            "labels": listed(TEXT),
            "audit": or_null(RECEIPT),
        },
        _meta=_OBJECT,
        extra=_OBJECT,
    ),
    "WholeResult": whole(
        {"content": listed(_OBJECT), "structured": {}}, meta=_OBJECT, extra=_OBJECT
    ),
    "Explanation": whole(
        {
            "tool": TEXT,
            "outcome": one_of("allow", "ask", "deny"),
            "gates": listed(_VERDICT),
            "labels": listed(TEXT),
        }
    ),
    "Tool": _TOOL,
    "ToolWithDiff": {
        "allOf": [ref("Tool"), whole({"diff": TEXT, "held_back": or_null(ref("Held"))})]
    },
    "Tools": page("tools", ref("Tool")),
    "Approval": whole(
        {
            "id": TEXT,
            "state": one_of("expired", *(state.value for state in Answer)),
            "scope": TEXT,
            "caller": TEXT,
            "tool": TEXT,
            "arguments": _OBJECT,
            "arguments_hash": TEXT,
            "run": or_null(TEXT),
            "rule": TEXT,
            "reason": TEXT,
            "asked_at": _MOMENT,
            "expires_at": or_null(_MOMENT),
            "answered_at": or_null(_MOMENT),
            "answered_by": or_null(TEXT),
            "via": or_null(one_of(*(way.value for way in Way))),
            "root": TEXT,
            "about": _OBJECT,
        }
    ),
    "Approvals": whole(
        {"approvals": listed(ref("Approval")), "total": COUNT, "next": or_null(TEXT)}
    ),
    "Spec": whole(
        {"hash": _HASH, "project": TEXT, "name": TEXT, "frozen_by": TEXT, "frozen_at": _MOMENT}
    ),
    "Specs": page("specs", ref("Spec")),
    "Key": _KEY,
    "NewKey": {"allOf": [ref("Key"), whole({"secret": TEXT})]},
    "Keys": page("keys", ref("Key")),
    "Record": _RECORD,
    "Records": whole({"records": listed(ref("Record")), "total": COUNT, "end": TEXT}),
    "Verification": whole(
        {
            "intact": _FLAG,
            "records": COUNT,
            "checkpoints": COUNT,
            "heads": {"type": "object", "additionalProperties": {"type": "integer"}},
            "key": _HASH,
            "findings": listed(
                whole({"kind": TEXT, "node": TEXT, "record": {"type": "integer"}, "text": TEXT})
            ),
        }
    ),
    "Proof": whole({"proven": _FLAG, "signed": or_null(COUNT), "text": TEXT}),
    "Tables": whole(
        {"tables": listed(whole({"columns": listed(TEXT), "rows": listed({"type": "array"})}))}
    ),
    "Config": whole({"config": _OBJECT, "state": ref("ConfigState")}),
    "Reloaded": whole({"state": ref("ConfigState")}),
    "ConfigState": whole(
        {
            "state": one_of("in force", "rejected"),
            "file": TEXT,
            "loaded_at": _MOMENT,
            "problems": listed(whole({"file": TEXT, "line": COUNT, "key": TEXT, "message": TEXT})),
            "needs_restart": listed(TEXT),
        }
    ),
}

EVENT = whole(
    {"id": TEXT, "event": one_of("call", "decision", "event", "health", "node"), "data": TEXT},
    retry=COUNT,
)

PROGRESS = whole({"event": one_of(*KINDS, "result", "failure", "problem"), "data": TEXT})

TOOL_QUERY: dict[str, Schema] = {
    "source": one_of(*(word for kind in Kind for word in (kind.value, kind.source_type))),
    "risk": one_of("MED", *(risk.name for risk in Risk)),
    "tag": _TAG,
    "all": _FLAG,
}
BY_QUERY: dict[str, Schema] = {"by": word(maxLength=100)}
QUESTIONS_QUERY: dict[str, Schema] = {
    "all": _FLAG,
    "state": one_of("all", "expired", *(state.value for state in Answer)),
    "caller": word(),
    "tool": word(),
    "after": word(),
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
}
_PLACE = "([A-Za-z0-9._~%-]+:)?[0-9]{1,18}"
SEARCH_QUERY: dict[str, Schema] = {
    "event": word(),
    "tool": word(),
    "caller": word(),
    "call_id": word(),
    "task_id": word(),
    "level": one_of("info", "warning", "error"),
    "text": word(),
    "node": word(),
    "record": word(pattern=f"^{_PLACE}$"),
    "after": word(pattern=f"^{_PLACE}(,{_PLACE})*$"),
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
}
EXPORT_QUERY: dict[str, Schema] = {"after": SEARCH_QUERY["after"], "proven": _FLAG}
PROVE: Schema = whole(
    {"record": {"type": "integer", "minimum": 1, "maximum": 2**62}, "hash": _HASH}
)
