"""The resources of a server that somebody wants to hear of.

Up to 2025-11-25 each is asked for by itself; since then, by the request that listens.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError
from openfang.sources.mcp.abilities import SUBSCRIBE, UNSUBSCRIBE
from openfang.sources.mcp.listening import Listening
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.sources.mcp.connection import Connection

MOST_WATCHED: Final = 1000


class Watches:
    """Counts who wants to hear of what, and sees to it that the server tells."""

    def __init__(self) -> None:
        self._wanted: dict[str, Counter[str]] = {}
        self._listening: Listening | None = None

    def __len__(self) -> int:
        return len(self._wanted)

    def inherit(self, former: Watches) -> None:
        """Take over what was watched before."""
        self._wanted = former._wanted

    def acknowledged(self) -> None:
        """Hear that the server has begun to tell."""
        if self._listening is not None:
            self._listening.acknowledged()

    def arrive(self, connection: Connection) -> None:
        """Begin with another connection."""
        modern = connection.era == "modern"
        self._listening = Listening(connection, lambda: list(self._wanted)) if modern else None

    async def keep(self, connection: Connection) -> None:
        """See to it that everything wanted is told, for as long as the connection lasts."""
        if self._listening is not None:
            await self._listening.run()
        for uri in list(self._wanted):
            with suppress(RpcError, Lost):
                await connection.request(SUBSCRIBE, {"uri": uri})

    async def subscribe(self, connection: Connection, uri: str, who: str) -> Mapping[str, Any]:
        """Have a resource watched. Raises what the server says to that."""
        new = uri not in self._wanted
        if new and len(self._wanted) >= MOST_WATCHED:
            raise RpcError(INVALID_PARAMS, f"{MOST_WATCHED} resources are watched already")
        self._wanted.setdefault(uri, Counter())[who] += 1
        try:
            return await self._begin(connection, uri) if new else {}
        except BaseException:
            self._drop(uri, who)
            raise

    async def unsubscribe(self, connection: Connection, uri: str, who: str) -> Mapping[str, Any]:
        """Have it watched no longer, unless somebody else still wants it."""
        if not self._wanted.get(uri, Counter())[who] or not self._drop(uri, who):
            return {}
        if self._listening is None:
            return await connection.request(UNSUBSCRIBE, {"uri": uri})
        self._listening.change()
        return {}

    def _drop(self, uri: str, who: str) -> bool:
        """Count one out, and say whether it was the last of all."""
        counts = self._wanted[uri]
        counts[who] -= 1
        if counts.total():
            return False
        del self._wanted[uri]
        return True

    async def _begin(self, connection: Connection, uri: str) -> Mapping[str, Any]:
        if self._listening is None:
            return await connection.request(SUBSCRIBE, {"uri": uri})
        self._listening.change()
        await self._listening.names(uri)
        return {}
