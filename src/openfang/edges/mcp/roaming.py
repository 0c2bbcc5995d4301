"""Sessions where there are several nodes: each is on one of them, and all know of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from openfang.core.errors import OpenFangError, Rejected
from openfang.core.session import NO_OPTIONS
from openfang.edges.api.exchange import Answer
from openfang.edges.api.staying import still_of
from openfang.edges.mcp.elsewhere import Handed, Known, misdirected
from openfang.edges.mcp.ports import PROMPTS
from openfang.edges.mcp.resources import unwatch
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.framing import decoded
from openfang.protocols.mcp.messages import Ask, failure, read_one

if TYPE_CHECKING:
    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.elsewhere import Elsewhere
    from openfang.edges.mcp.ports import Offer, Offers, Place
    from openfang.edges.mcp.session import Session
    from openfang.edges.mcp.sessions import Sessions

Found: TypeAlias = "Session | Literal[Handed.ANSWERED] | None"
_LOST: Final = "The node that worked on this has gone: it may have had an effect"


class Roaming:
    """Finds the sessions of other nodes, and takes them over."""

    def __init__(self, elsewhere: Elsewhere, offers: Offers, sessions: Sessions) -> None:
        self._elsewhere = elsewhere
        self._offers = offers
        self._sessions = sessions

    async def found(self, came: Came, number: str, place: Place, session: Session | None) -> Found:
        """Go on with what was found here, have another node answer, or take over what it had."""
        if session is None:
            came.node.check_call(came.caller, "health")  # before anybody looks for it
            return await self._sought(came, number, place)
        if self._elsewhere.leaving and session.is_idle and self._elsewhere.passed(came):
            await self._release(session)
            raise misdirected()
        return session

    async def _sought(self, came: Came, number: str, place: Place) -> Found:
        match await self._elsewhere.seek(came, number, place):
            case Known() as known:
                return await self._adopt(came, known)
            case Handed.ANSWERED:
                return Handed.ANSWERED
            case Handed():
                await lost(came)
                return Handed.ANSWERED
            case None:
                return None

    async def opened(self, session: Session) -> None:
        """Let all know of a session."""
        try:
            await self._elsewhere.keep(session.known)
        except OpenFangError:
            self._sessions.end(session)
            raise

    async def changed(self, session: Session) -> None:
        """Let all know what it is now."""
        await self._elsewhere.keep(session.known)

    async def ended(self, session: Session) -> None:
        """Let nobody go on with it."""
        with suppress(OpenFangError):  # then it is forgotten for not being used
            await self._elsewhere.drop(session.id)

    async def renew(self) -> None:
        """Let the others know which are used."""
        with suppress(OpenFangError):
            await self._elsewhere.renew(self._sessions.used())

    async def watch(self) -> None:
        """Let go of what another node has taken over, until cancelled."""
        while True:
            with suppress(OpenFangError):
                for number in await self._elsewhere.moved():
                    if (session := self._sessions.get(number)) is not None:
                        await self._forget(session)

    async def _release(self, session: Session) -> None:
        await self._elsewhere.release(session.known)
        await self._forget(session)

    async def _forget(self, session: Session) -> None:
        """Have it here no longer: it is another node's."""
        self._sessions.end(session)
        watched = set(session.talk.watched)
        if session.offer is not None:
            await unwatch(session.offer, session.talk)
        session.talk.watched |= watched

    async def _adopt(self, came: Came, known: Known) -> Session:
        """Go on with it; what may have changed while nobody told the client is told as changed."""
        if (session := self._sessions.get(known.id)) is not None:
            return session
        session = self._sessions.adopt(known, still_of(came))
        offer = self._offers(came.caller, known.place, came.chain)
        _tell_all(session, offer)
        for uri in session.talk.watched:
            with suppress(OpenFangError, RpcError):
                await offer.subscribe(uri, NO_OPTIONS)
        session.offer = offer
        return session


def _tell_all(session: Session, offer: Offer) -> None:
    prompts = ("prompts",) if PROMPTS in offer.features else ()
    for listed in ("tools", "resources", *prompts):
        session.tell(f"notifications/{listed}/list_changed", {})
    for uri in sorted(session.talk.watched):
        session.tell("notifications/resources/updated", {"uri": uri})


async def lost(came: Came) -> None:
    """Say that nobody knows what became of a request; who asked for nothing can come again."""
    message = read_one(decoded(came.body)) if came.body else None
    if not isinstance(message, Ask):
        raise Rejected(_LOST + ".", status=503, rule="node_gone", way_out="send it again")
    body = failure(message.id, RpcError(INTERNAL_ERROR, _LOST))
    await came.answer(Answer(body=body))
