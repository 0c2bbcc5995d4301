"""What a look at the home or the machine found, and what would mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, and what would mend it."""

    name: str
    health: Health
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Check:
    """Say that it is in order."""
    return Check(name=name, health=Health.OK, text=text)


def warn(name: str, text: str, fix: str) -> Check:
    """Say that it works, and what would be better."""
    return Check(name=name, health=Health.WARN, text=text, fix=fix)


def fail(name: str, text: str, fix: str) -> Check:
    """Say that it is broken, and what mends it."""
    return Check(name=name, health=Health.FAIL, text=text, fix=fix)
