"""What a message says besides its words: whose call it goes on with, and what the caller adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from openfang.core.trace import abroad
from openfang.sources.mcp.onward import passed_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Call
    from openfang.core.trace import Chain

_STARRY: Final = "X-OpenStarry-Trace-ID"
_CHAIN: Final = "openfang/chain"
_CHAIN_HEADER: Final = "openfang-chain"
_UNKNOWN: Final = "unknown"
# What a node would take for wishes of ours, and by what it chooses one of its agents.
_SPOKEN_FOR_US: Final = re.compile(r"\Aopenfang(?:/|\Z)|\Aagent\Z", re.IGNORECASE)


def trace_of(chain: Chain, node: str) -> dict[str, str]:
    """Write the trace, as every request has it in its headers."""
    trace = {"traceparent": chain.traceparent, _CHAIN_HEADER: _ancestors(chain, node)}
    return trace if chain.starry_id is None else {**trace, _STARRY: chain.starry_id}


def metadata_of(call: Call, chain: Chain, node: str) -> dict[str, Any]:
    """Write the metadata of a message; of what the caller adds, nothing that is ours to say."""
    given: Mapping[str, Any] = call.arguments.get("metadata") or {}
    trace = trace_of(chain, node)
    told = {_CHAIN: trace.pop(_CHAIN_HEADER), **trace}
    added = {**passed_on(call.meta), **passed_on(given)}
    kept = {name: value for name, value in added.items() if not _SPOKEN_FOR_US.match(name)}
    return {**kept, **told}


def _ancestors(chain: Chain, node: str) -> str:
    """Name who waits; a chain that is deeper than names are known says so by its length."""
    missing = chain.depth - 1 - len(chain.ancestors)
    return ",".join((*(_UNKNOWN for _ in range(missing)), *abroad(chain.ancestors, node)))
