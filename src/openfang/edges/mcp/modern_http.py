"""Requests that stand alone (2026-07-28), over HTTP: one POST each, and no session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.edges.api.serving import go_on, serving
from openfang.edges.api.watch import Watch
from openfang.edges.mcp.answering import CALL, answered, charge, charge_unmade
from openfang.edges.mcp.bodies import ACCEPTED, invalid, refuse
from openfang.edges.mcp.changes import SUBSCRIPTION
from openfang.edges.mcp.elsewhere import Handed
from openfang.edges.mcp.modern import modern_context
from openfang.edges.mcp.parked import over
from openfang.edges.mcp.reply import Reply
from openfang.edges.mcp.results import stamped
from openfang.edges.mcp.roaming import lost
from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.headers import InvalidMark, find_marks
from openfang.protocols.mcp.inbound import (
    VERSION,
    check_arguments,
    check_request,
    status_of,
    unsupported,
    value_of,
)
from openfang.protocols.mcp.messages import Ask, Malformed, Note, answer, failure, read_one
from openfang.protocols.mcp.versions import MODERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.elsewhere import Elsewhere
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offer, Offers, Place
    from openfang.edges.mcp.staying import Staying
    from openfang.protocols.mcp.headers import Marks
    from openfang.protocols.mcp.messages import Message

_LISTEN: Final = "subscriptions/listen"
_MOST_KNOWN: Final = 2000


class ModernFront:
    """Answers them. Who hangs up cancels what it asked for."""

    def __init__(
        self,
        handler: Handler,
        offers: Offers,
        staying: Staying,
        beat: float,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._handler = handler
        self._offers = offers
        self._staying = staying
        self._beat = beat
        self._marks = _KnownMarks()

    async def post(self, came: Came, place: Place, value: object) -> None:
        """Answer one message."""
        message = read_one(value)
        if isinstance(message, Ask):
            await self._ask(came, place, message)
            return
        charge(came)
        refusal = _refusal(came, message)
        if refusal is not None:
            number = message.id if isinstance(message, Malformed) else None
            await refuse(came, number, refusal)
        else:
            await came.answer(ACCEPTED)

    async def _ask(self, came: Came, place: Place, ask: Ask) -> None:
        reply = Reply(came, silent=self._beat, beat=self._beat)
        try:
            context = self._context(came, place, ask, reply)
            if self._elsewhere is not None and await self._handed(came, ask, context):
                return
            charge(came, ask.method)
            serve = self._listen if ask.method == _LISTEN else self._answer
            await serve(came, ask, context, reply)
        except RpcError as error:
            charge_unmade(came, ask.method)
            await refuse(came, ask.id, error, status_of(error.code))
        finally:
            reply.close()

    def _context(self, came: Came, place: Place, ask: Ask, reply: Reply) -> Context:
        """Check the headers against the body, and what the body says of itself."""
        check_request(ask.method, ask.params, came.headers)
        offer = self._offers(came.caller, place, came.chain)
        context = modern_context(ask.params, offer, reply, number=ask.id)
        if ask.method == CALL:
            self._check_arguments(came, offer, ask.params)
        return context

    def _check_arguments(self, came: Came, offer: Offer, params: Mapping[str, Any]) -> None:
        """Compare the headers that mirror arguments, where the tool wants any."""
        name, arguments = params.get("name"), params.get("arguments")
        offered = offer.find(name) if isinstance(name, str) else None
        marks = self._marks.of(offered.tool.input_schema) if offered is not None else None
        if marks and isinstance(arguments, dict | None):
            check_arguments(marks, cast("dict[str, Any]", arguments or {}), came.headers)

    async def _handed(self, came: Came, ask: Ask, context: Context) -> bool:
        """Have the node answer on which the call waits; with the node it has ended."""
        node = self._handler.elsewhere(ask.method, ask.params, context)
        if not node or self._elsewhere is None:
            return False
        if self._elsewhere.passed(came):
            raise over()
        match await self._elsewhere.hand(came, node):
            case Handed.ANSWERED:
                return True
            case Handed.LOST:
                await lost(came)
                return True
            case Handed.GONE:
                raise over()

    async def _answer(self, came: Came, ask: Ask, context: Context, reply: Reply) -> None:
        watch = Watch(came.receive)
        try:
            body, error = await answered(self._handler, ask, context, came, self._staying)
            await reply.end(body, status_of(error.code) if error else 200)
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()

    async def _listen(self, came: Came, ask: Ask, context: Context, reply: Reply) -> None:
        """Let it listen until it hangs up, or we end: that is said in the place of a result."""
        watch = Watch(came.receive)
        over = answer(ask.id, stamped({"_meta": {SUBSCRIPTION: ask.id}}, context))
        try:
            reply.streams = True
            await self._until_over(came, ask, context)
            reply.begin()
            await reply.end(over)
        except RpcError as error:
            await reply.end(failure(ask.id, error), status_of(error.code))
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()

    async def _until_over(self, came: Came, ask: Ask, context: Context) -> None:
        with self._staying.stay(came, serving().cancel) as stay:
            try:
                await self._handler.handle(ask.method, ask.params, context)
            except asyncio.CancelledError:
                if not stay.ended:
                    raise
                go_on()


def _refusal(came: Came, message: Message) -> RpcError | None:
    """Say what is wrong with what is no request; a notification needs nothing but a revision."""
    match message:
        case Note():
            version = value_of(came.headers, VERSION)
            return None if version in MODERN else unsupported(version or "no revision")
        case Malformed(reason):
            return invalid(reason)
        case _:
            return invalid("nothing was asked that this could answer")


class _KnownMarks:
    """The arguments that tools want mirrored, found once for each schema.

    A schema is known by its identity: it is held, so that no other can have the same.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Marks]] = {}

    def of(self, schema: object) -> Marks:
        """Find them; a tool that marks what it may not is called without any."""
        known = self._known.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        marks = _marks(schema)
        self._known[id(schema)] = schema, marks
        return marks


def _marks(schema: object) -> Marks:
    try:
        return find_marks(schema)
    except InvalidMark:
        return {}
