"""What changed in what is offered: for whoever has to pass it on."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from openfang.core.values import dataclass


class Listed(Enum):
    """A list that is not what it was."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"


@dataclass(frozen=True, slots=True)
class Updated:
    """A resource of a server's that is not what it was."""

    server: str
    uri: str


News: TypeAlias = Listed | Updated
Hearer: TypeAlias = Callable[[News], None]
