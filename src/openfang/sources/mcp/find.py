"""Which of the HTTP transports a server speaks: each is tried, in order, until one is answered.

Importing this module imports the HTTP client, a third of a second.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from openfang.sources.mcp.connection import Connection, open_connection
from openfang.sources.mcp.http import open_streamable
from openfang.sources.mcp.plain import open_plain
from openfang.sources.mcp.sse import open_sse
from openfang.sources.mcp.transport import Lost, NotSpoken

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.protocols.mcp.meta import ClientInfo
    from openfang.sources.mcp.greeting import Declared, Era
    from openfang.sources.mcp.spec import Http
    from openfang.sources.mcp.transport import Peer
    from openfang.sources.mcp.wire import Asks

_WAYS: Final = {
    "streamable": ("Streamable HTTP", open_streamable),
    "sse": ("HTTP+SSE", open_sse),
    "plain": ("plain POST", open_plain),
}


@asynccontextmanager
async def find_http(  # noqa: PLR0913 - what a connection needs, and how to make one
    http: Asks,
    reached: Http,
    peer: Peer,
    *,
    client: ClientInfo,
    capabilities: Declared | Mapping[str, Any],
    known: tuple[str, Era] | None = None,
) -> AsyncGenerator[Connection]:
    """Hold a connection to a server at an address. `known` is how it was found before."""
    refusals: list[str] = []
    for kind in _order(known):
        name, open_transport = _WAYS[kind]
        async with AsyncExitStack() as stack:
            try:
                transport = await stack.enter_async_context(open_transport(http, reached, peer))
                connection = await open_connection(
                    transport,
                    peer,
                    client=client,
                    capabilities=capabilities,
                    known=_era(kind, known),
                )
            except NotSpoken as refusal:
                refusals.append(f"{name}: {refusal.reason}")
                continue
            yield connection
            return
    shown = reached.url.partition("?")[0]
    raise Lost(f"{shown} speaks no transport known here ({'; '.join(refusals)})")


def _order(known: tuple[str, Era] | None) -> list[str]:
    return sorted(_WAYS, key=lambda kind: known is None or kind != known[0])


def _era(kind: str, known: tuple[str, Era] | None) -> Era | None:
    if kind != "streamable":
        return "handshake"
    return known[1] if known is not None and known[0] == kind else None
