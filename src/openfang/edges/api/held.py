"""The shapes of what is held back, as JSON Schema."""

from __future__ import annotations

from openfang.edges.api.schemas import (
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

HELD_QUERY: dict[str, Schema] = {"source": word()}
_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
ACCEPT = exact({"digest": _DIGEST})
COMPONENTS: dict[str, Schema] = {
    "Held": whole(
        {
            "id": TEXT,
            "kind": one_of("tool", "agent", "prompt", "template", "resource", "instructions"),
            "source": TEXT,
            "name": TEXT,
            "reason": TEXT,
            "digest": _DIGEST,
            "accepted_digest": or_null(_DIGEST),
            "changes": listed(
                whole(
                    {
                        "path": TEXT,
                        "before": or_null(TEXT),
                        "after": or_null(TEXT),
                        "hidden": listed(TEXT),
                    }
                )
            ),
            "findings": listed(
                whole(
                    {
                        "code": one_of(*ABOUT),
                        "place": TEXT,
                        "excerpt": TEXT,
                        "serious": {"type": "boolean"},
                        "meaning": TEXT,
                    }
                )
            ),
            "diff": TEXT,
        }
    ),
    "AllHeld": page("held", ref("Held")),
}
