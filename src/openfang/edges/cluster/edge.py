"""One address for other nodes: a server that runs here and only here, in the words of MCP.

No key opens it. A request carries the signature of a living member, over all of it; it is not
judged once more, for that was done where the call came in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import anyio
import orjson

from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.edges.api.exchange import Answer as Reply
from openfang.edges.api.exchange import WrongMethod, read_body, send_answer
from openfang.edges.api.watch import Watch
from openfang.edges.cluster.lines import Lines
from openfang.protocols.mcp.lent import member_in
from openfang.protocols.mcp.messages import MAX_MESSAGE, Answer, Ask, Failure, read_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.edges.api.exchange import Headers, Receive, Scope, Send
    from openfang.edges.cluster.ports import Lender, Lent

ROUTE: Final = "/api/cluster/calls"
METHODS: Final = "DELETE, GET, POST"
HEADER: Final = b"openfang-member"
_SESSION: Final = b"mcp-session-id"
_BEAT_SECONDS: Final = 2.0
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of a member for a server of ours."""

    node: str
    server: str
    term: int
    lent: Lent
    receive: Receive
    begin: Callable[[int], Send]


@dataclass(frozen=True, slots=True)
class ClusterEdge:
    """Serves other nodes."""

    lender: Lender

    def route(self, path: str) -> str:
        """Name what is at this path; nothing if that is not ours."""
        return ROUTE if path == ROUTE else ""

    async def serve(
        self, scope: Scope, receive: Receive, headers: Headers, begin: Callable[[int], Send]
    ) -> None:
        """Answer one request; who has not signed it is told nothing, and sends no body."""
        method, target = scope["method"], _target(scope)
        claim = self.lender.claim(headers.get(HEADER), method, target)
        body = await read_body(receive, headers, MAX_MESSAGE)
        claim.check(body)
        server, term = _named(scope["query_string"])
        lent = self.lender.lent(server, term)
        _check_session(headers, lent)
        asked = _Asked(claim.node, server, term, lent, receive, begin)
        match method:
            case "POST":
                await self._post(asked, body)
            case "GET":
                await self._stream(asked, lambda lines: lent.hear(lines.put))
            case "DELETE":
                await send_answer(begin(200), Reply(body=b"{}"))
            case _:
                raise WrongMethod(method, METHODS)

    async def _post(self, asked: _Asked, body: bytes) -> None:
        message = read_one(_decoded(body))
        if isinstance(message, Ask):
            if call := member_in(message.params).get("call"):
                del call
                await self.lender.noted(asked.node, asked.server, asked.term, message)
            await self._stream(asked, lambda lines: self._asked(asked, message, lines))
            return
        if isinstance(message, Answer | Failure):
            asked.lent.answered(asked.node, message)
        await send_answer(asked.begin(202), Reply(body=b"", status=202))

    async def _asked(self, asked: _Asked, ask: Ask, lines: Lines) -> None:
        lines.end(await asked.lent.ask(asked.node, ask, lines.put))

    async def _stream(self, asked: _Asked, work: Callable[[Lines], Any]) -> None:
        """Send what comes of it; who hangs up, or is dead, has cancelled it."""
        watch, lines = Watch(asked.receive), Lines()
        send = asked.begin(200)
        try:
            headers = [*_EVENTS, (_SESSION, asked.lent.session.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async with anyio.create_task_group() as group:
                group.start_soon(work, lines)
                await self._sent(asked, lines, send)
                group.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()

    async def _sent(self, asked: _Asked, lines: Lines, send: Send) -> None:
        async def write(piece: bytes) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

        await lines.send(write, _BEAT_SECONDS, lambda: self.lender.alive(asked.node))


def _target(scope: Scope) -> str:
    path, query = scope["raw_path"].decode("ascii"), scope["query_string"].decode("ascii")
    return f"{path}?{query}" if query else path


def _named(query: bytes) -> tuple[str, int]:
    said = dict(parse_qsl(query.decode("ascii")))
    server, term = said.get("server", ""), said.get("term", "")
    if not server or not term.isdigit():
        raise Rejected("Name server and term.", status=400, rule="query")
    return server, int(term)


def _check_session(headers: Headers, lent: Lent) -> None:
    """Refuse what was meant for the server as it was before it was connected anew."""
    session = headers.get(_SESSION)
    if session is not None and session != lent.session.encode():
        raise Rejected("The server was connected anew.", status=404, rule="session")


def _decoded(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Rejected("The body is not valid JSON.", status=400, rule="not_json") from None
