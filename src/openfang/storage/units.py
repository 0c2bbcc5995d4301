"""What goes into the log and the tables together: a unit, its records, and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Line(NamedTuple):
    """A record as text, ready to be numbered and chained."""

    event: str
    level: str
    call_id: str
    task_id: str
    payload: str
    context: str


class Notice(NamedTuple):
    """A word to all nodes: under this topic, this has changed. Without a subject, anything has."""

    topic: str
    subject: str = ""


class Unit(NamedTuple):
    """Statements and audit lines that become durable together, or not at all."""

    lines: tuple[Line, ...] = ()
    statements: tuple[tuple[str, Sequence[Any]], ...] = ()
    notices: tuple[Notice, ...] = ()
    """What the other nodes are told once it is durable."""


class Fate(NamedTuple):
    """Who hears what became of a unit, even if nobody waits for it any more.

    `kept` is for one of which was said that nobody knows; `lost` for every other that failed.
    """

    lost: Callable[[Unit], None]
    kept: Callable[[Unit], None]


class Head(NamedTuple):
    """The end of this node's chain."""

    seq: int
    hash: bytes


class Written(NamedTuple):
    """Where the records of a unit stand: their numbers, and the hash of the last one."""

    numbers: range
    hash: bytes


APPROVALS: Final = "approvals"
"""The topic of answers to questions; the subject is the question."""
INSTALLS: Final = Notice("installs")
"""What is installed, enabled or accepted has changed."""
KEYS: Final = Notice("keys")
"""Keys or tokens have changed."""
NAMES: Final = Notice("names")
"""Tools have got wire names."""
PEERS: Final = Notice("peers")
"""An agent elsewhere introduced itself anew."""
PINS: Final = Notice("pins")
"""Definitions were seen for the first time, held back or accepted."""
TIMERS: Final = Notice("timers")
"""Something is to be done, maybe sooner than all that was known."""
GENESIS: Final = Head(0, bytes(32))
NOWHERE: Final = Written(range(0), b"")
