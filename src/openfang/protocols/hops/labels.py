"""Labels on the wire: the words of the open proposal SEP-1913, beside our own. No I/O.

Sensitivity only rises and hints only add: whoever reads them joins what is said to what is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LABELS: Final = "openfang/labels"
_OURS: Final = "labels"
_MOST_SOURCES: Final = 32
_OPEN: Final = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT
_PRIVATE: Final = Labels.PRIVATE | Labels.LOCAL_FILE
_SENSITIVE: Final = {"low": Labels.PRIVATE, "medium": Labels.PII, "high": Labels.SECRET}
_KNOWN: Final = {name: Labels.of((name,)) for name in Labels((1 << 7) - 1).names}
_PLACES: Final = (LABELS, "annotations")


def hints_of(labels: Labels, sources: Sequence[str] = ()) -> dict[str, Any]:
    """Write them; `sources` are those that the data may have come from."""
    hints: dict[str, Any] = {_OURS: labels.names}
    if labels & _OPEN:
        hints["openWorldHint"] = True
    if labels & _PRIVATE:
        hints["privateHint"] = True
    if labels & Labels.SECRET:
        hints["sensitiveHint"] = "high"
    elif labels & Labels.PII:
        hints["sensitiveHint"] = "medium"
    if sources:
        hints["attribution"] = list(sources[-_MOST_SOURCES:])
    return hints


def labels_in(hints: Mapping[str, Any]) -> Labels:
    """Read them; what is no word of either vocabulary says nothing."""
    found = _words(hints.get(_OURS))
    if hints.get("openWorldHint") is True:
        found |= Labels.EXTERNAL_NETWORK
    if hints.get("privateHint") is True:
        found |= Labels.PRIVATE
    if hints.get("maliciousActivityHint") is True:
        found |= _OPEN
    level = hints.get("sensitiveHint")
    return found | _SENSITIVE.get(level, Labels.NONE) if isinstance(level, str) else found


def labels_beside(meta: Mapping[str, Any]) -> Labels:
    """Read what stands beside a result, in whichever of the usual places."""
    found = labels_in(meta)
    for place in _PLACES:
        hints: object = meta.get(place)
        if isinstance(hints, dict):
            found |= labels_in(cast("dict[str, Any]", hints))
    return found


def _words(names: object) -> Labels:
    found = Labels.NONE
    if isinstance(names, list | tuple):
        for name in cast("Iterable[object]", names):
            found |= _KNOWN.get(name, Labels.NONE) if isinstance(name, str) else Labels.NONE
    return found
