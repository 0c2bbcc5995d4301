"""A memory as it is kept: what, under which key, from whom, and how far it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.labels import Labels

MOST_RECALLED: Final = 50
"""So many memories are found at once."""
LONGEST_QUERY: Final = 1000
LONGEST_KEY: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a memory comes from: who stored it, for whom, in which chain, by which call.

    All of it is empty for memories that are older than this.
    """

    stored_by: str = ""
    asked_by: str = ""
    trace: str = ""
    call: str = ""


UNKNOWN: Final = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One of them. Where `shortened`, `value` is a piece of a longer text."""

    id: int
    space: str
    key: str
    value: Any
    labels: Labels
    stored_at: int
    origin: Origin = UNKNOWN
    shortened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which memories somebody wants to see: their own, an agent's for them, or of any space.

    With words those that have any of them, the best first; else the newest behind `after`.
    """

    agent: str = ""
    space: str = ""
    query: str = ""
    after: int = 0
    limit: int = 20


OWN: Final = Wanted()
