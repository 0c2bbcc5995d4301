"""`a2a_discover`, `a2a_send`: agents elsewhere, by their address or by the name they have here."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.labels import Labels
from openfang.core.results import error_result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.safety.urls import parse_target
from openfang.sources.a2a.client import open_client
from openfang.sources.a2a.discover import discover, find
from openfang.sources.a2a.errand import Errand
from openfang.sources.a2a.wire import Reached, Wire
from openfang.sources.builtin.addresses import url_granted
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.decisions import Deny
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.errand import Around

    Settled = Callable[[Caller, str], Awaitable[None]]

_LONGEST_RUN: Final = 86_400.0
_FROM_OUTSIDE: Final = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT
_URL: Final = {"type": "string", "format": "uri", "maxLength": 8192}
_ID: Final = {"type": "string", "maxLength": 200}
_DISCOVER = builtin_tool(
    "a2a_discover",
    "Read the card of an A2A agent: who it is, and what it says it can do.",
    object_schema(["url"], url={**_URL, "description": "The address it is published under."}),
    risk=Risk.MEDIUM,
    tags=frozenset({"network.http"}),
    sink=Sink(effect=Effect.EXTERNAL_READ, targets=("url",)),
    labels=_FROM_OUTSIDE,
    idempotent=True,
)
_SEND = builtin_tool(
    "a2a_send",
    "Send a message to an A2A agent and wait for its answer.",
    object_schema(
        ["message"],
        url={**_URL, "description": "Its address, or the one its card is published under."},
        peer={"type": "string", "maxLength": 128, "description": "Or the name it has here."},
        message={"type": "string", "description": "What to tell it."},
        context={**_ID, "description": "The conversation to go on with."},
        task={**_ID, "description": "A task that asked something."},
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"network.http"}),
    sink=Sink(effect=Effect.EXTERNAL_WRITE, targets=("url", "peer")),
    labels=_FROM_OUTSIDE,
    timeout=_LONGEST_RUN,  # bounded by the chain, like the agent itself
    hands_on=True,
)


def _closed(url: str) -> bool:
    del url
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aLimits:
    """Whether agents elsewhere are spoken with at all, and how far.

    `opens` says of an address whether it is one of a node that may be at a private one.
    """

    enabled: bool
    allow_private: bool = False
    opens: Callable[[str], bool] = _closed


def a2a_tools(limits: A2aLimits, around: Around, settled: Settled) -> Sequence[Builtin]:
    """The family of agents elsewhere; `settled` waits until one with a name is known.

    It raises `SourceFailed` if the caller may call that one, and it was never reached.
    """
    family = _Elsewhere(limits, around, settled)
    return [
        Builtin(_switched(_DISCOVER, limits), family.discover, _grant),
        Builtin(_switched(_SEND, limits), family.send, _grant),
    ]


def _switched(tool: Tool, limits: A2aLimits) -> Tool:
    return tool if limits.enabled else replace(tool, enabled=False)


def _grant(call: Call) -> Deny | None:
    # What a peer is known as is granted, or not, where it is called.
    return None if "peer" in call.arguments else url_granted(call)


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    limits: A2aLimits
    around: Around
    settled: Settled

    async def discover(self, admitted: Admitted) -> Result:
        async with self._reached(admitted, discover) as (_, card):
            return text_result(_shown(card), structured=dict(card.raw))

    async def send(self, admitted: Admitted) -> Result:
        arguments = admitted.call.arguments
        if ("url" in arguments) == ("peer" in arguments):
            return error_result("Error: give either the url of an agent, or the name of a peer")
        if "peer" in arguments:
            return await self._by_name(admitted)
        async with self._reached(admitted, find) as (wire, card):
            client = await open_client(wire, card)
            # The name on a card is anybody's: it could be that of a peer, which a person trusts.
            return await Errand(_origin(arguments["url"]), client, admitted, self.around).run()

    async def _by_name(self, admitted: Admitted) -> Result:
        """Call the peer as the same caller, in the same place of the chain."""
        call = admitted.call
        name = str(call.arguments["peer"]).removeprefix(f"{Kind.A2A.value}:")
        await self.settled(call.caller, name)
        sent = replace(
            call,
            id=new_id("call"),
            tool=tool_id(Kind.A2A, name),
            arguments={key: value for key, value in call.arguments.items() if key != "peer"},
            labels=admitted.labels,
            admin_token=None,
            progress=admitted.progress,
            client=admitted.client,
        )
        result = await self.around.invoke(sent)
        return replace(result, receipt=None, call_id="")

    @asynccontextmanager
    async def _reached(
        self, admitted: Admitted, find: Callable[[Wire], Awaitable[Card]]
    ) -> AsyncGenerator[tuple[Wire, Card]]:
        from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s

        call, limits = admitted.call, self.limits
        url = str(call.arguments["url"])
        reached = Reached(
            url=url,
            allow_private=limits.allow_private or limits.opens(url),
            hosts=call.caller.grants.network,
        )
        async with HttpClient() as http:
            wire = Wire(http, reached)
            yield wire, await find(wire)


def _origin(url: str) -> str:
    target = parse_target(url)
    return f"{target.scheme}://{target.authority}"


def _shown(card: Card) -> str:
    about = f": {card.description}" if card.description else ""
    skills = [f"- {one.name}: {one.description}" for one in card.skills]
    where = [f"{one.binding} {one.version} {one.url}".replace("  ", " ") for one in card.interfaces]
    lines = (f"{card.name} {card.version}{about}", "Skills:", *(skills or ["none"]), *where)
    return "\n".join(lines)
