"""What a message says besides its words: whose call it goes on with, and what the caller adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from openfang.sources.mcp.onward import passed_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Call

# What a node would take for wishes of ours, and by what it chooses one of its agents.
_SPOKEN_FOR_US: Final = re.compile(r"\Aopenfang(?:/|\Z)|\Aagent\Z", re.IGNORECASE)


def metadata_of(call: Call, told: Mapping[str, Any]) -> dict[str, Any]:
    """Write the metadata of a message; of what the caller adds, nothing that is ours to say."""
    given: Mapping[str, Any] = call.arguments.get("metadata") or {}
    added = {**passed_on(call.meta), **passed_on(given)}
    kept = {name: value for name, value in added.items() if not _SPOKEN_FOR_US.match(name)}
    return {**kept, **told}
