"""The shapes of MCP servers, as JSON Schema: an entry that is added, and what is shown of one."""

from __future__ import annotations

from typing import Final

from openfang.core.tools import TAGS, Risk, Trust
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

_MOST: Final = 1000
_LONGEST: Final = 32_768
_DAY: Final = 86_400
_LONG: Schema = {"type": "string", "maxLength": _LONGEST}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_WORD = one_of("healthy", "degraded", "unhealthy")
_TAG_LIST = listed(one_of(*TAGS))
_VARIABLE: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 200}
_HEADER: Schema = {"type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "maxLength": 200}
_PATHS = listed({"type": "string", "pattern": "^(/|~/)", "maxLength": 4096}, maxItems=_MOST)


def _table(names: Schema) -> Schema:
    return {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": _LONG,
        "maxProperties": _MOST,
    }


_STDIO = exact(
    {
        "type": {"type": "string", "const": "stdio"},
        "command": {"type": "string", "minLength": 1, "maxLength": 4096},
        "args": listed(_LONG, maxItems=_MOST),
    },
    "type",
    "command",
)
_HTTP = exact(
    {
        "type": one_of("http", "sse"),
        "url": {"type": "string", "pattern": r"^https?://[^\s/]\S*$", "maxLength": 8192},
        "headers": _table(_HEADER),
    },
    "type",
    "url",
)
NEW_SERVER = exact(
    {
        "name": word(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", maxLength=128),
        "transport": {"anyOf": [_STDIO, _HTTP]},
        "timeout_secs": {"type": "number", "exclusiveMinimum": 0, "maximum": _DAY},
        "env": {
            "anyOf": [listed(_VARIABLE, maxItems=_MOST), _table(_VARIABLE)],
            "description": "Names to pass on, or a table of values; secrets among them are stored.",
        },
        "allow_tools": listed(word(), maxItems=_MOST),
        "deny_side_effect_tags": _TAG_LIST,
        "trust": one_of(*(trust.value for trust in Trust)),
        "allow_private": _FLAG,
        "lazy": _FLAG,
        "singleton": _FLAG,
        "sandbox": one_of("auto", "required", "off"),
        "network": _FLAG,
        "fs_read": _PATHS,
        "fs_write": _PATHS,
        "max_memory_mb": {"type": "integer", "minimum": 1, "maximum": 1 << 30},
        "max_processes": {"type": "integer", "minimum": 1, "maximum": 1 << 22},
        "max_concurrency": {"type": "integer", "minimum": 1, "maximum": _MOST},
    },
    "name",
    "transport",
)
NEW_SECRET = exact({"value": {"type": "string", "minLength": 1, "maxLength": _LONGEST}}, "value")

_REJECTED = listed(whole({"name": TEXT, "reason": TEXT}))
_LAYERS = {
    **listed(whole({"name": TEXT, "active": _FLAG, "detail": TEXT})),
    "description": "What holds the running child; empty while none runs, and for an address.",
}
_DETAILS = {
    "transport": _OBJECT,
    "timeout_secs": {"type": "number"},
    "env": listed(TEXT),
    "enabled": _FLAG,
    "lazy": _FLAG,
    "singleton": _FLAG,
    "allow_tools": listed(TEXT),
    "deny_side_effect_tags": listed(TEXT),
    "trust": one_of(*(trust.value for trust in Trust)),
    "state": one_of("connected", "connecting", "sleeping", "waiting", "failed", "disabled"),
    "last_error": or_null(TEXT),
}
_SECRET = whole({"name": TEXT, "stored": _FLAG, "in_environment": _FLAG, "servers": listed(TEXT)})
_NAMED: dict[str, Schema] = {"name": TEXT, "health": or_null(_WORD)}

COMPONENTS: dict[str, Schema] = {
    "Servers": whole(
        {
            "configured": listed(whole(_NAMED, **_DETAILS)),
            "connected": listed(
                whole(
                    {
                        "name": TEXT,
                        "tools_count": COUNT,
                        "tools": listed(whole({"name": TEXT, "description": TEXT})),
                        "connected": {"type": "boolean", "const": True},
                    }
                )
            ),
        }
    ),
    "Server": whole(
        {
            **_NAMED,
            **_DETAILS,
            "origin": TEXT,
            "may": {
                **listed(TEXT),
                "description": "What it would be allowed to do, in plain words.",
            },
            "connected": _FLAG,
            "protocol_version": or_null(TEXT),
            "server_info": _OBJECT,
            "node": {
                **or_null(TEXT),
                "description": "The node that has it, if it is to run once among several.",
            },
            "layers": _LAYERS,
            "tools": listed(ref("Tool")),
            "rejected_tools": _REJECTED,
            "stderr": listed(TEXT),
        }
    ),
    "Secret": _SECRET,
    "Secrets": page("secrets", ref("Secret")),
    "ServerHealth": {"type": "object", "additionalProperties": _WORD},
    "ServerLog": page("lines", TEXT),
    "Refreshed": whole({"refreshed": COUNT, "failed": _REJECTED}),
    "Trial": whole(
        {
            "server": TEXT,
            "ok": _FLAG,
            "seconds": {"type": "number", "minimum": 0},
            "protocol_version": or_null(TEXT),
            "server_info": _OBJECT,
            "tools": listed(TEXT),
            "offers": listed(
                whole(
                    {
                        "name": TEXT,
                        "risk": one_of(*(risk.name for risk in Risk)),
                        "side_effects": listed(TEXT),
                        "description": TEXT,
                    }
                )
            ),
            "rejected_tools": _REJECTED,
            "problem": TEXT,
            "way_out": TEXT,
            "stderr": listed(TEXT),
        }
    ),
}
