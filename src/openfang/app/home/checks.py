"""What a look at the home or the machine found, and what would mend it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


class Health(Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, and what would mend it.

    `mend` does what `fix` says, where that is safe to do without knowing more.
    """

    name: str
    health: Health
    text: str
    fix: str = ""
    mend: Callable[[], object] | None = None


def ok(name: str, text: str) -> Check:
    """Say that it is in order."""
    return Check(name=name, health=Health.OK, text=text)


def warn(name: str, text: str, fix: str, mend: Callable[[], object] | None = None) -> Check:
    """Say that it works, and what would be better."""
    return Check(name=name, health=Health.WARN, text=text, fix=fix, mend=mend)


def fail(name: str, text: str, fix: str, mend: Callable[[], object] | None = None) -> Check:
    """Say that it is broken, and what mends it."""
    return Check(name=name, health=Health.FAIL, text=text, fix=fix, mend=mend)
