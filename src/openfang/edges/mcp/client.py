"""The client of a call, as sources see it: what it can be asked, and what it wants to hear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.agents import Made, Wanted
from openfang.core.clients import client_key
from openfang.core.ids import new_id
from openfang.core.progress import Progress
from openfang.core.results import Result, error_result
from openfang.core.session import Options
from openfang.core.trace import read_chain
from openfang.core.values import dataclass
from openfang.edges.mcp.wishes import wishes_of
from openfang.protocols.hops.words import CHAIN, STARRY, TRACE, read_told
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError
from openfang.protocols.mcp.meta import PROGRESS_TOKEN, meta_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.progress import Told
    from openfang.core.trace import Chain
    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.ports import Link

ANSWERED: Final = ("sampling", "elicitation", "roots")
_USUAL_LEVEL: Final = "info"
_PROGRESS: Final = "notifications/progress"


class Gathers(ABC):
    """A link over which several questions go out at once, each by its name."""

    @abstractmethod
    async def put(self, method: str, params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Put a question, under its name if no other that is open has it."""

    @abstractmethod
    def together(self, count: int) -> Callable[[], None]:
        """Wait for so many; what is returned says that one of them does not come."""


def named(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Read the name of what is asked for, and the arguments that it gets."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        raise RpcError(INVALID_PARAMS, "name is missing, or no string")
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments is no object")
    return name, cast("dict[str, Any]", arguments or {})


def options_of(params: Mapping[str, Any], context: Context) -> Options:
    """Read what a request says of how it wants to be served."""
    meta = meta_of(params)
    token = meta.get(PROGRESS_TOKEN)
    wants_progress = isinstance(token, str | int) and not isinstance(token, bool)
    options = Options(
        progress=Telling(token, context.link) if wants_progress else None,
        client=told_to(context),
        chain=_chain(meta),
        run=context.run,
        meta=meta,
    )
    wishes = wishes_of(meta)
    return replace(options, **wishes) if wishes else options


def told_to(context: Context) -> LinkedClient | None:
    """Give the client, if it can be asked or wants to hear anything."""
    can = context.capabilities
    asked = ANSWERED if context.link.open else ()
    offered = {name: can[name] for name in asked if isinstance(can.get(name), dict)}
    talk = context.talk if context.talk is not None and context.talk.lasting else None
    level = context.level or (_USUAL_LEVEL if talk else "")
    if not offered and not level:
        return None
    return LinkedClient(
        key=client_key(context.offer.caller.id),
        connection=talk.run if talk else new_id("request"),
        capabilities=offered,
        level=level,
        link=context.link,
    )


def _chain(meta: Mapping[str, Any]) -> Chain | None:
    """Go on with the trace that the request itself names."""
    parent, starry = meta.get(TRACE), meta.get(STARRY)
    told = read_told(meta[CHAIN]) if CHAIN in meta else None
    if not isinstance(parent, str) and not isinstance(starry, str) and told is None:
        return None
    return read_chain(
        traceparent=parent if isinstance(parent, str) else None,
        starry_id=starry if isinstance(starry, str) else None,
        told=told,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedClient:
    """A client at the other end of a link. A request that is part of no talk is one by itself."""

    key: str
    connection: str
    capabilities: Mapping[str, Any]
    level: str
    link: Link
    has_person: bool = True

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        """Put a question; an error that it answers with is its answer."""
        link = self.link
        try:
            if isinstance(link, Gathers):
                return Result(structured=dict(await link.put(method, params, name)))
            return Result(structured=dict(await link.ask(method, params)))
        except RpcError as error:
            fault = {"code": error.code, "message": error.message, "data": error.data}
            text = f"The client answered {method} with an error: {error.message}"
            return _faulty(text, fault)

    def together(self, count: int) -> Callable[[], None]:
        """Announce questions, where that makes a difference."""
        return self.link.together(count) if isinstance(self.link, Gathers) else _nothing

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it; whoever says something has looked whether it is as severe as it wants."""
        self.link.notify(method, params)


def _faulty(text: str, fault: Mapping[str, Any]) -> Result:
    result = error_result(text)
    return Result(content=result.content, is_error=True, fault=fault)


def _nothing() -> None:
    """No question waits for another."""


class Telling:
    """Passes progress on, under the token that the client gave it. It only ever goes up."""

    __slots__ = ("_last", "_link", "_token")

    def __init__(self, token: object, link: Link) -> None:
        self._token = token
        self._link = link
        self._last = 0.0

    def __call__(self, told: Told) -> None:
        """Tell how far a call has got: a tool's own count, else the steps of an agent."""
        match told:
            case Progress(progress=done, total=total, message=message):
                self._tell(done, total, message)
            case Wanted(wish):
                self._tell(self._last + 1, None, f"calls {wish.tool}")
            case Made(wish=wish, outcome=outcome):
                self._tell(self._last + 1, None, f"{wish.tool}: {outcome}")
            case _:
                pass

    def _tell(self, done: float, total: float | None, message: str) -> None:
        self._last = max(self._last, done)
        params: dict[str, Any] = {"progressToken": self._token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        self._link.notify(_PROGRESS, params)
