"""How a command goes about it: asking a person, agreed to beforehand, or told to a program."""

from __future__ import annotations

import sys
from typing import Final

from openfang.cli.output import is_terminal, say
from openfang.core.values import dataclass

_YES: Final = frozenset({"y", "yes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """Whether all is agreed to, and whether a program reads what is said."""

    yes: bool = False
    as_json: bool = False

    @property
    def asks(self) -> bool:
        """Whether somebody is there to be asked, and has not said yes beforehand."""
        return not (self.yes or self.as_json) and sys.stdin.isatty() and is_terminal(sys.stdout)

    def agrees(self, question: str) -> bool:
        """Ask, where that can be done and is needed; nobody there means no."""
        if self.yes or not self.asks:
            return self.yes
        try:
            answer = input(f"{question} [y/N] ")
        except EOFError:
            say()
            return False
        return answer.strip().lower() in _YES
