"""Which nodes a definition came by: so that what goes round in a ring is listed once. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

VIA: Final = "openfang/via"
"""The key in `_meta` of what is listed: names of nodes, the first one first."""
_MOST: Final = 32
_LONGEST: Final = 100


def via_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Read by whom an entry of a list says that it came."""
    meta = _object(entry.get("_meta"))
    said = meta.get(VIA)
    if not isinstance(said, list):
        return ()
    names = cast("Sequence[object]", said)[:_MOST]
    return tuple(name for name in names if isinstance(name, str) and len(name) <= _LONGEST)


def from_elsewhere(listed: Iterable[dict[str, Any]], node: str) -> Iterator[dict[str, Any]]:
    """Leave out what has come by this node before."""
    return (entry for entry in listed if node not in via_of(entry))


def passed_on(entry: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Add this node to those that an entry came by."""
    meta = {**_object(entry.get("_meta")), VIA: [*via_of(entry), node]}
    return {**entry, "_meta": meta}


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
