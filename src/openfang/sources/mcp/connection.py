"""One server that we have greeted: its tools, calls of them, and whether it is still there."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.protocols.mcp.errors import HEADER_MISMATCH, METHOD_NOT_FOUND, BadAnswer, RpcError
from openfang.protocols.mcp.headers import InvalidMark, Marks, find_marks, param_headers
from openfang.protocols.mcp.levels import LEVELS, severity
from openfang.protocols.mcp.meta import CLIENT_CAPABILITIES, ClientInfo, meta_of
from openfang.protocols.mcp.results import InputRequired, needs
from openfang.sources.mcp.abilities import able, read_abilities
from openfang.sources.mcp.greeting import Declared, Era, Greeter, Greeting
from openfang.sources.mcp.listing import list_all, list_some
from openfang.sources.mcp.transport import LOG, Errand, Peer, Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

MAX_ROUNDS: Final = 8
_LEVEL_SECONDS: Final = 2.0


class Connection:
    """One connection. All that it raises is `RpcError`, `Lost`, or a refused address."""

    def __init__(self, transport: Transport, peer: Peer, greeting: Greeting) -> None:
        self.transport = transport
        self.greeting = greeting
        self.version = greeting.version
        self.era: Era = greeting.era
        self.server_info = greeting.server_info
        self.abilities = read_abilities(greeting.capabilities)
        self.instructions = greeting.instructions
        self.rejected: dict[str, str] = {}
        self._peer = peer
        self._modern = greeting.era == "modern"
        self._stamp = greeting.introduction.fields()
        self._offered = {CLIENT_CAPABILITIES: self._stamp.pop(CLIENT_CAPABILITIES)}
        self._level = len(LEVELS)
        self._marks: dict[str, Marks] = {}

    @property
    def lost(self) -> anyio.Event:
        """Set when the connection is gone."""
        return self.transport.lost

    @property
    def reason(self) -> str:
        """Why it is gone; empty while it is not."""
        return self.transport.reason

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Awaitable[dict[str, Any]]:
        """Ask once. In the modern era every request says who asks, whatever `_meta` it had.

        What the client behind it can be asked, if there is one, its own `_meta` says.
        """
        if self._modern:
            params = self._introduced(params or {})
        return self.transport.request(method, params, errand=errand, headers=headers)

    def _introduced(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {**params, "_meta": {**self._offered, **meta_of(params), **self._stamp}}

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask, and answer what the server wants to know before it goes on."""
        again: Mapping[str, Any] = params
        for _ in range(MAX_ROUNDS + 1):
            result = await self.request(method, again, errand=errand, headers=headers)
            needed = needs(result) if self._modern else None
            if needed is None:
                return result
            again = needed.retry(params, await self._answers(needed, errand))
        raise BadAnswer(f"{method} wanted input more than {MAX_ROUNDS} times")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        errand: Errand | None = None,
    ) -> dict[str, Any]:
        """Call a tool and give its whole result."""
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        headers = self._mirrored(name, arguments)
        try:
            return await self.ask("tools/call", params, errand=errand, headers=headers)
        except RpcError as error:
            if error.code != HEADER_MISMATCH:
                raise
        await self.tools()  # the server wants other arguments mirrored than it said before
        headers = self._mirrored(name, arguments)
        return await self.ask("tools/call", params, errand=errand, headers=headers)

    async def tools(self) -> list[dict[str, Any]]:
        """List all tools, as the server describes them; a server without any may not know how."""
        try:
            found = await list_all(partial(self.request, "tools/list"), "tools")
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            found = []
        return self._usable(found) if self._modern and self.transport.mirrors else found

    async def entries(self, method: str, key: str) -> list[dict[str, Any]]:
        """List what is no tool, as far as that goes."""
        return await list_some(partial(self.request, method), key)

    async def hear(self, level: str) -> None:
        """Have messages sent that are at least so severe; a modern request says so for itself."""
        wanted = severity(level)
        if self._modern or "logging" not in self.abilities or not 0 <= wanted < self._level:
            return
        self._level = wanted
        with suppress(RpcError), anyio.move_on_after(_LEVEL_SECONDS):  # a call waits for this
            await self.request("logging/setLevel", {"level": level})

    async def ping(self) -> None:
        """Ask whether it is there; one that answers with an error is."""
        method = "server/discover" if self._modern else "ping"
        try:
            await self.request(method, {} if self._modern else None)
        except RpcError as error:
            LOG.debug("The answer to %s was an error: %s", method, error)

    async def listen(self, addresses: Sequence[str] = ()) -> bool:
        """Hear of changed lists, and of changes to what is at these addresses, until it ends.

        Before the modern era nobody has to ask. What is heard goes to the peer. Says whether there
        was anything to hear of.
        """
        wanted: dict[str, Any] = {
            f"{name}ListChanged": True
            for name in ("tools", "prompts", "resources")
            if able(self.abilities, name, "listChanged")
        }
        if addresses:
            wanted["resourceSubscriptions"] = list(addresses)
        if not self._modern or not wanted:
            return False
        await self.request("subscriptions/listen", {"notifications": wanted})
        return True

    async def _answers(
        self, needed: InputRequired, errand: Errand | None
    ) -> Mapping[str, Mapping[str, Any]]:
        if errand is not None:
            return await errand.answers(needed.questions)
        asked = self._peer.asked
        return {one.key: await asked(one.method, one.params) for one in needed.questions}

    def _mirrored(self, name: str, arguments: Mapping[str, Any]) -> dict[str, str] | None:
        marks = self._marks.get(name)
        return param_headers(marks, arguments) if marks else None

    def _usable(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out the tools that want arguments mirrored in a way that is not allowed."""
        self._marks, self.rejected = {}, {}
        return [tool for tool in tools if self._read_marks(tool)]

    def _read_marks(self, tool: Mapping[str, Any]) -> bool:
        name = str(tool.get("name"))
        try:
            marks = find_marks(tool.get("inputSchema"))
        except InvalidMark as error:
            LOG.warning("The tool %.200s is left out: %s", name, error)
            self.rejected[name] = str(error)
            return False
        if marks:
            self._marks[name] = marks
        return True


async def open_connection(
    transport: Transport,
    peer: Peer,
    *,
    client: ClientInfo,
    capabilities: Declared | Mapping[str, Any],
    known: Era | None = None,
) -> Connection:
    """Greet the server at the other end; `known` is the era it was found in before."""
    declared = capabilities if isinstance(capabilities, Declared) else Declared(capabilities)
    greeting = await Greeter(transport, client, declared).greet(known=known)
    return Connection(transport, peer, greeting)
