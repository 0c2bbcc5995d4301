"""Our MCP server over HTTP: who sent what, of which era, to which of our places."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import unquote

import anyio

from openfang.core.errors import Rejected
from openfang.edges.api.exchange import WrongMethod, problem
from openfang.edges.mcp.answering import charge
from openfang.edges.mcp.bodies import check_type, invalid, read_value, refuse
from openfang.edges.mcp.modern_http import ModernFront
from openfang.edges.mcp.plain_http import PlainFront
from openfang.edges.mcp.ports import Place
from openfang.edges.mcp.session_http import INITIALIZE, SessionFront
from openfang.edges.mcp.staying import Staying
from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.inbound import (
    SESSION,
    VERSION,
    check_doubled,
    is_modern,
    unsupported,
    value_of,
)
from openfang.protocols.mcp.messages import Ask, Malformed, read_one
from openfang.protocols.mcp.versions import HANDSHAKE, KNOWN, MODERN, OLDEST

if TYPE_CHECKING:
    from openfang.core.errors import OpenFangError
    from openfang.edges.api.exchange import Answer, Headers
    from openfang.edges.api.mount import Came
    from openfang.edges.mcp.handler import Handler
    from openfang.edges.mcp.ports import Offers
    from openfang.edges.mcp.sessions import Sessions
    from openfang.protocols.mcp.messages import Id

EVERYTHING: Final = "/mcp"
TOOLSET: Final = "/mcp/{toolset}"
AGENT: Final = "/mcp/agents/{name}"
_METHODS: Final = "DELETE, GET, POST"
ROUTES: Final = dict.fromkeys((EVERYTHING, TOOLSET, AGENT), _METHODS)
"""What each address takes."""
_BEAT_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 1.0


class McpEdge:
    """Serves `/mcp`, a toolset at `/mcp/{toolset}`, an agent at `/mcp/agents/{name}`.

    `most_streams` may stay open at once. While nothing is told, a stream says so with each beat.
    """

    edge: ClassVar[str] = "mcp"

    def __init__(
        self,
        handler: Handler,
        offers: Offers,
        sessions: Sessions,
        *,
        most_streams: int = 250,
        beat: float = _BEAT_SECONDS,
    ) -> None:
        self.sessions = sessions
        self.staying = Staying(most_streams)
        self._beat = beat
        self._modern = ModernFront(handler, offers, self.staying, beat, sessions.elsewhere)
        self._talks = SessionFront(handler, offers, self.sessions, self.staying, beat)
        self._plain = PlainFront(handler, offers, self.staying)

    async def run(self, stop: anyio.Event) -> None:
        """End what is over, until the node stops; then every stream that stays."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look_after)
            group.start_soon(self._turn_away)
            if self._talks.roaming is not None:
                group.start_soon(self._talks.roaming.watch)
            await stop.wait()
            group.cancel_scope.cancel()
        self.staying.end()

    async def _look_after(self) -> None:
        while True:
            await anyio.sleep(self._beat)
            await self.sweep()

    async def _turn_away(self) -> None:
        """Let nobody whose key has ended wait for the next beat, and none stay where others go."""
        nodes, leaving = self.sessions.elsewhere, False
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            if self.staying.dismiss():
                await self._talks.sweep()
            was, leaving = leaving, nodes is not None and nodes.leaving
            if leaving and not was:
                self.staying.send_away()

    async def sweep(self) -> None:
        """End sessions that are not used, and all that whoever would not be let in again has."""
        await self._talks.sweep()
        self.staying.dismiss()

    def route(self, path: str) -> str:
        """Name what is at this path; nothing if that is not ours."""
        if path == EVERYTHING:
            return EVERYTHING
        match path.split("/"):
            case ["", "mcp", "agents", name] if name:
                return AGENT
            case ["", "mcp", toolset] if toolset:
                return TOOLSET
            case _:
                return ""

    def public(self, route: str, *, signed: bool) -> bool:
        """Nothing here is for everybody."""
        del route, signed
        return False

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say it as everywhere: nobody has looked at what the request is."""
        del route, headers, query
        return problem(error)

    def fault(self, error: OpenFangError) -> Answer:
        """Say it as everywhere: what comes in an envelope is said where it is opened."""
        return problem(error)

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        place = _place(came.path)
        match came.method:
            case "POST":
                await self._post(came, place)
            case "GET" | "DELETE":
                await self._other(came, place)
            case method:
                charge(came)
                raise WrongMethod(method, _METHODS)

    async def _post(self, came: Came, place: Place) -> None:
        try:
            value = _read(came)
        except RpcError as error:
            charge(came)
            await refuse(came, None, error)
            return
        version = value_of(came.headers, VERSION)
        if SESSION in came.headers and version is not None and version not in KNOWN:
            charge(came)
            await refuse(came, _number(value), unsupported(version, KNOWN))
        elif is_modern(version, value):
            await self._modern.post(came, place, value)
        elif SESSION in came.headers:
            await self._talks.post(came, place, value)
        elif (greeting := _greeting(value)) is not None:
            await self._talks.greet(came, place, greeting)
        elif version is None or version == OLDEST:
            await self._plain.post(came, place, value)
        else:
            charge(came)
            await refuse(came, None, invalid(f"{version} needs the Mcp-Session-Id of initialize"))

    async def _other(self, came: Came, place: Place) -> None:
        """Listen to a session or end it; nothing else is there for who does not POST."""
        version, known = value_of(came.headers, VERSION), SESSION in came.headers
        if version in MODERN or (came.method == "GET" and not known):
            charge(came)
            raise WrongMethod(came.method, "POST")
        try:
            _check_doubled(came)
            if version is not None and version not in HANDSHAKE:
                raise unsupported(version, KNOWN)
            if not known:
                raise invalid("there is no Mcp-Session-Id")
        except RpcError as error:
            charge(came)
            await refuse(came, None, error)
            return
        serve = self._talks.get if came.method == "GET" else self._talks.delete
        await serve(came, place)


def _place(path: str) -> Place:
    match path.split("/")[2:]:
        case ["agents", name]:
            return Place(agent=unquote(name))
        case [toolset]:
            return Place(toolset=unquote(toolset))
        case _:
            return Place()


def _read(came: Came) -> object:
    try:
        check_type(came.headers)
    except Rejected:
        charge(came)
        raise
    _check_doubled(came)
    return read_value(came.body)


def _check_doubled(came: Came) -> None:
    if len(came.raw) != len(came.headers):
        check_doubled(came.raw)


def _number(value: object) -> Id | None:
    """Find the id of what can be answered by it."""
    message = read_one(value)
    return message.id if isinstance(message, Ask | Malformed) else None


def _greeting(value: object) -> Ask | None:
    """Find the request that begins a session; those of the first revision have none."""
    message = read_one(value)
    if not isinstance(message, Ask) or message.method != INITIALIZE:
        return None
    return None if message.params.get("protocolVersion") in (None, OLDEST) else message
