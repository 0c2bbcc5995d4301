"""What callers were told, what was done to the node meanwhile, and what that does not explain."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from tests.faults.test_tasks_killed import Known

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.chaos.faults import Fault


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call went: `ok`, `taken` (the work on it goes on), or what was in the way."""

    kind: str
    said: str = ""


OK = Answer("ok")
TAKEN = Answer("taken")
WELL = frozenset({OK.kind, TAKEN.kind})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One call as its caller saw it."""

    way: str
    server: str
    answer: Answer
    began: float
    ended: float

    @property
    def well(self) -> bool:
        return self.answer.kind in WELL


@dataclass(slots=True)
class Spell:
    """A fault, and how long it could be felt."""

    fault: Fault
    began: float
    first: int
    ended: float = float("inf")
    last: int | None = None

    def meets(self, seen: Seen) -> bool:
        return seen.began <= self.ended and seen.ended >= self.began

    def explains(self, seen: Seen) -> bool:
        return self.meets(seen) and self.fault.explains(seen)


@dataclass(slots=True)
class Ledger:
    """All of it. `acknowledged` are the words of the calls that were answered well."""

    tasks: Known = field(default_factory=Known)
    acknowledged: set[str] = field(default_factory=set[str])
    seen: list[Seen] = field(default_factory=list[Seen])
    spells: list[Spell] = field(default_factory=list[Spell])
    _lock: Lock = field(default_factory=Lock)

    def note(self, seen: Seen, words: str) -> None:
        with self._lock:
            self.seen.append(seen)
            if seen.answer == OK:
                self.acknowledged.add(words)

    @contextmanager
    def spell(self, fault: Fault) -> Generator[Spell]:
        """Do it and undo it; it can be felt until the undoing is over."""
        spell = Spell(fault, time.monotonic(), len(self.seen))
        self.spells.append(spell)
        fault.begin()
        try:
            yield spell
        finally:
            fault.end()
            spell.ended, spell.last = time.monotonic(), len(self.seen)

    def unexplained(self) -> list[Seen]:
        """Calls that went wrong for no reason that is known."""
        return [
            one
            for one in self.seen
            if not one.well and not any(spell.explains(one) for spell in self.spells)
        ]

    def during(self, spell: Spell) -> list[Seen]:
        """What was answered while it could be felt."""
        return self.seen[spell.first : spell.last]

    def by_way(self) -> dict[str, Counter[str]]:
        """How often each way was answered how."""
        found: dict[str, Counter[str]] = {}
        for one in self.seen:
            found.setdefault(one.way, Counter())[one.answer.kind] += 1
        return found
