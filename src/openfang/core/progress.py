"""What is told of a call on its way; and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from openfang.core.agents import Ended, Made, Wanted, Words
from openfang.core.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far it has got. What the numbers count is the tool's affair; they only go up."""

    progress: float
    total: float | None = None
    message: str = ""


Told: TypeAlias = Progress | Words | Wanted | Made | Ended
Listener: TypeAlias = Callable[[Told], None]
