"""The addresses of A2A over HTTP and JSON: one table for all agents, of both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.routing import compile_path

from openfang.edges.a2a.dialect03 import RestAdapter03
from openfang.edges.a2a.rest import Rest
from openfang.edges.a2a.sdk import errors
from openfang.edges.api.exchange import WrongMethod

if TYPE_CHECKING:
    import re
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from openfang.edges.a2a.asked import Contexts
    from openfang.edges.a2a.handler import Handler

STREAMS: Final = (":stream", ":subscribe")
SENDS: Final = ("/message:send", "/message:stream")


class Found(NamedTuple):
    """Who answers at an address, and what the address names."""

    serve: Callable[[Request], Awaitable[Response]]
    names: Mapping[str, str]


class Routes:
    """All of them. In front of those of 1.0 the name of a tenant may stand."""

    def __init__(self, handler: Handler, contexts: Contexts) -> None:
        self._older = list(_listed(RestAdapter03(handler, contexts).routes()))
        self._current = list(_listed(Rest(handler).routes()))

    def find(self, method: str, path: str) -> Found:
        """Find who answers."""
        found = _matching(self._older, path, {}) or _matching(self._current, path, {})
        if not found:
            tenant, slash, rest = path[1:].partition("/")
            found = _matching(self._current, slash + rest, {"tenant": unquote(tenant)})
        if not found:
            raise errors.MethodNotFoundError("There is nothing of A2A at this address.")
        if method not in found:
            raise WrongMethod(method, ", ".join(sorted(found)))
        return found[method]


_Line = tuple[str, "re.Pattern[str]", "Callable[[Request], Awaitable[Response]]"]


def _listed(routes: Mapping[tuple[str, str], Callable[[Request], Any]]) -> Iterable[_Line]:
    for (path, method), serve in routes.items():
        yield method, compile_path(path)[0], serve


def _matching(lines: Iterable[_Line], path: str, more: Mapping[str, str]) -> dict[str, Found]:
    """Find what is at an address, by method; the more special ones come first."""
    found: dict[str, Found] = {}
    for method, pattern, serve in lines:
        match = pattern.match(path)
        if match and method not in found:
            names = {name: unquote(value) for name, value in match.groupdict().items()}
            found[method] = Found(serve, {**more, **names})
    return found
