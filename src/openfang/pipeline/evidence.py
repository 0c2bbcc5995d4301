"""What proves afterwards what went into a call and what came of it, without keeping either."""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.tools import Trust

if TYPE_CHECKING:
    from openfang.core.results import Result
    from openfang.core.tools import Tool


def digest(result: Result) -> bytes:
    """Tell results apart, for the loop guard."""
    return blake2b(_body(result), digest_size=16).digest()


def evidence(tool: Tool | None, canonical: bytes, result: Result | None) -> dict[str, Any] | None:
    """Prove what an effect was told and what it answered (C11.4).

    Of the tools of others only, and not of those that are trusted highly.
    """
    if tool is None or tool.trust is Trust.HIGH or not tool.effects:
        return None
    proof: dict[str, Any] = {
        "trust": tool.trust.value,
        "arguments_sha256": sha256(canonical).hexdigest(),
    }
    if result is not None:
        body = _body(result)
        proof |= {"result_sha256": sha256(body).hexdigest(), "result_bytes": len(body)}
    return proof


def _body(result: Result) -> bytes:
    return orjson.dumps((result.content, result.structured, result.is_error))
