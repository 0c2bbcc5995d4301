"""Where the arguments of a call came from, as far as its records tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from openfang.core.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNNAMED: Final = "does not stand in trusted text"
_FOREIGN: Final = frozenset((Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT).names)


class Origin(NamedTuple):
    """What is known of where a value came from; `hit` is the one that decided."""

    words: str
    hit: bool = False


_NOBODY: Final = Origin("from outside: nobody who is trusted had named it", hit=True)


def origins(
    names: Iterable[str], entered: Sequence[str], reason: str, who: str, depth: int
) -> dict[str, Origin]:
    """Say of each argument where it came from.

    Labels hold for a call as a whole; of its values the flow tells the first that decided.
    """
    usual = _usual(entered, who, depth)
    return {name: _NOBODY if _decided(name, reason) else usual for name in names}


def _usual(entered: Sequence[str], who: str, depth: int) -> Origin:
    if foreign := [word.replace("_", " ") for word in entered if word in _FOREIGN]:
        return Origin(f"may be from outside: the run had taken in {' and '.join(foreign)}")
    if depth > 1:
        return Origin(f"{who}; nothing from outside was in its run")
    return Origin(f"{who}, in its own words")


def _decided(name: str, reason: str) -> bool:
    """Whether the flow named this argument; a target deeper in it has a dotted name."""
    return UNNAMED in reason and any(f": {name}{more}" in reason for more in " .")
