"""All sessions: only so many, for who opened them and where, and for as long as they are used."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from openfang.core.errors import GuardTripped, Rejected
from openfang.core.ids import random_hex
from openfang.edges.api.staying import always
from openfang.edges.mcp.elsewhere import Known
from openfang.edges.mcp.session import Session

if TYPE_CHECKING:
    from openfang.core.ports import Clock
    from openfang.edges.api.staying import Still
    from openfang.edges.mcp.context import Talk
    from openfang.edges.mcp.elsewhere import Elsewhere
    from openfang.edges.mcp.events import Events
    from openfang.edges.mcp.ports import Place

_MOST_KEPT: Final = 64_000_000
_AWAY_SECONDS: Final = 15.0
_WAY_OUT: Final = "end one by DELETE with its Mcp-Session-Id; unused ones end by themselves"


class Sessions:
    """Finds them. Of what was sent on streams that have ended, all together keep only so much.

    `elsewhere` are the other nodes, where there are any.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        most: int = 10_000,
        most_of_one: int = 1_000,
        idle_seconds: float = 1800.0,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.elsewhere = elsewhere
        self._clock = clock
        self._most = most
        self._most_of_one = most_of_one
        self._idle = idle_seconds
        self._sessions: dict[str, Session] = {}
        self._of = Counter[str]()
        # In the order in which they last had something to keep.
        self._keeping: dict[Session, None] = {}
        self._kept = 0
        self._deserted: dict[Session, float] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def check_room(self, caller: str) -> None:
        """Refuse one session too many."""
        if self._of[caller] >= self._most_of_one:
            raise GuardTripped(
                f"{caller} has {self._of[caller]} sessions.",
                rule="too_many_sessions",
                way_out=_WAY_OUT,
            )
        if len(self._sessions) >= self._most:
            raise Rejected(
                f"There are {len(self._sessions)} sessions.",
                status=503,
                rule="too_many_sessions",
                way_out=_WAY_OUT,
            )

    def open(self, caller: str, place: Place, talk: Talk, still: Still = always) -> Session:
        """Begin one."""
        known = Known(id=random_hex(16), caller=caller, place=place, talk=talk)
        return self._take(Session(known, still))

    def adopt(self, known: Known, still: Still) -> Session:
        """Go on with one that another node had."""
        return self._take(Session(known, still))

    def _take(self, session: Session) -> Session:
        self._sessions[session.id] = session
        self._of[session.caller] += 1
        self.renew(session)
        return session

    def find(self, number: str, caller: str, place: Place) -> Session | None:
        """Find who goes on with a session: nobody but who opened it, and where that was."""
        session = self._sessions.get(number)
        if session is None or session.caller != caller or session.place != place:
            return None
        if self._is_over(session):
            return None
        self.renew(session)
        return session

    def renew(self, session: Session) -> None:
        """Note that a session is used."""
        session.until = self._clock.monotonic() + self._idle

    def end(self, session: Session) -> None:
        """End a session, and all that belongs to it."""
        if self._sessions.pop(session.id, None) is None:
            return
        self._of[session.caller] -= 1
        if not self._of[session.caller]:
            del self._of[session.caller]
        self._forget(session)
        session.end()

    def get(self, number: str) -> Session | None:
        """Find one by its number alone."""
        return self._sessions.get(number)

    def used(self) -> list[str]:
        """Name those that are used."""
        return [session.id for session in self._sessions.values() if not self._is_over(session)]

    def expired(self) -> list[Session]:
        """List those that were not used for too long, and those whose key has ended."""
        known = self._sessions.values()
        return [session for session in known if self._is_over(session) or not session.still()]

    def _is_over(self, session: Session) -> bool:
        return session.until <= self._clock.monotonic() and not session.is_attended

    def desert(self) -> None:
        """Wait no longer for those who were asked something and have been gone for a while."""
        now = self._clock.monotonic()
        gone = [session for session in self._sessions.values() if session.is_deserted]
        self._deserted = {session: self._deserted.get(session, now) for session in gone}
        for session, since in self._deserted.items():
            if now - since >= _AWAY_SECONDS:
                session.desert()

    def retire(self, session: Session, events: Events) -> None:
        """Keep what was sent on a stream that has ended, for who lost the connection."""
        if session.id not in self._sessions:
            return
        before = session.kept
        session.retire(events)
        self._kept += session.kept - before
        self._keeping.pop(session, None)
        self._keeping[session] = None
        while self._kept > _MOST_KEPT:
            self._forget(next(iter(self._keeping)))

    def _forget(self, session: Session) -> None:
        if session in self._keeping:
            del self._keeping[session]
            self._kept -= session.kept
            session.forget()
