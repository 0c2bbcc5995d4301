"""One POST by itself, as the seed has it: no session, and one JSON answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from openfang.edges.api.watch import Watch
from openfang.edges.mcp.answering import answered, charge
from openfang.edges.mcp.bodies import ACCEPTED, invalid, refuse
from openfang.edges.mcp.context import Talk, in_talk
from openfang.edges.mcp.reply import Reply
from openfang.protocols.mcp.messages import Ask, Malformed, Note, read_one

if TYPE_CHECKING:
    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offers, Place
    from openfang.edges.mcp.staying import Staying


class PlainFront:
    """Answers it as a client of the first revision is answered."""

    def __init__(self, handler: Handler, offers: Offers, staying: Staying) -> None:
        self._handler = handler
        self._offers = offers
        self._staying = staying

    async def post(self, came: Came, place: Place, value: object) -> None:
        """Answer one message; a notification is only taken."""
        message = read_one(value)
        charge(came, message.method if isinstance(message, Ask) else "")
        match message:
            case Ask():
                await self._ask(came, place, message)
            case Note():
                await came.answer(ACCEPTED)
            case Malformed(reason, number):
                await refuse(came, number, invalid(reason))
            case _:
                await refuse(came, None, invalid("nothing was asked that this could answer"))

    async def _ask(self, came: Came, place: Place, ask: Ask) -> None:
        reply = Reply(came)
        offer = self._offers(came.caller, place, came.chain)
        watch = Watch(came.receive)
        try:
            context = in_talk(offer, reply, Talk())
            body, _ = await answered(self._handler, ask, context, came, self._staying)
            await reply.end(body)
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()
            reply.close()
