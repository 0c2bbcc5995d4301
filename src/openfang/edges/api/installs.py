"""The shapes of what is installed, as JSON Schema."""

from __future__ import annotations

from openfang.core.tools import Risk
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
from openfang.safety.definitions import ABOUT

_FLAG: Schema = {"type": "boolean"}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_OBJECT: Schema = {"type": "object"}
_MOST_BASE64 = 9_500_000

NEW = exact(
    {
        "archive_base64": {
            "type": "string",
            "minLength": 1,
            "maxLength": _MOST_BASE64,
            "description": "The folder as .tar, .tar.gz or .zip, of at most 7 MB.",
        },
        "origin": word(maxLength=1000),
        "preview": {"type": "boolean", "description": "Only say what would be taken in."},
    },
    "archive_base64",
)
ENABLE = exact(
    {
        "digest": {**_DIGEST, "description": "What was shown: `review.digest`."},
        "accept_findings": {
            "type": "boolean",
            "description": "Accept what `review.grave` names, too.",
        },
    },
    "digest",
)
_CHANGE = whole(
    {"path": TEXT, "before": or_null(TEXT), "after": or_null(TEXT), "hidden": listed(TEXT)}
)
_FINDING = whole(
    {"code": one_of(*ABOUT), "place": TEXT, "excerpt": TEXT, "serious": _FLAG, "meaning": TEXT}
)
_TOOL = whole(
    {
        "id": TEXT,
        "name": TEXT,
        "title": TEXT,
        "description": TEXT,
        "risk": one_of(*(risk.name for risk in Risk)),
        "side_effects": listed(TEXT),
        "input_schema": _OBJECT,
        "output_schema": or_null(_OBJECT),
        "annotations": _OBJECT,
    }
)
_SUMMARY: dict[str, Schema] = {
    "id": TEXT,
    "kind": one_of("extension", "skill"),
    "version": TEXT,
    "state": one_of("off", "on", "held", "failed", "preview", "removed"),
    "reason": TEXT,
    "enabled": _FLAG,
    "waiting": _FLAG,
    "origin": TEXT,
    "installed_at": or_null(_MOMENT),
    "installed_by": or_null(TEXT),
    "accepted": or_null(whole({"digest": _DIGEST, "at": _MOMENT, "by": TEXT})),
    "process": or_null(_OBJECT),
}
COMPONENTS: dict[str, Schema] = {
    "Review": whole(
        {
            "id": TEXT,
            "kind": TEXT,
            "version": TEXT,
            "title": TEXT,
            "description": TEXT,
            "author": TEXT,
            "license": TEXT,
            "runtime": TEXT,
            "origin": TEXT,
            "digest": _DIGEST,
            "files": listed(
                whole({"path": TEXT, "size": COUNT, "executable": _FLAG, "sha256": _DIGEST})
            ),
            "tools": listed(_TOOL),
            "permissions": _OBJECT,
            "may": listed(TEXT),
            "sandbox": TEXT,
            "notes": listed(TEXT),
            "findings": listed(_FINDING),
            "grave": listed(TEXT),
            "changes": listed(_CHANGE),
        }
    ),
    "InstallSummary": whole(_SUMMARY),
    "Install": whole({**_SUMMARY, "review": or_null(ref("Review"))}),
    "Extensions": page("extensions", ref("InstallSummary")),
    "Skills": page("skills", ref("InstallSummary")),
}
