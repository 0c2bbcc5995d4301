"""How an extension is, for who asks."""

from __future__ import annotations

from typing import Literal, TypeAlias

from openfang.core.values import dataclass

How: TypeAlias = Literal["idle", "running", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How an extension is: `reason` and `way_out` say why it failed; `layers` what confines it.

    `held_back` are tools that its server lists, and its manifest does not.
    """

    how: How
    reason: str = ""
    way_out: str = ""
    pid: int = 0
    layers: tuple[str, ...] = ()
    restarts: int = 0
    held_back: tuple[str, ...] = ()
