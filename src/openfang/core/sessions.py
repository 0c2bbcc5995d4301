"""Sessions as they are kept: what lists show of one, its turns, and a page of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.agents import Message
    from openfang.core.labels import Labels

CURSOR: Final = r"^[0-7][0-9a-f]{15}-session_[0-9a-f]{32}$"
MOST_SESSIONS: Final = 500
"""So many fit on a page."""
FORMATS: Final = ("jsonl", "md")
"""How a session can be exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A conversation of one caller with one agent, without what was said in it."""

    id: str
    agent: str
    caller: str
    name: str
    title: str
    messages: int
    labels: Labels
    created_at: int
    updated_at: int

    @property
    def cursor(self) -> str:
        """Where the list goes on behind it, even if it has moved or is gone by then."""
        return f"{self.updated_at:016x}-{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """What was said, as which turn of the session, in which run and when."""

    seq: int
    run: str
    at: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Some of `total` sessions, newest first; `after` is where the rest begins, if there is any."""

    sessions: Sequence[SessionSummary]
    total: int
    after: str | None = None
