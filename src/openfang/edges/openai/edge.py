"""`/v1` as an edge of the node: an agent is a model, and a completion a governed call of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

from openfang.core.errors import NotFound, OpenFangError, Rejected, UnknownTool
from openfang.core.ids import Kind, new_id, tool_id
from openfang.edges.api.exchange import (
    WrongMethod,
    json_answer,
    read_json,
    send_stream,
)
from openfang.edges.api.routes.tools import read_options
from openfang.edges.api.serving import go_on
from openfang.edges.api.watch import Watch
from openfang.edges.openai.faults import fault
from openfang.edges.openai.reading import agent_named, read_request
from openfang.edges.openai.streaming import Chunks, cut_short, streamed
from openfang.edges.openai.written import Writer, read_reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.core.progress import Listener
    from openfang.core.results import Part, Result
    from openfang.core.session import Options
    from openfang.edges.api.exchange import Answer, Headers
    from openfang.edges.api.mount import Came
    from openfang.edges.openai.ports import Shelf
    from openfang.edges.openai.reading import Asked

MODELS: Final = "/v1/models"
MODEL: Final = "/v1/models/{model}"
COMPLETIONS: Final = "/v1/chat/completions"
NOTHING: Final = "/v1/{nothing}"
ROUTES: Final = {MODELS: "GET, HEAD", MODEL: "GET, HEAD", COMPLETIONS: "POST"}
"""What each address takes."""
_OURS: Final = ["v1"]
_SESSION: Final = b"x-openfang-session"
_BEAT_SECONDS: Final = 15.0
_STREAMED: Final = 200
_SECOND: Final = 1_000_000_000


class OpenAiEdge:
    """Serves the agents to OpenAI clients. `began` is when, in nanoseconds since the epoch."""

    edge: ClassVar[str] = "openai"

    def __init__(self, shelf: Shelf, began: int, *, beat: float = _BEAT_SECONDS) -> None:
        self._shelf = shelf
        self._began = began // _SECOND
        self._beat = beat

    def route(self, path: str) -> str:
        """Name what is at this path; nothing if that is not ours."""
        if path.split("/", 2)[1:2] != _OURS:
            return ""
        if path in ROUTES:
            return path
        name = path.removeprefix(f"{MODELS}/")
        return MODEL if name and "/" not in name else NOTHING

    def public(self, route: str, *, signed: bool) -> bool:
        """Nothing here is for everybody."""
        del route, signed
        return False

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say it as OpenAI does."""
        del route, headers, query
        return fault(error)

    def fault(self, error: OpenFangError) -> Answer:
        """Say it as OpenAI does."""
        return fault(error)

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        route = self.route(came.path)
        if route != COMPLETIONS or came.method != "POST":
            came.node.charge(came.caller, "health")
            await self._others(came, route)
            return
        try:
            asked, options = _read(came)
        except OpenFangError:
            came.node.charge(came.caller, "call")
            raise
        await self._complete(came, asked, options)

    async def _others(self, came: Came, route: str) -> None:
        allowed = ROUTES.get(route)
        if allowed is None:
            raise _nothing(came.path)
        if came.method not in allowed.split(", "):
            raise WrongMethod(came.method, allowed)
        models = {one["id"]: one for one in await self._models(came)}
        if route == MODELS:
            await came.answer(json_answer({"object": "list", "data": list(models.values())}))
            return
        name = agent_named(unquote(came.path.removeprefix(f"{MODELS}/")))
        if name not in models:
            raise _unknown(name)
        await came.answer(json_answer(models[name]))

    async def _models(self, came: Came) -> list[dict[str, Any]]:
        session = came.node.session(came.caller, came.chain, self.edge)
        return [self._model(card) for card in await session.agents()]

    def _model(self, card: Mapping[str, Any]) -> dict[str, Any]:
        ours = {name: card[name] for name in ("title", "description", "version", "tags")}
        return {
            "id": card["name"],
            "object": "model",
            "created": self._began,
            "owned_by": "openfang",
            "openfang": ours,
        }

    async def _complete(self, came: Came, asked: Asked, options: Options) -> None:
        """Make the call; who hangs up ends it."""
        watch = Watch(came.receive)
        writer = Writer(
            id=new_id("chatcmpl").replace("_", "-"),
            model=asked.agent,
            created=came.node.now() // _SECOND,
            usage=asked.usage,
        )
        try:
            await self._kept(came, asked)
            make = partial(self._made, came, asked, options)
            if asked.stream:
                stream = await streamed(make, Chunks(writer, asked.theirs), self._beat)
                await send_stream(came.begin(_STREAMED), stream, came.left())
            else:
                reply = read_reply(await make(None))
                await came.answer(json_answer(writer.whole(reply)))
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.end()

    async def _kept(self, came: Came, asked: Asked) -> None:
        """Put what is large beside the call, once it is known that there is one to make."""
        parts = [part for one in asked.spoken for part in one.parts]
        if not parts:
            return
        came.node.check_call(came.caller, "message")
        await came.node.session(came.caller, came.chain, self.edge).agent(asked.agent)
        kept: Iterator[Part] = iter(await self._shelf.keep(came.caller, parts))
        for one in asked.spoken:
            one.parts = [next(kept) for _ in one.parts]

    async def _made(
        self, came: Came, asked: Asked, options: Options, told: Listener | None
    ) -> Result:
        session = came.node.session(came.caller, came.chain, self.edge)
        tool, wanted = tool_id(Kind.AGENT, asked.agent), replace(options, progress=told)
        try:
            return await session.call(tool, asked.arguments(), wanted)
        except UnknownTool:
            came.node.charge(came.caller, "call")  # who guesses names pays for it
            raise _unknown(asked.agent) from None
        except asyncio.CancelledError:
            if came.node.ready or told is not None:
                raise
            go_on()
            raise cut_short() from None


def _read(came: Came) -> tuple[Asked, Options]:
    session = came.headers.get(_SESSION, b"").decode("latin-1")
    body = read_json(came.body, came.headers)
    asked = read_request(body, session)
    if ":" in asked.agent:
        raise _unknown(asked.agent)  # what can be done with an agent's tasks is no agent
    return asked, read_options(body, came.headers)


def _unknown(name: str) -> NotFound:
    return NotFound(f"No agent {name[:200]} is there for this key.", way_out="GET /v1/models")


def _nothing(path: str) -> Rejected:
    return Rejected(
        f"There is nothing of OpenAI's API at {path[:200]}.",
        status=404,
        rule="route",
        way_out=f"one of {', '.join(ROUTES)}",
    )
