"""Sessions over HTTP (2025-03-26 to 2025-11-25): what POST, GET and DELETE do with one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import OpenFangError
from openfang.edges.api.exchange import Answer as Whole
from openfang.edges.api.staying import still_of
from openfang.edges.api.watch import Watch
from openfang.edges.mcp.answering import answered, charge
from openfang.edges.mcp.bodies import ACCEPTED, BAD_REQUEST, invalid, refuse
from openfang.edges.mcp.changes import tell_changes
from openfang.edges.mcp.context import Talk, in_talk
from openfang.edges.mcp.elsewhere import Handed
from openfang.edges.mcp.reply import Reply, stream
from openfang.edges.mcp.resources import unwatch
from openfang.edges.mcp.roaming import Roaming
from openfang.protocols.mcp.errors import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from openfang.protocols.mcp.inbound import LAST_EVENT, SESSION, value_of
from openfang.protocols.mcp.messages import (
    Answer,
    Ask,
    Failure,
    Malformed,
    Note,
    failure,
    read,
    read_id,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.events import Events
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offers, Place
    from openfang.edges.mcp.roaming import Found
    from openfang.edges.mcp.session import Session
    from openfang.edges.mcp.sessions import Sessions
    from openfang.edges.mcp.staying import Staying
    from openfang.protocols.mcp.messages import Id, Message

INITIALIZE: Final = "initialize"
_SUBSCRIBE: Final = "resources/subscribe"
_CHANGING: Final = frozenset({_SUBSCRIBE, "resources/unsubscribe", "logging/setLevel"})
_CANCELLED: Final = "notifications/cancelled"
_BATCHED: Final = "2025-03-26"
_NOT_FOUND: Final = 404
_LARGEST_GREETING: Final = 65_536
# So soon a client hears how it can go on with what it asked for, should it lose the connection.
_SILENT_SECONDS: Final = 1.0


class SessionReply(Reply):
    """The way back to a client that can be asked while it waits for its answer."""

    __slots__ = ("_answers", "_session")

    def __init__(self, came: Came, session: Session, answers: Sequence[Id], *, beat: float) -> None:
        self._session = session
        self._answers = answers
        super().__init__(came, silent=min(_SILENT_SECONDS, beat), beat=beat)

    @property
    def open(self) -> bool:
        """Whether the client reads what it is asked."""
        return self.hears

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask on the stream of the request; the answer is a POST of its own."""
        if not self.open:
            return await super().ask(method, params)

        def put(number: Id) -> None:
            self.begin().put(request(number, method, params))

        return await self._session.ask(put, self.notify)

    def stream(self) -> Events:
        """Begin a stream that can be taken up again."""
        return self._session.stream(self._answers)


class SessionFront:
    """Serves them. Who loses the connection loses nothing of what it asked for.

    Where there are other nodes, `roaming` knows of the sessions that they have.
    """

    def __init__(
        self,
        handler: Handler,
        offers: Offers,
        sessions: Sessions,
        staying: Staying,
        beat: float,
    ) -> None:
        self._handler = handler
        self._offers = offers
        self._sessions = sessions
        self._staying = staying
        self._beat = beat
        nodes = sessions.elsewhere
        self.roaming = None if nodes is None else Roaming(nodes, offers, sessions)

    async def greet(self, came: Came, place: Place, ask: Ask) -> None:
        """Begin a session."""
        charge(came)
        if len(came.body) > _LARGEST_GREETING:
            await refuse(came, ask.id, invalid(f"more than {_LARGEST_GREETING} bytes of greeting"))
            return
        await self._make_room(came)
        offer, talk = self._offers(came.caller, place, came.chain), Talk(lasting=True)
        reply = Reply(came, silent=self._beat, beat=self._beat)
        try:
            context = in_talk(offer, reply, talk)
            body, error = await answered(self._handler, ask, context, came, self._staying)
            if error is None:
                session = self._sessions.open(came.caller.id, place, talk, still_of(came))
                if self.roaming is not None:
                    await self.roaming.opened(session)
                reply.headers = ((SESSION, session.id.encode()),)
            await reply.end(body)
        finally:
            reply.close()

    async def _make_room(self, came: Came) -> None:
        try:
            self._sessions.check_room(came.caller.id)
        except OpenFangError:
            await self.sweep()
            self._sessions.check_room(came.caller.id)

    async def sweep(self) -> None:
        """End the sessions that were not used for too long, or whose key has ended.

        Whoever was asked something and hung up is not waited for.
        """
        for session in self._sessions.expired():
            await self._dismiss(session)
        self._sessions.desert()
        if self.roaming is not None:
            await self.roaming.renew()

    async def _dismiss(self, session: Session) -> None:
        self._sessions.end(session)
        if self.roaming is not None:
            await self.roaming.ended(session)
        if session.offer is not None:
            await unwatch(session.offer, session.talk)

    async def post(self, came: Came, place: Place, value: object) -> None:
        """Take what a client says: a message, or many where its revision has that."""
        session = await self._find(came, place)
        messages = read(value)
        number = messages[0].id if isinstance(messages[0], Ask | Malformed) else None
        if session is Handed.ANSWERED:
            return
        if session is None:
            charge(came)
            await refuse(came, number, _no_session(), _NOT_FOUND)
        elif not _is_batch(value, messages):
            await self._one(came, session, messages[0])
        elif session.talk.version == _BATCHED:
            await self._batch(came, session, messages)
        else:
            charge(came)
            await refuse(came, None, invalid(f"{session.talk.version} has no batches"))

    async def _find(self, came: Came, place: Place) -> Found:
        """Find it here; elsewhere, it is not for us to answer."""
        number = value_of(came.headers, SESSION) or ""
        session = self._sessions.find(number, came.caller.id, place)
        if self.roaming is None:
            return session
        return await self.roaming.found(came, number, place, session)

    async def _one(self, came: Came, session: Session, message: Message) -> None:
        refusal = self._heard(came, session, message)
        if refusal is not None:
            await refuse(
                came, message.id if isinstance(message, Ask | Malformed) else None, refusal
            )
        elif isinstance(message, Ask):
            await self._ask(came, session, message)
        else:
            await came.answer(ACCEPTED)

    def _heard(self, came: Came, session: Session, message: Message) -> RpcError | None:
        """Heed what needs no answer, have the rest paid for, and say what cannot be answered."""
        charge(came, message.method if isinstance(message, Ask) else "")
        match message:
            case Note(method=method, params=params):
                if method == _CANCELLED:
                    session.cancel(read_id(params.get("requestId")))
            case Answer() | Failure():
                session.settle(message)
            case Malformed(reason):
                return invalid(reason)
            case Ask(method=method):
                return invalid("the session has begun") if method == INITIALIZE else None
        return None

    async def _ask(self, came: Came, session: Session, ask: Ask) -> None:
        reply = SessionReply(came, session, (ask.id,), beat=self._beat)
        watch = Watch(came.receive, cancels=False)
        try:
            with session.attended(watch):
                body, status = await self._answered(came, session, ask, reply)
                await reply.end(body, status)
        finally:
            watch.end()
            self._close(session, reply)

    async def _answered(
        self, came: Came, session: Session, ask: Ask, reply: Reply
    ) -> tuple[bytes, int]:
        offer = self._offers(came.caller, session.place, came.chain)
        try:
            with session.running(ask.id):
                context = in_talk(offer, reply, session.talk)
                body, _ = await answered(self._handler, ask, context, came, self._staying)
        except RpcError as error:
            status = BAD_REQUEST if error.code == INVALID_REQUEST else 200
            return failure(ask.id, error), status
        if ask.method == _SUBSCRIBE:
            session.offer = offer
        if self.roaming is not None and ask.method in _CHANGING:
            await self.roaming.changed(session)
        return body, 200

    def _close(self, session: Session, reply: Reply) -> None:
        reply.close()
        if reply.events is not None:
            reply.events.end()
            self._sessions.retire(session, reply.events)

    async def _batch(self, came: Came, session: Session, messages: Sequence[Message]) -> None:
        """Answer many at once: in one list, or each when it is ready once anything is told."""
        refusals = [(message, self._heard(came, session, message)) for message in messages]
        asks = [one for one, refusal in refusals if isinstance(one, Ask) and refusal is None]
        done = [failure(getattr(one, "id", None), refusal) for one, refusal in refusals if refusal]
        if not asks and not done:
            await came.answer(ACCEPTED)
            return
        reply = SessionReply(came, session, [ask.id for ask in asks], beat=self._beat)
        watch = Watch(came.receive, cancels=False)
        try:
            with session.attended(watch):
                async with asyncio.TaskGroup() as group:
                    for ask in asks:
                        group.create_task(self._of_batch(came, session, ask, reply, done))
                await _end_batch(reply, done)
        finally:
            watch.end()
            self._close(session, reply)

    async def _of_batch(
        self, came: Came, session: Session, ask: Ask, reply: Reply, done: list[bytes]
    ) -> None:
        try:
            body, _ = await self._answered(came, session, ask, reply)
        except OpenFangError as error:
            body = failure(ask.id, RpcError(INTERNAL_ERROR, error.message))
        if reply.events is None:
            done.append(body)
        else:
            reply.events.put(body)

    async def get(self, came: Came, place: Place) -> None:
        """Let a client listen: to what belongs to no request, or to a stream that it lost."""
        session = await self._found(came, place)
        if session is None:
            return
        last = value_of(came.headers, LAST_EVENT)
        found = session.after(last) if last else (session.standing(), session.standing().sent)
        if found is None:
            await refuse(came, None, invalid(f"nothing is kept after the event {last!r}"))
            return
        await self._listen(came, session, *found)

    async def _listen(self, came: Came, session: Session, events: Events, after: int) -> None:
        watch = Watch(came.receive)
        try:
            with self._staying.stay(came, events.leave), session.attended(watch):
                if events is session.standing():
                    offer = self._offers(came.caller, session.place, came.chain)
                    session.tell_by(tell_changes(offer, session.talk, session.tell))
                await stream(came, events, after=after, beat=self._beat)
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()
            self._sessions.renew(session)

    async def delete(self, came: Came, place: Place) -> None:
        """End a session, its streams and what it asked for."""
        session = await self._found(came, place)
        if session is not None:
            await self._dismiss(session)
            await came.answer(Whole(body=b""))

    async def _found(self, came: Came, place: Place) -> Session | None:
        """Find the session of what is no message, or answer that there is none."""
        session = await self._find(came, place)
        if session is Handed.ANSWERED:
            return None
        charge(came)
        if session is None:
            await refuse(came, None, _no_session(), _NOT_FOUND)
        return session


def _is_batch(value: object, messages: Sequence[Message]) -> bool:
    """Whether there are many; a list of none, or of too many, was read as one that is wrong."""
    return isinstance(value, list) and len(cast("list[object]", value)) == len(messages)


async def _end_batch(reply: Reply, done: Sequence[bytes]) -> None:
    """Send what was ready before anything was told, and what is told of nothing."""
    if reply.events is None:
        await reply.end(b"[%b]" % b",".join(done))
        return
    for body in done:
        reply.events.put(body)
    await reply.finish()


def _no_session() -> RpcError:
    return RpcError(INVALID_REQUEST, "There is no such session, or it has ended: initialize again")
