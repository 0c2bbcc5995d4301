"""How a call is made at a server: when, what is said besides, and how long it may take."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.deadline import Deadline
from openfang.core.errors import CallTimedOut
from openfang.core.values import dataclass
from openfang.protocols.mcp.levels import LOG_LEVEL
from openfang.protocols.mcp.meta import CLIENT_CAPABILITIES, STEP
from openfang.sources.mcp.abilities import SUBSCRIBE, UNSUBSCRIBE
from openfang.sources.mcp.adapter import result_of
from openfang.sources.mcp.errand import ClientErrand, PlainErrand
from openfang.sources.mcp.onward import passed_on
from openfang.sources.mcp.operations import operation_result
from openfang.sources.mcp.questions import offered_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.core.calls import Admitted
    from openfang.core.results import Result
    from openfang.sources.hops import Hop, Hops
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.relay import Relay
    from openfang.sources.mcp.spec import ServerSpec
    from openfang.sources.mcp.turns import Turns
    from openfang.sources.mcp.watches import Watches

    Ready: TypeAlias = Callable[[], Awaitable[Connection]]

_log = logging.getLogger("openfang.mcp")


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes the calls of one server. It raises what a connection does, or that it took too long."""

    spec: ServerSpec
    relay: Relay
    turns: Turns
    watches: Watches
    hops: Hops

    def make(self, admitted: Admitted, ready: Ready) -> Awaitable[Result]:
        """Make one, when it is its client's turn, over the connection that is there then."""
        tool, client = admitted.tool, admitted.client
        patience = Deadline(self.spec.timeout if tool.timeout is None else tool.timeout)
        if client is None:
            return self._made_plainly(PlainErrand(self.relay, admitted, patience), ready)
        errand = ClientErrand(self.relay, admitted, patience, client, self.turns)
        return self._made_for_client(errand, ready)

    async def _made_for_client(self, errand: ClientErrand, ready: Ready) -> Result:
        try:
            return await self._made_in_turn(errand, ready)
        finally:
            errand.end()

    async def _made_plainly(self, errand: PlainErrand, ready: Ready) -> Result:
        """Do not wait for anybody, as long as nobody has to be told apart."""
        turns = self.turns
        if turns.strict:
            return await self._made_in_turn(errand, ready)
        turns.others += 1
        try:
            return await self._made(await ready(), errand)
        finally:
            turns.leave_others()

    async def _made_in_turn(self, errand: PlainErrand, ready: Ready) -> Result:
        await self.turns.enter(errand)
        try:
            return await self._made(await ready(), errand)
        finally:
            self.turns.leave(errand)

    async def _made(self, connection: Connection, errand: PlainErrand) -> Result:
        """Wait for the answer for as long as the server lets us know that it works on it."""
        tool, client = errand.admitted.tool, errand.admitted.client
        hop = self.hops.depart(errand.admitted)
        try:
            with errand.patience:
                if client is not None and client.level:
                    await connection.hear(client.level)
                answer = await self._asked(connection, errand, hop)
            result = operation_result(tool.name, answer) if tool.operation else result_of(answer)
            result = hop.back(result, result.meta)
        except TimeoutError:
            raise self._late(errand.admitted) from None
        finally:
            hop.end()
        self.relay.alive()
        return result

    def _asked(
        self, connection: Connection, errand: PlainErrand, hop: Hop
    ) -> Awaitable[Mapping[str, Any]]:
        """Ask for what the call is of: a tool, or what else the server can be asked."""
        tool, call = errand.admitted.tool, errand.admitted.call
        meta = self._meta(connection, errand.admitted, hop)
        if not tool.operation:
            return connection.call(tool.name, call.arguments, meta=meta, errand=errand)
        if tool.name == SUBSCRIBE:
            return self.watches.subscribe(connection, call.arguments["uri"], call.caller.id)
        if tool.name == UNSUBSCRIBE:
            return self.watches.unsubscribe(connection, call.arguments["uri"], call.caller.id)
        return connection.ask(tool.name, {**call.arguments, "_meta": meta}, errand=errand)

    def _meta(self, connection: Connection, admitted: Admitted, hop: Hop) -> dict[str, Any]:
        """Say whose call it is a part of; and in the modern era, what its client can be asked."""
        call, client = admitted.call, admitted.client
        meta = hop.words()
        if call.meta and (further := passed_on(call.meta)):
            meta = {**self.relay.clean(further), **meta}
        if call.step:
            meta[STEP] = call.step
        if client is not None and connection.era == "modern":
            meta[CLIENT_CAPABILITIES] = offered_by(client, self.spec)
            if client.level:
                meta[LOG_LEVEL] = client.level
        return meta

    def _late(self, admitted: Admitted) -> CallTimedOut:
        method = admitted.tool.name if admitted.tool.operation else "tools/call"
        seconds = self.spec.timeout if admitted.tool.timeout is None else admitted.tool.timeout
        _log.warning("Request timed out: %s (id=%s)", method, admitted.call.id)
        return CallTimedOut(
            f"{self.spec.name} did not answer within {seconds:g} s.",
            way_out=f"raise timeout_secs of the server {self.spec.name}",
        )
