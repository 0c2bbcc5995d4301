"""What the fixture server holds: what calls can change about it, and who is told of a change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.subscriptions import event_to_notification

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import ServerEvent
    from mcp_types import LoggingLevel

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Peer:
    """A session of the older era: it is told of changes without having listened for them."""

    session: ServerSession
    level: LoggingLevel = "info"
    watched: set[str] = field(default_factory=set[str])

    def wants(self, event: ServerEvent) -> bool:
        return not isinstance(event, ResourceUpdated) or event.uri in self.watched


@dataclass(slots=True)
class World:
    """The state of one process."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    peers: dict[str, Peer] = field(default_factory=dict[str, Peer])
    extra: set[str] = field(default_factory=set[str])
    edition: int = 1

    def peer(self, ctx: Context) -> Peer:
        """Find the session that a request belongs to; over stdio there is one."""
        name: str = ctx.request.headers["mcp-session-id"] if ctx.request else ""
        return self.peers.setdefault(name, Peer(ctx.session))

    def toggle(self, name: str) -> str:
        """Offer something that was not there, or take it away again."""
        self.extra ^= {name}
        return f"{name} is {'there' if name in self.extra else 'gone'}"

    async def announce(self, event: ServerEvent) -> None:
        """Tell whoever listens, and every older session that wants to know."""
        await self.bus.publish(event)
        for name, peer in list(self.peers.items()):
            if not peer.wants(event):
                continue
            try:
                await peer.session.send_notification(event_to_notification(event, {}))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                del self.peers[name]


Context: TypeAlias = ServerRequestContext[World, Any]
