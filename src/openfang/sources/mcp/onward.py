"""What a request says besides its arguments: what its caller wants to be known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.protocols.hops.words import STARRY, TRACE
from openfang.protocols.mcp.meta import PROGRESS_TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES: Final = 16_384
# Said anew on every hop, or meant for us.
_OURS: Final = frozenset(
    name.lower() for name in (PROGRESS_TOKEN, TRACE, "tracestate", "baggage", STARRY)
)
_RESERVED: Final = re.compile(r"(?:[^/]*\.)?(?:modelcontextprotocol|mcp|openfang)(?:\.[^/]*)?/")
_CREDENTIAL: Final = re.compile(
    r"authori[sz]|authenti|token|secret|passw|credential|cookie|bearer|api[-_]?key|private[-_]?key",
    re.IGNORECASE,
)


def passed_on(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what is neither ours, nor the protocol's, nor anything like a credential."""
    kept = {name: value for name, value in meta.items() if _travels(name)}
    return kept if not kept or len(orjson.dumps(kept)) <= _MOST_BYTES else {}


def _travels(name: str) -> bool:
    known = name.lower() in _OURS or _RESERVED.match(name)
    return not known and not _CREDENTIAL.search(name)
