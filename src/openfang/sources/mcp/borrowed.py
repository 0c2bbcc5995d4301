"""A server that runs at another node of the cluster: it is reached through that one.

Streamable HTTP, signed as one node signs for another. Each request says which call of ours it
belongs to. Importing this imports the HTTP client.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.host.http import FetchFailed
from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.lent import LOST, MEMBER, UNMADE, member_in
from openfang.protocols.mcp.meta import with_meta
from openfang.sources.mcp.connection import open_connection
from openfang.sources.mcp.errand import PlainErrand
from openfang.sources.mcp.http import StreamableTransport
from openfang.sources.mcp.questions import relayed
from openfang.sources.mcp.transport import Errand, Lost, Unmade, owned_tasks
from openfang.sources.mcp.wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.http import Streaming
    from openfang.protocols.mcp.meta import ClientInfo
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.spec import Http, ServerSpec
    from openfang.sources.mcp.transport import Peer
    from openfang.sources.mcp.wire import Asks

_FIRST_ERROR: Final = 400
_MOVED: Final = frozenset({404, 409})
_MOST: Final = 65_536


class BorrowedTransport(StreamableTransport):
    """One server at one node. `moved` hears that it is there no longer, or the node is not."""

    kind = "member"

    def __init__(self, wire: Wire, peer: Peer, tasks: TaskGroup) -> None:
        super().__init__(wire, peer, tasks)
        self.mirrors = False
        self.moved: Callable[[], None] | None = None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask the node, and say whose call it is; a server that was not asked is looked for."""
        said = _said(errand, headers)
        try:
            params = with_meta(params, {MEMBER: said}) if said else params
            result = await super().request(method, params, errand=errand)
        except Unmade:
            if self.moved is not None:
                self.moved()
            raise
        except RpcError as error:
            raise self._meant(error) from error
        if method == "server/discover":
            self.mirrors = bool(member_in(result).get("mirrors"))
        return result

    def _meant(self, error: RpcError) -> Exception:
        if error.code == UNMADE:
            return Unmade(error.message)
        return Lost(error.message) if error.code == LOST else error

    async def _check(self, answer: Streaming) -> None:
        """Say why the node does not take a request: none of those statuses comes after a call."""
        if answer.status < _FIRST_ERROR:
            return
        reason = await _reason(answer)
        if answer.status in _MOVED:
            self._dialogue.lose(reason)
        raise Unmade(reason)


def _said(errand: Errand | None, headers: Mapping[str, str] | None) -> dict[str, Any]:
    if not isinstance(errand, PlainErrand):
        return {}
    said: dict[str, Any] = {"call": errand.admitted.call.id, "client": errand.connection}
    return {**said, "headers": dict(headers)} if headers else said


async def _reason(answer: Streaming) -> str:
    """Find the sentence in a problem."""
    try:
        body: Any = orjson.loads(await answer.whole(_MOST))
        return str(body["detail"])
    except (FetchFailed, ValueError, KeyError, TypeError):
        return f"{answer.url} answered with status {answer.status}"


@asynccontextmanager
async def open_borrowed(  # noqa: PLR0913 - all of it is one connection's
    spec: ServerSpec,
    peer: Peer,
    *,
    http: Asks,
    at: Http,
    client: ClientInfo,
    moved: Callable[[], None],
) -> AsyncGenerator[Connection]:
    """Hold a connection to a server at another node."""
    async with owned_tasks() as tasks:
        transport = BorrowedTransport(Wire(http, at), peer, tasks)
        try:
            declared = relayed(spec)
            greeted = await open_connection(transport, peer, client=client, capabilities=declared)
            transport.moved = moved
            yield greeted
        finally:
            await transport.leave()
