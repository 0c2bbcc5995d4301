"""What is told of a chain, as an object, as a header, or as the plain list of ancestors. No I/O."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.trace import Told, read_ancestors
from openfang.protocols.hops.labels import hints_of, labels_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.trace import Chain

CHAIN: Final = "openfang/chain"
"""The key in `_meta` and in metadata; over HTTP the header is `OpenFang-Chain`."""
HEADER: Final = "openfang-chain"
TRACE: Final = "traceparent"
STARRY: Final = "X-OpenStarry-Trace-ID"
ANSWER: Final = "openfang/answer"
"""The key beside a result: what a node signs of it, for the node that asked."""
ASKS: Final = "ofc1."
"""How the signed form begins."""
_DEEPEST: Final = 1_000
_MOST: Final = 1_000_000_000
_LONGEST: Final = 65_536
_MILLISECONDS: Final = 1_000


def words_of(told: Told) -> dict[str, Any]:
    """Write it as an object."""
    words: dict[str, Any] = {"depth": told.depth, "ancestors": list(told.ancestors)}
    if told.seconds is not None:
        words["left_ms"] = max(0, int(told.seconds * _MILLISECONDS))
    if told.calls is not None:
        words["calls"] = told.calls
    if told.usd is not None:
        words["usd"] = told.usd
    return {**words, **hints_of(told.labels, told.ancestors)} if told.labels else words


def header_of(told: Told) -> str:
    """Write it as the value of a header."""
    return orjson.dumps(words_of(told)).decode()


def trace_words(chain: Chain) -> dict[str, Any]:
    """Write the trace: what every peer understands."""
    if chain.starry_id is None:
        return {TRACE: chain.traceparent}
    return {TRACE: chain.traceparent, STARRY: chain.starry_id}


def read_told(value: object) -> Told | None:
    """Read it in any of its forms; what is none of them says nothing."""
    if isinstance(value, dict):
        return told_in(cast("dict[str, Any]", value)) if value else None
    if not isinstance(value, str) or not value or len(value) > _LONGEST:
        return None
    if value.startswith(ASKS):
        return Told(token=value)
    if value.startswith("{"):
        return _read_object(value)
    ancestors = read_ancestors(value)
    return Told(depth=len(ancestors) + 1, ancestors=ancestors) if ancestors else None


def _read_object(text: str) -> Told | None:
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return told_in(cast("dict[str, Any]", value)) if isinstance(value, dict) else None


def told_in(words: Mapping[str, Any]) -> Told:
    """Read an object; a member that makes no sense is as good as none."""
    ancestors = _names(words.get("ancestors"))
    depth = _number(words.get("depth"))
    left = _number(words.get("left_ms"))
    calls = _number(words.get("calls"))
    return Told(
        depth=max(len(ancestors) + 1, int(min(depth or 1, _DEEPEST))),
        ancestors=ancestors,
        seconds=None if left is None else left / _MILLISECONDS,
        calls=None if calls is None else int(min(calls, _MOST)),
        usd=_number(words.get("usd")),
        labels=labels_in(words),
    )


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    names = cast("Sequence[object]", value)
    return read_ancestors(",".join(name for name in names if isinstance(name, str)))


def _number(value: object) -> float | None:
    """Read a number that counts something: libraries write whole ones as they like."""
    if type(value) is int or type(value) is float:  # and no bool
        return value if 0 <= value < math.inf else None
    return None
