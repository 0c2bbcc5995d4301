"""A2A as an edge of the node: which address belongs to which dialect, and who may ask there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import parse_qsl

import anyio
from anyio import to_thread

from openfang.core.errors import NotFound, OpenFangError, Rejected, Unauthenticated
from openfang.edges.a2a import places
from openfang.edges.a2a.bodies import read_body
from openfang.edges.a2a.places import NOTHING, PUBLIC, PUBLISHED, ROUTES, Place, place_of
from openfang.edges.a2a.publishing import Publishing, paper, show
from openfang.edges.a2a.seed import Seed, no_agent, of_the_edge
from openfang.edges.a2a.seed_words import Fault, failure, number_in, read_ask
from openfang.edges.a2a.staying import Staying
from openfang.edges.a2a.versions import HEADER, METHODS
from openfang.edges.api.exchange import WrongMethod, json_answer, problem
from openfang.edges.api.mount import NOBODY

if TYPE_CHECKING:
    from openfang.edges.a2a.bodies import Body
    from openfang.edges.a2a.modern import Modern
    from openfang.edges.a2a.ports import House, Settings
    from openfang.edges.a2a.publishing import Paper
    from openfang.edges.a2a.seed_words import Ask
    from openfang.edges.api.exchange import Answer, Headers
    from openfang.edges.api.mount import Came

_USUAL: Final = "/a2a"
_API: Final = "/api/"
_VERSION: Final = HEADER.lower().encode()
_CURRENT: Final = "1.0"
_FORMATS: Final = ("", "seed", _CURRENT)
_MOST_STREAMS: Final = 2000
_BEAT_SECONDS: Final = 15.0
_MODERN: Final = METHODS["1.0"] | {one for one in METHODS["0.3"] if not one.startswith("tasks/")}


class A2aEdge:
    """Serves our agents. Nothing of it is there unless the operator says so."""

    edge: ClassVar[str] = "a2a"

    def __init__(self, house: House, *, most_streams: int = _MOST_STREAMS) -> None:
        self._house = house
        self._staying = Staying(most_streams, _BEAT_SECONDS)
        self._publishing = Publishing(house)
        self._seed = Seed(house, self._staying)
        self._modern: Modern | None = None
        self._published: Paper | None = None

    async def run(self, stop: anyio.Event) -> None:
        """Have the libraries at hand before they are needed; end what stays with the node."""
        if self._house.settings() is not None:
            await self._keys()
            await self._current()
        await stop.wait()
        self._staying.end()

    async def _current(self) -> Modern:
        """Who serves the current dialects; the library for it takes most of a second to load."""
        if self._modern is None:
            kind = await to_thread.run_sync(_load_modern)
            cards = self._publishing.agent_card
            self._modern = self._modern or kind(self._house, cards, self._staying)
        return self._modern

    async def _keys(self) -> Paper:
        """The keys that cards are checked with: whoever has them once can sign at once."""
        if self._published is None:
            keys = await to_thread.run_sync(self._house.keys)
            self._published = paper(json_answer(keys).body)
        return self._published

    def route(self, path: str) -> str:
        """Name what is at this path; nothing if that is not ours."""
        if path.startswith(_API):
            return ""  # what is asked most pays nothing for us
        place = self._place(path)
        return "" if place is None else place.route

    def public(self, route: str, *, signed: bool) -> bool:
        """Cards are for everybody; of some agents only, where the address names one."""
        return route in PUBLIC or (route in PUBLISHED and not signed)

    def _place(self, path: str) -> Place | None:
        if path in PUBLIC:
            return Place(route=path)
        settings = self._house.settings()
        own = _USUAL if settings is None else settings.path
        if path == own:
            return Place(route=places.RPC)
        return place_of(path[len(own) + 1 :]) if path.startswith(f"{own}/") else None

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say it in the dialect of the address."""
        told = problem(error)
        if self._house.settings() is None:
            return told
        if route in places.ENVELOPED:
            return replace(failure(None, error), status=told.status)
        if route == places.REST:
            return (await self._current()).refuse(error, headers, query)
        return told

    def fault(self, error: OpenFangError) -> Answer:
        """Say it as everywhere: what comes in an envelope is said where it is opened."""
        return problem(error)

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        if came.path == places.KEYS and came.method in ROUTES[places.KEYS].split(", "):
            await show(came, await self._keys(), public=True)  # what nodes sign needs no A2A
            return
        settings, place = await self._settings(), self._place(came.path)
        if settings is None or place is None or place.route == NOTHING:
            _charge(came)
            raise _off() if settings is None else _nothing(came.path)
        allowed = ROUTES.get(place.route)
        if allowed is not None and came.method not in allowed.split(", "):
            _charge(came)
            raise WrongMethod(came.method, allowed)
        await self._serve(came, settings, place)

    async def _settings(self) -> Settings | None:
        settings = self._house.settings()
        if settings is None or settings.primary is not None:
            return settings
        await self._house.agents(None)  # a node that has just begun may be reading them still
        return self._house.settings()

    async def _serve(self, came: Came, settings: Settings, place: Place) -> None:
        match place.route:
            case route if route in places.ENVELOPED:
                await self._called(came, settings, place, await read_body(came))
            case places.REST:
                await self._check_agent(came, place.name)
                await (await self._current()).rest(came, place.name, place.rest)
            case places.LIST:
                await self._list(came, settings)
            case places.SEND:
                await self._seed.send(came, settings)
            case places.TASK:
                await self._seed.get(came, place.name)
            case places.CANCEL:
                await self._seed.cancel(came, place.name)
            case places.HISTORY:
                await self._seed.history(came, place.name)
            case _:
                await self._card(came, settings, place)

    async def _called(self, came: Came, settings: Settings, place: Place, body: Body) -> None:
        """Answer a JSON-RPC request; also what is wrong comes in an envelope."""
        try:
            if place.route == places.AGENT:
                await self._to_agent(came, place.name, body)
            else:
                await self._rpc(came, settings, place, body)
        except OpenFangError as error:
            if of_the_edge(error):
                raise
            told, answer = problem(error), failure(number_in(body), error)
            await came.answer(replace(answer, status=told.status, headers=told.headers))

    async def _rpc(self, came: Came, settings: Settings, place: Place, body: Body) -> None:
        """Answer at the address of a seed's card; the first one's hears later dialects as well."""
        if place.name:
            await self._check_agent(came, place.name)
        try:
            ask = read_ask(body)
        except Fault as fault:
            _charge(came)
            await came.answer(failure(fault.number, fault))
            return
        if place.name:
            await self._seed.of(place.name).rpc(came, settings, ask)
        elif not _is_modern(came, ask):
            await self._seed.rpc(came, settings, ask)
        elif settings.primary is None:
            _charge(came)
            raise no_agent()
        else:
            await self._to_agent(came, settings.primary, body)

    async def _to_agent(self, came: Came, name: str, body: Body) -> None:
        await self._check_agent(came, name)
        await (await self._current()).rpc(came, name, body)

    async def _check_agent(self, came: Came, name: str) -> None:
        if not await self._house.knows(name, came.caller):
            _charge(came)
            raise _unknown(name)

    async def _list(self, came: Came, settings: Settings) -> None:
        _charge(came)
        wanted = _format(came)
        await self._keys()
        agents = await self._house.agents(came.caller)
        listed = self._publishing.listed(agents, settings, current=wanted == _CURRENT)
        await show(came, await listed, public=False)

    async def _card(self, came: Came, settings: Settings, place: Place) -> None:
        """Show a card: of the agent that is named, else of the one that answers here."""
        public = self.public(place.route, signed=came.caller is not NOBODY)
        if not public:
            _charge(came)
        await self._keys()
        name = place.name or settings.primary
        caller = None if public else came.caller
        agent = None if name is None else await self._house.agent(name, caller)
        if agent is None and place.name:
            raise _needs_key() if public else _unknown(place.name)
        write = self._publishing.current if place.route in places.CURRENT else self._publishing.seed
        await show(came, write(agent, settings), public=public)


def _load_modern() -> type[Modern]:
    from openfang.edges.a2a.modern import Modern  # noqa: PLC0415 - a heavy library, if used

    return Modern


def _is_modern(came: Came, ask: Ask) -> bool:
    said = _VERSION in came.headers or _VERSION in came.query.lower()
    return said or ask.method in _MODERN


def _format(came: Came) -> str:
    wanted = dict(parse_qsl(came.query.decode("latin-1"))).get("format", "")
    if wanted not in _FORMATS:
        raise Rejected(
            f"There is no format {wanted[:20]!r} of cards.",
            status=422,
            rule="query",
            way_out=f"format={_CURRENT}, or none for the seed's",
        )
    return wanted


def _charge(came: Came) -> None:
    """Take what a question costs; who shows no key has paid at the door."""
    if came.caller is not NOBODY:
        came.node.charge(came.caller, "health")


def _off() -> Rejected:
    return Rejected(
        "A2A is not served by this node: a2a.enabled is false.",
        status=404,
        rule="a2a_disabled",
        way_out="[a2a] enabled = true in config.toml",
    )


def _nothing(path: str) -> Rejected:
    return Rejected(
        f"There is nothing of A2A at {path[:200]}.",
        status=404,
        rule="route",
        way_out="GET /.well-known/agent-card.json says where the agents are",
    )


def _unknown(name: str) -> NotFound:
    return NotFound(f"No agent {name} is there.", way_out="openfang agents list")


def _needs_key() -> Unauthenticated:
    return Unauthenticated(
        "This card needs a key.",
        way_out="Authorization: Bearer KEY, or a2a.publish in the configuration",
    )
